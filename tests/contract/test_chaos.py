"""kill -9 of the client, a rank, a pilot, the keeper or everything, at random moments: by night.

What every change is tested with strikes when something has come about, which the contract suite does once for each of
these. Here chance picks the moment. No run is lost unless all of it was killed, no final state is wrong, no process
stays, and what was killed goes on from its checkpoint. Seeded: a failure names the seed that shows it again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from podwright import launch
from podwright.launch import Run
from podwright.runs import Record
from tests.contract.sites import END_S, LocalSite, until

VICTIMS = ("client", "client", "rank", "pilot", "leader", "keeper", "everything")
STEPS = 24
DELAYS_S = {"client": (0.2, 2.5), "rank": (0.0, 0.9)}
"""When to strike: a client from its start on, a rank while it counts, all others from the nodes' start on."""
CLIENT = """
import sys
from pathlib import Path
from podwright import launch, spec
from podwright.runs import Home
run = launch.start(launch.Session(Home.open(Path(sys.argv[1]))), spec.load_workload(sys.argv[2]))
print(run.id, flush=True)
run.wait()
"""


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def strike(site: LocalSite, victim: str, chance: random.Random) -> set[str]:
    """Start a client, wait a random while, kill; gives the victims there really were."""
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(site.home.path), str(site.folder / "workload.yaml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    delay_s = chance.uniform(*DELAYS_S.get(victim, (0.0, 1.6)))
    hit = set()
    try:
        if victim != "client":
            until(lambda: any(site.home.all_ids()), "the run's folder")
            run = Run(site.home, next(iter(site.home.all_ids())))
            born = "rank" if victim == "rank" else "node"
            until(lambda: len(site.events(run, born)) == 2, "its victim")
        time.sleep(delay_s)
        if victim == "client":
            return {"client"}
        found = processes(site, run)
        for pid in found.get(victim, []) if victim != "everything" else [p for pids in found.values() for p in pids]:
            kill(pid)
            hit.add(victim)
        return hit
    finally:
        client.kill()
        client.wait()


def processes(site: LocalSite, run: Run) -> dict[str, list[int]]:
    last = {event["node"]: event["pid"] for event in site.events(run, "node")}
    ranks = {event["rank"]: event["pid"] for event in site.events(run, "rank")}
    alive = set(site.processes(run))
    keeper = [pid for pid in alive if pid not in last.values() and pid not in ranks.values() and is_keeper(pid)]
    groups = {"keeper": keeper, "leader": [last[0]] if 0 in last else [], "pilot": [last[1]] if 1 in last else []}
    groups["rank"] = [ranks[1]] if 1 in ranks else []
    groups["rest"] = list(alive)
    return {name: [pid for pid in pids if pid in alive] for name, pids in groups.items()}


def is_keeper(pid: int) -> bool:
    try:
        return b"\0keep\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def keep_count(seed: int, victim: str, hit: set[str], record: Record) -> None:
    """A line of the campaign's log, where `make test-nightly` wants one: what was killed and what became of the run."""
    path = os.environ.get("PODWRIGHT_CAMPAIGN")
    if path:
        row = {"seed": seed, "victim": victim, "hit": bool(hit), "state": record.state, "attempts": record.attempts}
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")


def trial(site: LocalSite, seed: int) -> None:
    chance = random.Random(seed)
    victim = VICTIMS[seed % len(VICTIMS)]
    site.workload(f"--steps {STEPS} --pause 0.04", nodes=2, retries=3)
    hit = strike(site, victim, chance)
    for run_id in list(site.home.all_ids()):
        run = site.adopt(run_id)
        record = run.wait(END_S)
        allowed = {"succeeded", "lost"} if "everything" in hit else {"succeeded"}
        assert record.state in allowed, f"seed {seed}, {victim}: {record.state}, {record.reason}"
        assert until(lambda run=run: not site.processes(run), "all processes of the run end")
        if record.state == "succeeded":
            told = site.steps(run, 1)
            assert told[-1] == STEPS, f"seed {seed}"
            untold = set(range(1, STEPS + 1)) - set(told)
            kills = len(site.events(run, "go")) - 1
            assert len(untold) <= kills, f"seed {seed}: more than the words of the last moment were lost: {untold}"
            back = [a - b for a, b in pairwise(told) if b <= a]
            assert all(steps <= 1 for steps in back), f"seed {seed}: more than the last step was done again"
        assert {r.state for r in launch.recent(site.session)} == {record.state}
        keep_count(seed, victim, hit, record)
        run.remove()
    leftovers = [path.name for path in site.home.runs.iterdir() if not path.name.endswith(".part")]
    assert leftovers == [], f"seed {seed}"


@pytest.mark.nightly
@pytest.mark.parametrize("batch", range(8))
def test_forty_random_kills(local: LocalSite, batch: int) -> None:
    for seed in range(batch * 5, batch * 5 + 5):
        trial(local, seed)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batch", range(20))
def test_two_hundred_random_kills(local: LocalSite, batch: int) -> None:
    for seed in range(1000 + batch * 10, 1000 + batch * 10 + 10):
        trial(local, seed)
