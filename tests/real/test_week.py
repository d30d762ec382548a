"""A week of an ordinary user: 300 runs with failures, sweeps, tags, exports and pruning, by the commands they type."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.people import Person, people

pytestmark = [pytest.mark.nightly, pytest.mark.netns, pytest.mark.slow, pytest.mark.xdist_group("week")]
DAYS = 7
SWEEPS, POINTS = 4, 10
KEPT = 3
TRAIN = """
import sys
rate, day = float(sys.argv[1]), int(sys.argv[2])
for step in range(3):
    print(f"step {step} loss={abs(rate - 0.5) + 1 / (step + day + 1):.4f}", flush=True)
if rate == 0.9:
    raise RuntimeError(f"diverged on day {day}")
"""
SWEEP = """
name: toy
code: code
command: python3 train.py {{matrix.lr}} {day}
matrix: {{lr: [{rates}]}}
"""
SINGLE = """
name: single
code: code
command: python3 train.py {rate} {day}
"""


@pytest.fixture(scope="module")
def user() -> Iterator[Person]:
    with people(["w"]) as (person,):
        person.write("code/train.py", TRAIN)
        yield person


def ask(user: Person, *words: str, code: int = 0) -> str:
    done = user.podwright(*words)
    assert done.returncode == code, f"podwright {' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def listed(user: Person, where: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(ask(user, "ps", "--all", "--where", where, "--json"))
    return rows


def work_a_day(user: Person, day: int) -> int:
    """Start what a day has, with one rate that diverges in each sweep; return how many runs that were."""
    rates = ", ".join(f"0.{number}" for number in range(POINTS))
    user.write("sweep.yaml", SWEEP.format(day=day, rates=rates))
    for _ in range(SWEEPS):
        ask(user, "run", "sweep.yaml", "--tag", f"day{day},sweep", "--quiet", code=1)
    user.write("single.yaml", SINGLE.format(day=day, rate=0.5))
    ask(user, "run", "single.yaml", "--tag", f"day{day}", "--note", "as a check", "--quiet")
    user.write("single.yaml", SINGLE.format(day=day, rate=0.9))
    ask(user, "run", "single.yaml", "--tag", f"day{day}", "--quiet", code=1)
    return SWEEPS * POINTS + 2


def look_back(user: Person, day: int) -> None:
    """Find what failed and what was best, mark it, give it away and take it up again."""
    failed = [row for row in listed(user, f"tag=day{day} and state=failed") if not row.get("points")]
    singles = [row for row in failed if row["name"] == "single"]
    assert len(singles) == 1
    said = user.podwright("show", singles[0]["id"]).stdout
    assert f"RuntimeError: diverged on day {day}" in said
    best = json.loads(ask(user, "best", "toy", "--metric", "loss", "--json"))
    assert best["matrix"]["lr"] == 0.5
    ask(user, "tag", best["id"], f"+best{day}", "-sweep")
    assert [row["id"] for row in listed(user, f"tag=best{day}")] == [best["id"]]
    ask(user, "export", best["id"], "--to", f"day{day}.zip")
    ask(user, "import", f"day{day}.zip", "--as", f"kept-{day}")
    same = json.loads(ask(user, "show", f"kept-{day}", "--json"))
    assert (same["results"], same["matrix"]) == (best["results"], best["matrix"])
    ask(user, "diff", best["id"], f"kept-{day}")


def test_a_week_leaves_what_was_kept_and_nothing_else(user: Person) -> None:
    started = 0
    for day in range(1, DAYS + 1):
        started += work_a_day(user, day)
        look_back(user, day)
    points = listed(user, "name=toy and matrix.lr>=0")
    assert len(points) + len(listed(user, "name=single")) == started + DAYS
    ask(user, "rebuild")
    assert len(listed(user, "name=toy and matrix.lr>=0")) == len(points)
    ask(user, "prune", "--older", "1s", "--keep-last", str(KEPT), "--yes")
    kept = listed(user, "state=succeeded or state=failed")
    assert len({row["parent"] or row["id"] for row in kept}) == KEPT
    left = {path.name for path in (user.home / "runs").iterdir() if not path.name.startswith(".")}
    assert {row["id"] for row in kept} <= left
    alive = subprocess.run(["pgrep", "--uid", str(user.uid)], capture_output=True, text=True, check=False)
    assert alive.stdout.split() == []
