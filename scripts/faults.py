"""Strikes runs in seeded mixes, on this machine or on a lab, and adds what became of them to a log.

    python -m scripts.faults local --seeds 0-299 [--minutes 30]
    python -m scripts.faults slurm --replay 17 [--shrink]
    python -m scripts.faults --page

A seed that is in the log is passed over, so that a campaign goes on where it was ended. `--replay` plays one seed again
and logs nothing; with `--shrink` a round that fails is played with fewer faults until these alone fail. `--page` writes
the table. Labs need root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podwright.lab.kubernetes import KubernetesLab
from podwright.lab.slurm.lab import SlurmLab
from podwright.launch import Run
from scripts.fault_plan import KINDS, Fault, Plan, plan_of, shrunk, still_open
from scripts.fault_table import page
from tests.contract.fault_round import Round
from tests.contract.sites import END_S, KubernetesSite, LocalSite, Site, SlurmSite, mend, until
from tests.paths import ROOT
from tests.real.labs import kubernetes_lab, slurm_lab

RESULTS = ROOT / "benchmarks" / "results"
LOG, PAGE, FINDINGS = (RESULTS / name for name in ("faults.jsonl", "faults.md", "faults_found.md"))
LIGHT = "{patch: {spec: {containers: [{name: pilot, resources: {requests: {cpu: 10m, memory: 64Mi}}}]}}}"
OF_KUBERNETES = {"resources": "{cpus: 1, memory: 256MiB}", "kubernetes": LIGHT}


class Field:
    """Where rounds are played: this machine, or a lab that is mended between two of them."""

    def __init__(self, lab: SlurmLab | KubernetesLab | None) -> None:
        self._lab = lab

    def play(self, plan: Plan) -> list[dict[str, Any]]:
        """Play a round in a home of its own; return what became of each fault."""
        self._mend()
        with tempfile.TemporaryDirectory(prefix="pwfaults-") as name:
            site = self._site(Path(name))
            try:
                fields = OF_KUBERNETES if plan.engine == "kubernetes" else {}
                rows = Round(site, plan, lambda run, file: self._kept(run, file, Path(name)), fields).play()
                self._check_empty()
                return rows
            finally:
                site.close()

    def _site(self, folder: Path) -> Site:
        if isinstance(self._lab, SlurmLab):
            return SlurmSite(self._lab, folder)
        if isinstance(self._lab, KubernetesLab):
            return KubernetesSite(self._lab, folder)
        return LocalSite("local", folder)

    def _mend(self) -> None:
        if isinstance(self._lab, SlurmLab):
            mend(self._lab)
        elif isinstance(self._lab, KubernetesLab):
            lab = self._lab
            ready = dict.fromkeys(lab.node_states(), "Ready")
            until(lambda: lab.heal() is not None and lab.node_states() == ready, "all nodes are ready", END_S)

    def _check_empty(self) -> None:
        lab = self._lab
        if isinstance(lab, SlurmLab):
            until(lambda: not lab.run(["squeue", "--noheader"]).stdout, "no job is left", END_S)
        elif isinstance(lab, KubernetesLab):
            words = ["get", "pods", "--namespace=lab", "--output=name"]
            over = "--field-selector=status.phase!=Succeeded,status.phase!=Failed"
            until(lambda: not lab.kubectl(*words, over).stdout, "no Kubernetes pod is left", END_S)

    def _kept(self, run: Run, file: str, folder: Path) -> Path:
        if isinstance(self._lab, SlurmLab):
            return self._lab.shared / "runs" / run.id / file
        if isinstance(self._lab, KubernetesLab):
            return run.pull([file], folder / "pulled" / run.id / file)[0]
        return run.folder.path / file


@contextmanager
def field_of(engine: str) -> Iterator[Field]:
    """Give the place of an engine; a lab is gone afterwards."""
    if engine == "slurm":
        with slurm_lab(nodes=6, gpus=0, min_job_age_s=300) as slurm:
            yield Field(slurm)
    elif engine == "kubernetes":
        with kubernetes_lab(nodes=4, virtual_nodes=0, grace_s=30) as kubernetes:
            yield Field(kubernetes)
    else:
        yield Field(None)


def wrong_of(field: Field, plan: Plan) -> tuple[list[dict[str, Any]], str]:
    """Play a round; return its rows, and what is wrong with it in words."""
    try:
        rows = field.play(plan)
    except Exception as error:  # whatever it is, the round failed, and the next one comes
        words = f"{type(error).__name__}: {error}"
        return [unknown_row(plan, fault, words) for fault in plan.faults], words
    return rows, "; ".join(dict.fromkeys(row["wrong"] for row in rows if row["wrong"]))


def unknown_row(plan: Plan, fault: Fault, wrong: str) -> dict[str, Any]:
    """Return the row of a fault in a round of which no more is known."""
    shape = plan.shapes[fault.run]
    told = {"kind": fault.kind, "step": fault.step, "lasts_s": fault.lasts_s, "hit": True}
    outcome = {"state": "", "attempts": 0, "again": False, "went_on_s": None, "wrong": wrong}
    return {**told, "nodes": shape.nodes, "spares": shape.spares, **outcome}


def campaign(field: Field, engine: str, seeds: range, minutes: float) -> int:
    """Play what is open of these seeds and log it; return how many rounds failed."""
    until_s, failed = time.monotonic() + 60 * minutes, 0
    for seed in still_open(engine, seeds, log_rows()):
        if time.monotonic() > until_s:
            break
        plan = plan_of(engine, seed)
        rows, wrong = wrong_of(field, plan)
        failed += bool(wrong)
        print(f"{engine} {seed}: {'; '.join(fault.text for fault in plan.faults)}: {wrong or 'well'}", flush=True)
        line = json.dumps({"engine": engine, "seed": seed, "commit": commit(), "faults": rows})
        with LOG.open("a") as file:
            file.write(line + "\n")
    return failed


def replay(field: Field, plan: Plan, shrink: bool) -> int:
    """Play one round; where it fails and shall shrink, find the fewest faults that fail."""
    _, wrong = wrong_of(field, plan)
    print(f"{plan}\n{wrong or 'well'}", flush=True)
    if wrong and shrink:
        smallest = shrunk(plan, lambda smaller: bool(wrong_of(field, smaller)[1]))
        print(f"the fewest that fail: {'; '.join(fault.text for fault in smallest.faults)}")
    return int(bool(wrong))


def log_rows() -> list[dict[str, Any]]:
    """Return the rounds that were logged."""
    return [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []


def commit() -> str:
    """Return the commit that is checked out."""
    words = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Play a campaign or one seed, or write the page; exit 1 where a round failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.faults", description="Faults in seeded mixes.")
    parser.add_argument("engine", nargs="?", choices=list(KINDS))
    parser.add_argument("--seeds", default="0-299", help="the first and the last (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no round after so many")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the table of all that was logged")
    options = parser.parse_args()
    failed = 0
    if options.engine:
        first, _, last = options.seeds.partition("-")
        with field_of(options.engine) as field:
            if options.replay is not None:
                failed = replay(field, plan_of(options.engine, options.replay), options.shrink)
            else:
                failed = campaign(field, options.engine, range(int(first), int(last or first) + 1), options.minutes)
    if options.page:
        PAGE.write_text(page(log_rows(), FINDINGS.read_text()))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
