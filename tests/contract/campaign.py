"""What the campaigns share: the ledger that ranks write of their beginnings and ends, and a line for each run.

A wave strikes many runs at once and stands alone: any of them can be run by its name, in any order, and its lines are
added to those of the waves before (PODWRIGHT_CAMPAIGN names the file, `scripts/campaign.py` sums it up).
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from podwright import launch
from podwright.engines.slurm.engine import REJOIN_S
from podwright.lab.base import Lab
from podwright.launch import Run
from podwright.pilot.protocol import Order
from tests.contract.sites import Site, until

CYCLES_S = (10.0, 25.0)
"""How long a machine takes to come back from a power cycle."""
VICTIMS = ("leader", "member")
LONGEST_S = 1200.0
SILENCE_S, START_S = Order.silence_s, 60.0
"""After which silence a node is missed, and how long a run may take to begin again once it may."""


class LedgerRow(NamedTuple):
    time: float
    what: str
    rank: int
    attempt: int


class Struck(NamedTuple):
    """A run, what was done to it, and when that was over."""

    run: Run
    fault: str
    mended: float


def ledger_rows(path: Path) -> list[LedgerRow]:
    rows = [line.split() for line in path.read_text().splitlines()]
    return [LedgerRow(float(at), what, int(rank), int(attempt)) for at, what, rank, attempt in rows]


def check_ended_once(rows: list[LedgerRow], ranks: int) -> None:
    """All ranks ended in one attempt, each once, and that was the last one.

    In an attempt that lost a node, ranks of the others may have come to their end too: they do it again.
    """
    everybody = list(range(ranks))
    ended = {row.attempt: sorted(r.rank for r in rows if r[1::2] == ("end", row.attempt)) for row in rows}
    begun = {row.attempt: sorted(r.rank for r in rows if r[1::2] == ("begin", row.attempt)) for row in rows}
    assert [attempt for attempt, who in ended.items() if who == everybody] == [max(begun)], rows
    assert all(len(set(who)) == len(who) for who in (*ended.values(), *begun.values())), rows


def cycle_power(site: Site, lab: Lab, run: Run, chance: random.Random) -> Struck:
    """A node of a run, the leader's or another, goes away in the middle of it and comes back soon."""
    victim, away_s = chance.randrange(len(VICTIMS)), chance.choice(CYCLES_S)
    site.wait_step(run, chance.randint(2, 120), rank=victim)
    host = run.record().hosts[victim]
    lab.kill_node(host)
    time.sleep(away_s)
    mended = time.time()  # its own start is part of what the run waits for
    lab.heal(host)
    return Struck(run, f"{VICTIMS[victim]} {away_s:g} s", mended)


def at_once(strikes: list[Callable[[], Struck]]) -> list[Struck]:
    """Makes all faults side by side; one that could not be made fails."""
    struck: list[Struck] = []
    threads = [threading.Thread(target=lambda strike=strike: struck.append(strike())) for strike in strikes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(struck) == len(strikes), "a fault could not be made"
    return struck


def finish(place: str, site: Site, struck: list[Struck], ledger_of: Callable[[Run], Path], requeue_s: float) -> None:
    """Waits for the ends of all runs as a client that looks at all at once; each succeeded, once by its ledger.

    `requeue_s` is how long the site lets a run wait that goes back into its queue.
    """
    ids = {row.run.id for row in struck}

    def are_over() -> bool:
        time.sleep(1.0)
        return all(record.is_final for record in launch.recent(site.session, None) if record.id in ids)

    until(are_over, "all runs end", LONGEST_S)
    faults = {f"{row.run.id}, {row.fault}": fault_of(row.run, ledger_of) for row in struck}
    for row, fault in zip(struck, faults.values(), strict=True):
        keep_row(place, site, row, fault == "", SILENCE_S + REJOIN_S + requeue_s + START_S)
    assert {who: fault for who, fault in faults.items() if fault} == {}


def fault_of(run: Run, ledger_of: Callable[[Run], Path]) -> str:
    """What is wrong with the end of a run; empty where it is as it must be."""
    record = run.record()
    if record.state != "succeeded":
        return f"{record.state}, {record.reason}"
    try:
        check_ended_once(ledger_rows(ledger_of(run)), record.world_size)
    except AssertionError as error:
        return str(error)
    return ""


def keep_row(place: str, site: Site, struck: Struck, once: bool, allowed_s: float) -> None:
    """A line of the campaign's log, where one is wanted; `went_on_s` is there where a fault stopped the run."""
    path = os.environ.get("PODWRIGHT_CAMPAIGN")
    if path:
        record = struck.run.record()
        row = {"run": record.id, "victim": f"{place} {struck.fault}", "hit": True, "state": record.state, "once": once}
        times = {"went_on_s": went_on_s(site, struck), "allowed_s": allowed_s}
        with Path(path).open("a") as file:
            file.write(json.dumps({**row, "attempts": record.attempts, **times}) + "\n")


def went_on_s(site: Site, struck: Struck) -> float | None:
    """How long after the fault the run went on, or began at last; None where it was not stopped."""
    goes = sorted(event["t"] for event in site.events(struck.run, "go"))
    if len(goes) < 2 and goes[0] < struck.mended:
        return None
    return round(max(float(goes[-1]) - struck.mended, 0.0), 1)
