"""The page about the long campaigns: every run is counted once, under what struck it and where."""

from __future__ import annotations

from scripts.campaign import summary


def test_each_place_has_its_table() -> None:
    fixed = {"hit": True, "state": "succeeded", "attempts": 1}
    rows = [
        {**fixed, "victim": "rank", "attempts": 3},
        {**fixed, "victim": "everything", "state": "lost", "hit": False},
        {**fixed, "victim": "slurm node", "attempts": 2},
        {**fixed, "victim": "slurm node"},
    ]
    page = summary(rows, "2026-01-02")
    local, _, slurm = page.partition("## Faults on a real Slurm")
    assert "| everything | 1 | 1 | 0 | 1 | 0 |\n| rank | 1 | 0 | 1 | 0 | 2 |" in local
    assert "| node | 2 | 0 | 2 | 0 | 1 |" in slurm
    assert page.endswith("4 runs, 2026-01-02, `make test-nightly`.\n")


def test_how_long_runs_took_to_go_on() -> None:
    fixed = {"hit": True, "state": "succeeded", "attempts": 2, "allowed_s": 156.0, "once": True}
    leader = {**fixed, "victim": "slurm-power leader 10 s"}
    rows = [{**leader, "went_on_s": float(number)} for number in range(1, 101)]
    rows.append({**leader, "went_on_s": None})
    rows.append({**fixed, "victim": "slurm-power controller twice", "went_on_s": None, "once": False})
    page = summary(rows, "2026-01-02")
    assert "| leader 10 s | 101 | 101 | 101 | 101 | 50 s | 95 s | 100 s | 156 s |" in page
    assert "| controller twice | 1 | 1 | 0 | 1 |  |  |  |  |" in page
    assert "| all | 102 | 102 | 101 | 102 | 50 s | 95 s | 100 s | 156 s |" in page


def test_a_place_without_runs_has_no_table() -> None:
    row = {"victim": "rank", "hit": True, "state": "succeeded", "attempts": 1}
    assert "Slurm" not in summary([row], "2026-01-02")
