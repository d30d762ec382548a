"""One clock for step, epoch, share, rate and time left."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from podwright.runs.training_progress import ProgressClock, TrainingProgress

FIRST = (0, 0)
Tell = tuple[float, Mapping[str, float]]


def clock_of(*tells: Tell, is_read: bool = False, rank: int = 0) -> ProgressClock:
    clock = ProgressClock()
    if is_read:
        clock.note_read()
    for t, values in tells:
        clock.take(t, FIRST, rank, values)
    return clock


def at(clock: ProgressClock, now: float, is_over: bool = False) -> TrainingProgress:
    progress = clock.at(now, FIRST, is_over)
    assert progress is not None
    return progress


def bars(most: int, steps: int, until: float, **more: float) -> list[Tell]:
    """Return what a bar for each epoch says, ten steps a second."""
    tells: list[Tell] = []
    for tick in range(int(until) + 1):
        epoch, step = divmod(10 * tick, steps)
        tells.append((float(tick), {"epoch": epoch + 1.0, "step": float(step), "steps": float(steps), **more}))
    return [tell for tell in tells if tell[1]["epoch"] <= most]


def test_nothing_counted_is_no_progress() -> None:
    assert clock_of((0.0, {"loss": 0.5})).at(1.0, FIRST, is_over=False) is None
    assert clock_of((0.0, {"step": 1})).at(1.0, (0, 1), is_over=False) is None


@pytest.mark.parametrize("until", [3.0, 12.0, 23.0, 29.0])
def test_a_bar_over_epochs_has_the_time_of_the_whole_run(until: float) -> None:
    """The last epoch of a bar over epochs said ETA 0 s from its beginning to its end."""
    reached = at(clock_of(*bars(3, 100, until, epochs=3.0), is_read=True), until)
    assert (reached.of, reached.rate, reached.rate_unit) == ("run", 10.0, "steps/s")
    assert reached.eta_s == pytest.approx(30.0 - until, abs=0.11)
    assert reached.share == pytest.approx(until / 30.0, abs=0.001)


def test_without_a_number_of_epochs_it_is_of_the_epoch() -> None:
    reached = at(clock_of(*bars(3, 100, 13.0), is_read=True), 13.0)
    assert (reached.of, reached.share, reached.eta_s) == ("epoch", 0.3, 7.0)


def test_a_program_that_reports_itself_counts_the_steps_of_the_run() -> None:
    tells = [(float(t), {"step": 10.0 * t, "steps": 300.0, "epoch": t // 10 + 1.0, "epochs": 3.0}) for t in range(3)]
    assert at(clock_of(*tells), 2.0).share == pytest.approx(20 / 300, abs=0.001)


def test_steps_that_go_on_through_epochs_are_of_the_run() -> None:
    tells = [(float(t), {"step": 10.0 * t, "steps": 300.0, "epoch": t // 10}) for t in range(14)]
    reached = at(clock_of(*tells, is_read=True), 13.0)
    assert (reached.of, reached.share, reached.eta_s) == ("run", round(130 / 300, 4), 17.0)


def test_the_time_of_an_epoch_has_all_that_is_done_between_two() -> None:
    tells: list[Tell] = []
    for epoch in range(3):
        tells += [
            (30.0 * epoch + t, {"epoch": epoch + 1.0, "epochs": 4.0, "step": t, "steps": 20.0}) for t in range(20)
        ]
    reached = at(clock_of(*tells, is_read=True), 79.0)
    assert reached.eta_s == pytest.approx(30.0 * (4 - 2 - 19 / 20), abs=1.1)


def test_epochs_alone_are_told_at_their_beginning_or_with_what_they_came_to() -> None:
    begun = clock_of((0.0, {"epoch": 1, "epochs": 4}), (10.0, {"epoch": 2}))
    assert at(begun, 10.0) == TrainingProgress(None, None, 2, 4, 0.25, 0.1, "epochs/s", 30.0)
    ended = clock_of((0.0, {"epoch": 1, "epochs": 4, "loss": 2.0}), (10.0, {"epoch": 2, "loss": 1.0}))
    assert at(ended, 10.0).share == 0.5


def test_a_rate_is_of_twenty_steps_or_thirty_seconds() -> None:
    slow = [(10.0 * n, {"step": float(n)}) for n in range(30)]
    slower = [(290.0 + 20.0 * n, {"step": 30.0 + n}) for n in range(20)]
    assert at(clock_of(*slow), 290.0).rate == 0.1
    assert at(clock_of(*slow, *slower), 700.0).rate == pytest.approx(20 / 390, rel=0.03)
    fast = [(float(n), {"step": 100.0 * n}) for n in range(60)]
    faster = [(60.0 + n, {"step": 6000.0 + 200.0 * n}) for n in range(32)]
    assert at(clock_of(*fast, *faster), 91.0).rate == pytest.approx(200.0, rel=0.02)


def test_time_goes_on_between_two_counts_and_not_further() -> None:
    clock = clock_of((0.0, {"step": 0, "steps": 100}), (10.0, {"step": 10}))
    assert [at(clock, moment).eta_s for moment in (10.0, 10.5, 30.0)] == [90.0, 89.5, 80.0]
    assert at(clock, 11.0, is_over=True).eta_s is None


def test_other_ranks_and_attempts_that_are_over_do_not_count() -> None:
    clock = clock_of((0.0, {"step": 1, "steps": 100}), (1.0, {"step": 2}))
    clock.take(1.5, FIRST, 3, {"step": 90})
    assert at(clock, 1.0).step == 2
    clock.take(5.0, (0, 1), 0, {"step": 7})
    clock.take(6.0, FIRST, 0, {"step": 99})
    again = clock.at(6.0, (0, 1), is_over=False)
    assert again is not None
    assert (again.step, again.steps, again.rate) == (7, None, None)


def test_a_step_that_is_repeated_after_a_fault_does_not_start_over() -> None:
    tells = [(float(t), {"step": 10.0 * t, "steps": 200.0}) for t in range(10)]
    tells += [(20.0 + t, {"step": 70.0 + 10.0 * t, "steps": 200.0}) for t in range(3)]
    reached = at(clock_of(*tells, is_read=True), 22.0)
    assert (reached.of, reached.share, reached.rate) == ("run", 0.45, 10.0)


def test_another_bar_within_an_epoch_is_not_the_training() -> None:
    tells = [*bars(3, 100, 9.0, epochs=3.0), (9.5, {"step": 2.0, "steps": 8.0})]
    reached = at(clock_of(*tells, is_read=True), 9.5)
    assert (reached.step, reached.steps) == (90, 100)


def test_without_a_total_there_is_no_share_and_no_time_left() -> None:
    reached = at(clock_of((0.0, {"step": 1}), (1.0, {"step": 3})), 1.0)
    assert reached == TrainingProgress(step=3, rate=2.0, rate_unit="steps/s")
