"""What the campaigns share: the ledger that ranks write of their beginnings and ends, and a line for each run."""

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
from podwright.lab.base import StartedLab
from podwright.launch import Run
from tests.contract.sites import Site, until

CYCLES_S = (10.0, 25.0)
"""How long a machine takes to come back from a power cycle."""
VICTIMS = ("leader", "member")
LONGEST_S = 1200.0


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


def cycle_power(site: Site, lab: StartedLab, run: Run, chance: random.Random) -> Struck:
    """A node of a run, the leader's or another, goes away in the middle of it and comes back soon."""
    victim, away_s = chance.randrange(len(VICTIMS)), chance.choice(CYCLES_S)
    site.wait_step(run, chance.randint(2, 30), rank=victim)
    host = run.record().hosts[victim]
    lab.kill_node(host)
    time.sleep(away_s)
    lab.heal(host)
    return Struck(run, f"{VICTIMS[victim]} {away_s:g} s", time.time())


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


def finish(place: str, site: Site, struck: list[Struck]) -> None:
    """Waits until all runs have ended, by a client that looks at all of them at once; every one must have succeeded."""
    ids = {row.run.id for row in struck}

    def are_over() -> bool:
        time.sleep(1.0)
        return all(record.is_final for record in launch.recent(site.session, None) if record.id in ids)

    until(are_over, "all runs end", LONGEST_S)
    faults = []
    for row in struck:
        keep_row(place, site, row)
        record = row.run.record()
        if record.state != "succeeded":
            faults.append(f"{record.id}, {row.fault}: {record.state}, {record.reason}")
    assert faults == []


def keep_row(place: str, site: Site, struck: Struck) -> None:
    """A line of the campaign's log, where `make test-nightly` wants one."""
    path = os.environ.get("PODWRIGHT_CAMPAIGN")
    if path:
        record, went_on_s = struck.run.record(), None
        goes = [event["t"] for event in site.events(struck.run, "go") if event["t"] > struck.mended]
        if goes:
            went_on_s = round(min(goes) - struck.mended, 1)
        row = {"run": record.id, "victim": f"{place} {struck.fault}", "hit": True, "state": record.state}
        with Path(path).open("a") as file:
            file.write(json.dumps({**row, "attempts": record.attempts, "went_on_s": went_on_s}) + "\n")
