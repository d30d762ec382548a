"""One round of the fault campaign: its runs are started, struck as the plan says, and looked at once they ended."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright import launch
from podwright.launch import Run
from podwright.runs import Record
from scripts.fault_plan import Fault, Plan, Shape
from tests.contract.campaign import LedgerRow, check_ended_once, ledger_rows
from tests.contract.sites import Site, until
from tests.contract.strikes import STRIKES
from tests.rows import event_rows

STEPS, PAUSE_S = 40, 0.2
LONGEST_S = 1200.0
EXPLAINING = ("retry", "given_back", "alone", "fenced", "requeued", "signal", "node_end", "gone")
"""Events one of which each attempt after the first must have, or the start of a pilot anew: why it began."""
CLIENT = """
import sys
from pathlib import Path
from podwright import launch, spec
from podwright.runs import Home
run = launch.start(launch.Session(Home.open(Path(sys.argv[1]))), spec.load_workload(sys.argv[2]), sys.argv[3])
run.wait()
"""


@dataclass
class Strike:
    """A fault, when it struck, and whether there was anything to strike."""

    fault: Fault
    at: float = 0.0
    hit: bool = False
    broken: str = ""
    """Why it could not be done."""


@dataclass
class Round:
    """A plan on a site, and how to read what ranks wrote into a run's folder."""

    site: Site
    plan: Plan
    kept: Callable[[Run, str], Path]
    fields: dict[str, Any] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)

    def play(self) -> list[dict[str, Any]]:
        """Do it; return what became of each fault."""
        for number, shape in enumerate(self.plan.shapes):
            self._start(number, shape)
        strikes = [Strike(fault) for fault in self.plan.faults]
        threads = [threading.Thread(target=self._try_strike, args=(strike,)) for strike in strikes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONGEST_S)
        ids = {run.id for run in self.runs.values()}
        until(lambda: self._are_over(ids), f"the runs of seed {self.plan.seed} end", LONGEST_S)
        wrongs = {number: self._wrong(number, run) for number, run in self.runs.items()}
        return [self._row(strike, wrongs[strike.fault.run]) for strike in strikes]

    def _are_over(self, ids: set[str]) -> bool:
        time.sleep(1.0)
        return all(record.is_final for record in launch.recent(self.site.session, None) if record.id in ids)

    def _start(self, number: int, shape: Shape) -> None:
        arguments = f"--steps {STEPS} --pause {PAUSE_S} --ledger"
        own = {"nodes": shape.nodes, "spares": shape.spares or None, "retries": 3, "grace": "2s", **self.fields}
        if not any(fault.kind == "client" and fault.run == number for fault in self.plan.faults):
            self.runs[number] = self.site.start(arguments, **own)
            return
        self.site.workload(arguments, **own)
        before = set(self.site.home.all_ids())
        command = [sys.executable, "-c", CLIENT, str(self.site.home.path), str(self.site.folder / "workload.yaml")]
        client = subprocess.Popen([*command, self.site.target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        [run_id] = until(lambda: set(self.site.home.all_ids()) - before, "the client's run has a folder")
        client.kill()
        client.wait()
        self.runs[number] = self.site.adopt(run_id)

    def _try_strike(self, strike: Strike) -> None:
        try:
            self._strike(strike)
        except Exception as error:  # a fault that cannot be made is a fault of the campaign, and is told as one
            strike.broken = f"{strike.fault.text} could not be made: {error!r}"

    def _strike(self, strike: Strike) -> None:
        fault = strike.fault
        run = launch.find(launch.Session(self.site.home), self.runs[fault.run].id)
        strike.at = time.time()
        if fault.kind == "client":
            strike.hit = True
            return
        until(lambda: run.record().is_final or self._has_told(run, fault.step), fault.text, LONGEST_S)
        strike.at = time.time()
        strike.hit = not run.record().is_final and STRIKES[fault.kind](self.site, run, fault)

    def _has_told(self, run: Run, step: int) -> bool:
        time.sleep(0.2)
        rows = event_rows(run.folder.path)
        return any(row["k"] == "result" and row["values"].get("step", 0) >= step for row in rows)

    def _wrong(self, number: int, run: Run) -> str:
        """What is not as it must be; empty where all is."""
        record = run.record()
        if record.state == "lost" and self.plan.may_lose(number):
            return ""
        if record.state != "succeeded":
            return f"{run.id}: {record.state}, {record.reason}"
        try:
            self._check(run, record)
        except AssertionError as error:
            return f"{run.id}: {error}"
        return ""

    def _check(self, run: Run, record: Record) -> None:
        check_ended_once(self._last_end(run), record.world_size)
        assert record.results.get("step") == STEPS, f"its results are {record.results}"
        assert record.results.get("loss") == round(1 / (STEPS + 1), 6), "its loss is that of an undisturbed run"
        for rank in range(record.world_size):
            assert self.kept(run, f"checkpoints/rank{rank}").read_text() == str(STEPS), "its checkpoints are whole"
        rows = event_rows(run.folder.path)
        replaced = sum(row["k"] == "pilot" and row["restart"] > 0 for row in rows)
        reasons = sum(row["k"] in EXPLAINING for row in rows) + replaced
        assert record.attempts - 1 <= reasons, f"{record.attempts} attempts, {reasons} reasons"
        until(lambda: not self.site.processes(run), "no process of it is left", LONGEST_S)

    def _last_end(self, run: Run) -> list[LedgerRow]:
        """The ledger without attempts that all ranks ended in, and that a node was lost of before it could say so.

        The next attempt began at their last checkpoint and had nothing left to do.
        """
        rows, lost = ledger_rows(self.kept(run, "ledger")), self._lost_attempts(run)
        return [row for row in rows if row.attempt not in lost or row.what == "begin"]

    def _lost_attempts(self, run: Run) -> set[int]:
        events = event_rows(run.folder.path)
        return {row["attempt"] - 1 for row in events if row["k"] == "retry" and row.get("lost") is not None}

    def _is_done_again(self, run: Run, world_size: int) -> bool:
        """Whether all ranks had ended in an attempt that was not the last."""
        rows = ledger_rows(self.kept(run, "ledger"))
        last = max(row.attempt for row in rows)
        ended = [row.attempt for row in rows if row.what == "end" and row.attempt < last]
        return any(ended.count(attempt) == world_size for attempt in ended)

    def _row(self, strike: Strike, wrong: str) -> dict[str, Any]:
        fault, run = strike.fault, self.runs[strike.fault.run]
        record, shape = run.record(), self.plan.shapes[fault.run]
        alone = sum(other.run == fault.run for other in self.plan.faults) == 1
        told = {"kind": fault.kind, "step": fault.step, "lasts_s": fault.lasts_s, "hit": strike.hit}
        went_on_s = self._went_on_s(run, strike.at) if alone and strike.hit else None
        outcome = {
            "state": record.state,
            "attempts": record.attempts,
            "again": record.state == "succeeded" and self._is_done_again(run, record.world_size),
            "went_on_s": went_on_s,
            "wrong": strike.broken or wrong,
        }
        return {**told, "nodes": shape.nodes, "spares": shape.spares, **outcome}

    def _went_on_s(self, run: Run, at: float) -> float | None:
        goes = sorted(row["t"] for row in event_rows(run.folder.path) if row["k"] == "go")
        later = [go for go in goes[1:] if go > at]
        return round(later[0] - at, 1) if later else None
