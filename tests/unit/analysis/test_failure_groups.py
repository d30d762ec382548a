"""Fifty points, two kinds of failure: they are grouped by cause, and the page and the JSON say so in one line."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.analysis.failure_groups import cause_of, group_failures
from podwright.report import render_comparison
from podwright.runs import Record
from podwright.runs.events import RankFailed
from tests.unit.report.made import made
from tests.unit.report.test_page import Reader

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 79 GiB"


def failed(host: str = "dgx1", **more: Any) -> RankFailed:
    return RankFailed(time=1.0, epoch=(0, 0), node=0, sequence=1, host=host, rank=0, why="exited with 1", **more)


def record(number: int, state: str = "failed", reason: str = "") -> Record:
    return Record(f"toy-1-{number}", "toy", "local", state, "", 1, 1, 0.0, parent="toy-1", reason=reason)


@pytest.mark.parametrize(
    ("tail", "signal", "cause"),
    [
        ((OOM.format(2),), None, "out of memory"),
        (("MemoryError: std::bad_alloc: out of memory",), None, "out of memory"),
        (("Traceback ...", "ValueError: bad shape (3, 4) at 0x7f01"), None, "ValueError: bad shape (#, #) at #"),
        (("KeyboardInterrupt",), None, "KeyboardInterrupt"),
        (("last words",), "SIGSEGV", "SIGSEGV"),
        ((), None, "exited with #"),
    ],
)
def test_a_cause_is_what_alike_failures_share(tail: tuple[str, ...], signal: str | None, cause: str) -> None:
    assert cause_of(record(1), failed(tail=tail, signal=signal))[0] == cause


def test_alike_failures_are_one_group() -> None:
    rows = [(record(number), [failed(tail=(OOM.format(number),))]) for number in (10, 2, 3)]
    rows += [(record(number), [failed(f"dgx{number}", signal="SIGSEGV")]) for number in (4, 5)]
    rows += [(record(6, "lost", "no answer for 10 minutes"), []), (record(7, "succeeded"), [])]
    first, second, third = group_failures(rows)
    assert first.as_json() == {
        "cause": "out of memory",
        "count": 3,
        "points": ("toy-1-2", "toy-1-3", "toy-1-10"),
        "host": "dgx1",
        "line": OOM.format(2),
    }
    assert (second.text, second.host, third.text) == ("2 SIGSEGV", None, "1 no answer for # minutes")


def test_a_page_of_fifty_points_says_it_in_one_line() -> None:
    points = []
    for number in range(1, 51):
        events: tuple[RankFailed, ...] = ()
        if number in (7, 8, 9):
            events = (failed(tail=(OOM.format(number),)),)
        elif number in (20, 30):
            events = (failed(f"dgx{number}", signal="SIGSEGV"),)
        row = {"id": f"toy-1-{number}", "parent": "toy-1", "state": "failed" if events else "succeeded"}
        whole = made({**row, "matrix": {"lr": number}, "results": {"loss": 1.0 / number}}, {}, 100.0)
        points.append(type(whole)(**{**vars(whole), "events": events}))
    page = render_comparison(points)
    said = Reader(page).lines
    assert any(line.startswith("5 of 50 points failed: 3 out of memory on dgx1, 2 SIGSEGV.") for line in said)
    assert OOM.format(7) in said
    assert page.count('href="#point-toy-1-') == 5
    assert page.count('id="point-toy-1-') == 50
