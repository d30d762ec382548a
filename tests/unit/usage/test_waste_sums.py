"""The sums behind `podwright waste`: every number here can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.engines.usage import Allocation
from podwright.runs.events import Sample
from podwright.usage.waste import Use, backfill_gpu_s, busy_gpus, sum_up

HOUR = 3600.0


def held(job: str, hours: tuple[float, float], gpus: int = 8, **fields: Any) -> Allocation:
    """A job that held GPUs from one hour to another, and had not waited."""
    start, end = (hour * HOUR for hour in hours)
    facts = {
        "job": job,
        "name": f"job{job}",
        "user": "ann",
        "partition": "gpu",
        "eligible_at": start,
        "started_at": start,
        "ended_at": end,
        "limit_s": None,
        "nodes": 1,
        "gpus_asked": gpus,
        "gpus": gpus,
    }
    return Allocation(**{**facts, **fields})


def waits(job: str, since: float, gpus: int = 8, **fields: Any) -> Allocation:
    """A job that waits and has not started."""
    waiting = replace(held(job, (since, since), gpus), started_at=None, ended_at=None, gpus=0)
    return replace(waiting, **fields)


@pytest.mark.parametrize(
    ("allocation", "busy", "use"),
    [
        (held("1", (0, 2)), None, Use(16, 0, 16)),
        (held("1", (0, 2)), 6.0, Use(16, 4, 0)),
        (held("1", (0, 2)), 8.0, Use(16, 0, 0)),
        (held("1", (0, 2), gpus_asked=1), None, Use(16, 14, 2)),
        (held("1", (0, 2), gpus_asked=1), 0.5, Use(16, 15, 0)),
        (held("1", (-5, 2)), None, Use(16, 0, 16)),
        (held("1", (8, 20)), None, Use(16, 0, 16)),
        (held("1", (8, 20), ended_at=None), None, Use(16, 0, 16)),
        (held("1", (-3, -1)), None, Use(0, 0, 0)),
    ],
)
def test_hours_held_idle_and_not_measured(allocation: Allocation, busy: float | None, use: Use) -> None:
    found = sum_up([allocation], {} if busy is None else {allocation: busy}, None, 0, 10 * HOUR)
    assert found.total == use


def test_sums_by_user_and_run() -> None:
    first = held("1", (0, 1), run="toy-2222", user="ann")
    again = held("1", (2, 3), run="toy-2222", user="ann")
    other = held("7", (0, 4), gpus=2, user="bob")
    whole = held("9", (0, 1), gpus_asked=1, user="bob")
    found = sum_up([first, again, other, whole], {first: 4.0, again: 8.0}, 16, 0, 4 * HOUR)
    assert found.users == {"bob": Use(16, 7, 9), "ann": Use(16, 4, 0)}
    assert list(found.users) == ["bob", "ann"]
    assert [(job.job, job.use.idle) for job in found.jobs] == [("9", 7), ("1", 4), ("7", 0)]
    assert [job.job for job in found.whole_nodes] == ["9"]
    assert found.total == Use(32, 11, 9)


def test_jobs_without_gpus_do_not_count() -> None:
    found = sum_up([held("1", (0, 5), gpus=0)], {}, 8, 0, 10 * HOUR)
    assert (found.total, found.jobs, found.backfill_gpu_h) == (Use(), [], 0)


def test_the_share_of_time_limits_is_weighted_by_gpus() -> None:
    short = held("1", (0, 1), gpus=1, limit_s=4 * HOUR)
    full = held("2", (0, 2), gpus=3, limit_s=2 * HOUR)
    endless = held("3", (0, 9), gpus=8)
    assert sum_up([short, full, endless], {}, None, 0, 10 * HOUR).limit_share == pytest.approx(7 / 10)
    assert sum_up([endless], {}, None, 0, 10 * HOUR).limit_share is None


@pytest.mark.parametrize(
    ("name", "jobs", "gpu_hours"),
    [
        ("nobody waits", [held("1", (0, 5))], 0),
        ("nothing is free", [held("1", (0, 10), gpus=16), waits("2", 0)], 0),
        ("it would have fitted all the time", [held("1", (0, 10)), waits("2", 0)], 80),
        ("it came late", [held("1", (0, 10)), waits("2", 6)], 32),
        ("it is too large", [held("1", (0, 10)), waits("2", 0, gpus=9)], 0),
        ("two share what is free", [waits("1", 0, gpus=4), waits("2", 0, gpus=12)], 160),
        ("the second does not fit beside the first", [waits("1", 0, gpus=10), waits("2", 1, gpus=7)], 100),
        ("it counts for as long as it ran", [held("1", (5, 7), eligible_at=0)], 16),
        ("it counts for as long as it may run", [waits("1", 0, limit_s=HOUR)], 8),
        ("it left before it started", [waits("1", 0, ended_at=2 * HOUR)], 16),
        ("it started in between", [held("1", (3, 10), eligible_at=0)], 24),
    ],
)
def test_what_backfill_could_have_used_of_16_gpus(name: str, jobs: list[Allocation], gpu_hours: float) -> None:
    assert backfill_gpu_s(jobs, 16, 0, 10 * HOUR) / HOUR == pytest.approx(gpu_hours), name


TIMES = st.floats(0, 10)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, st.integers(1, 8)), max_size=12))
def test_backfill_never_uses_more_than_was_free(rows: list[tuple[float, float, float, int]]) -> None:
    jobs = []
    for number, (*times, gpus) in enumerate(rows):
        eligible, start, end = sorted(times)
        jobs.append(held(str(number), (start, end), gpus, eligible_at=eligible * HOUR))
    whole = 8 * len(rows) or 1
    used = sum(one.gpus * (one.ended_at - one.started_at) for one in jobs if one.ended_at and one.started_at)
    assert backfill_gpu_s(jobs, whole, 0, 10 * HOUR) <= whole * 10 * HOUR - used + 1e-3


def test_busy_gpus_come_from_samples_of_that_time() -> None:
    def sample(t: float, node: int, **values: float) -> Sample:
        return Sample(t, (0, 0), node, {name.replace("_", ".", 2): value for name, value in values.items()})

    samples = [
        sample(1, 0, gpu_0_utilization_percent=100, cpu_percent=50),
        sample(2, 0, gpu_0_utilization_percent=50),
        sample(2, 1, gpu_0_utilization_percent=25),
        sample(9, 1, gpu_0_utilization_percent=100),
    ]
    assert busy_gpus(samples, 0, 5) == pytest.approx(1.0)
    assert busy_gpus(samples, 20, 30) is None
    assert busy_gpus([Sample(1.0, (0, 0), 0, {"cpu_percent": 3.0})], 0, 5) is None
