"""A rank is called slow by its own work or its GPU's clocks, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from podwright.analysis.straggler import RankWatch, Straggler
from podwright.runs.events import Sample
from tests.unit.runs.made import START, event, go, parsed, result

RANKS = [event("rank", 2, n=rank // 2, rank=rank, gpu=rank % 2) for rank in range(4)]


def found(rows: Sequence[dict[str, object]], samples: Iterable[Sample] = ()) -> Straggler | None:
    watch = RankWatch()
    for one in parsed(go(), *RANKS, *rows):
        watch.take(one)
    return watch.straggler(lambda: samples)


def works(*ranks: int, slowest: float = 1.3, others: float = 1.0) -> list[dict[str, object]]:
    told: dict[str, Any] = {"work_s": others, "work_slowest_s": slowest}
    return [result(3 + at, step=20 * at, work_slowest_rank=rank, **told) for at, rank in enumerate(ranks)]


def clocks(slow_mhz: float, reasons: int = 0, busy: float = 95) -> list[Sample]:
    rows = []
    for second in range(10):
        for node in range(2):
            values = {"gpu.0.sm_clock_mhz": 1980.0, "gpu.1.sm_clock_mhz": slow_mhz if node else 1980.0}
            values |= {f"gpu.{index}.utilization_percent": busy for index in range(2)}
            rows.append(Sample(START + second, (0, 0), node, values | {"gpu.1.throttle_reasons": float(reasons)}))
    return rows


def test_the_same_rank_three_times_in_a_row() -> None:
    slow = found(works(0, 3, 3, 3))
    assert slow is not None
    assert slow.as_json() == {
        "rank": 3,
        "host": "b",
        "slower_by": 0.3,
        "evidence": "1.3 s of own work in a step, 1 s in the middle of the others, 3 times in a row",
    }
    assert slow.text.startswith("rank 3 on b is slower by 30%: ")


def test_what_changes_or_is_little_is_nothing() -> None:
    assert found(works(3, 3)) is None
    assert found(works(3, 1, 3)) is None
    assert found(works(3, 3, 3, slowest=1.05)) is None
    assert found(works(3, 3, 3, others=0.0)) is None


def test_from_step_times_alone_nothing_is_slow() -> None:
    told = [result(3 + at, rank=rank, step=at, step_s=1.0 + rank) for at in range(9) for rank in range(4)]
    assert found(told) is None


def test_clocks_count_where_no_work_is_told_and_all_are_busy() -> None:
    slow = found([], clocks(1300, reasons=0x20))
    assert slow is not None
    assert (slow.rank, slow.host) == (3, "b")
    assert slow.evidence == "its GPU runs at 1300 MHz, the others at 1980 MHz, held back by heat"
    assert found([], clocks(1900)) is None
    assert found([], clocks(1300, busy=3)) is None
    assert found(works(0, 1, 2), clocks(1300)) is None, "its own work says more than clocks"


def test_an_attempt_before_says_nothing_of_this_one() -> None:
    assert found([*works(3, 3, 3), go(50, (0, 1)), event("rank", 51, (0, 1), rank=3, gpu=1)]) is None
    assert RankWatch().straggler(lambda: ()) is None
