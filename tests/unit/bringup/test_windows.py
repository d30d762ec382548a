"""Changes that wait for their time, and upgrades that would lose jobs: through the door with hand-made parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from podwright.bringup import Bringup, BringupParts, ChangeWindow
from podwright.bringup.apply.windows import WaitClock, start_of
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm_releases import check_jump, release_of
from podwright.clients.ssh import Answer as SshAnswer
from podwright.spec import Pod, Refusal, load_pod
from tests.unit.bringup.test_bringup import MANAGER, NODES, POD, Bench
from tests.unit.bringup.test_bringup import bench as bench
from tests.unit.bringup.test_bringup import pod as pod


@dataclass
class Day:
    """A clock that goes on when somebody waits."""

    at_s: float = 1000.0
    on_sleep: Callable[[], None] = lambda: None
    slept: list[float] = field(default_factory=list)

    def clock(self) -> WaitClock:
        return WaitClock(lambda: self.at_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.on_sleep()
        self.slept.append(seconds)
        self.at_s += seconds


def door(bench: Bench, pod: Pod, day: Day) -> Bringup:
    parts = BringupParts(bench.vault, bench, bench, bench.play, lambda asked: bench, clock=day.clock())
    return Bringup(pod, parts, bench.progress.append)


def test_nodes_are_reserved_then_changed_at_their_time_and_given_back(bench: Bench, pod: Pod) -> None:
    day = Day()
    result = door(bench, pod, day).up_at(ChangeWindow(1150.0, 4 * 3600.0))
    made, deleted = bench.lines
    assert made == (
        MANAGER,
        "scontrol create reservation ReservationName=podwright-small-1150 StartTime=now+150seconds Duration=240"
        " Users=root Flags=MAINT Nodes='g[1-4]'",
    )
    assert deleted == (MANAGER, "scontrol delete ReservationName=podwright-small-1150")
    assert day.slept == [60.0, 60.0, 30.0]
    assert [step for step in bench.happened if step[0] in ("drain", "apply", "resume")] == [
        ("apply", [MANAGER]),
        ("drain", NODES),
        ("apply", NODES),
        ("resume", NODES),
    ]
    assert result.is_known
    assert next(each.text for each in bench.progress if each.kind == "reserved") == "g[1-4]: 2 min from now"


def test_who_gives_up_waiting_leaves_no_reservation_and_no_change(bench: Bench, pod: Pod) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        door(bench, pod, Day(on_sleep=interrupted)).up_at(ChangeWindow(9000.0, 3600.0))
    assert bench.lines[-1][1].startswith("scontrol delete ReservationName=")
    assert bench.happened == []


def test_nodes_that_are_busy_until_then_are_refused_with_slurms_reason(bench: Bench, pod: Pod) -> None:
    def says_no(site: Site, host: str, line: str) -> SshAnswer:
        return SshAnswer(1, b"", "Error creating the reservation: Requested nodes are busy\n")

    bench.shell = says_no  # type: ignore[method-assign]
    with pytest.raises(Refusal) as refused:
        door(bench, pod, Day()).up_at(ChangeWindow(9000.0, 3600.0))
    assert "Slurm reserves no nodes" in str(refused.value)
    assert "Requested nodes are busy" in str(refused.value)
    assert bench.happened == []


def test_a_time_is_the_next_of_its_kind_and_never_one_that_is_over() -> None:
    now = datetime.fromisoformat("2026-11-19T21:30:00").astimezone()
    day = 86400.0
    assert start_of("22:00", now) - now.timestamp() == 1800.0
    assert start_of("21:00", now) - now.timestamp() == day - 1800.0
    assert start_of("2026-11-20T21:30", now) - now.timestamp() == day
    with pytest.raises(Refusal, match="is over"):
        start_of("2026-11-19T21:00", now)
    with pytest.raises(Refusal, match='"soon" is not a time'):
        start_of("soon", now)


@pytest.mark.parametrize(
    ("installed", "wanted"), [("22.05", "22.05"), ("22.05", "23.11"), ("23.02", "24.11"), ("24.05", "25.11")]
)
def test_a_release_within_the_window_is_taken(installed: str, wanted: str) -> None:
    check_jump(installed, wanted)


@pytest.mark.parametrize(
    ("installed", "wanted", "said"),
    [
        ("22.05", "24.11", "24.11 reads the state of 23.02, 23.11, 24.05; from 22.05 on"),
        ("21.08", "23.11", "23.11 reads the state of 22.05, 23.02; from 21.08 on"),
        ("24.11", "22.05", "22.05 cannot read the state of 24.11"),
        ("22.05", "31.05", "Slurm 31.05 is upgraded with is not known"),
    ],
)
def test_a_jump_that_would_lose_jobs_is_refused(installed: str, wanted: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_jump(installed, wanted)
    assert said in str(refused.value)


def test_the_step_between_is_named_and_nothing_is_changed(bench: Bench, pod: Pod, tmp_path: Path) -> None:
    """Debian 12 has 22.05, Debian 13 has 24.11; between them lies one that Debian never had."""
    path = tmp_path / "other.yaml"
    text = pod.source.decode().replace("  settings:", '  versions: {slurm: "24.11"}\n  settings:')
    path.write_text(text)
    bench.applied = {MANAGER}
    bench.releases = {"slurmctld": "22.05.8-4+deb12u3"}
    for change in (lambda door: door.upgrade(2), lambda door: door.up(), lambda door: door.roll(1)):
        with pytest.raises(Refusal) as refused:
            change(bench.bringup(load_pod(path)))
        assert "upgrade to 23.11 first" in str(refused.value)
    assert {step for step, _ in bench.happened} == {"observe"}
    with pytest.raises(Refusal, match="names no release"):
        bench.bringup(load_pod(POD)).upgrade(1)
    assert release_of("1:24.11.5-4") == "24.11"
