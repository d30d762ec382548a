"""How far a training is, how fast it goes and how long it still takes: one clock for every place that says so.

Step, epoch, share, rate and time left are of the same thing: of the whole run where its total is known, else of the
part that is. Programs count in two ways. Some count the steps of the whole run; the bars of most frameworks start over
with each epoch. Which of the two it is shows when an epoch ends; until then it depends on who counts, the program that
reports to us or a line that was written for people.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

RECENT_STEPS, RECENT_S = 20, 30.0
"""A rate is of this many steps or of this long, whichever is longer."""
RECENT_PASSES = 3
COUNTS = frozenset({"step", "steps", "epoch", "epochs"})
SETTINGS = frozenset({"lr", "learning_rate"})
SLACK = 0.02
FAR_BACK = 0.5
"""Steps that fall below this share of where they were start over; those that fall less were repeated."""


@dataclass(frozen=True)
class TrainingProgress:
    """Where a training is; what nobody can say is None."""

    step: float | None = None
    steps: float | None = None
    epoch: float | None = None
    epochs: float | None = None
    share: float | None = None
    rate: float | None = None
    rate_unit: str | None = None
    eta_s: float | None = None
    of: str = "run"
    """What `share` and `eta_s` are of: "run" or "epoch"."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a record holds it."""
        return asdict(self)


class CountAt(NamedTuple):
    """How many steps, or epochs, an attempt had done at some time."""

    t: float
    done: float


class Recent:
    """The counts of late: as many as a rate needs."""

    def __init__(self) -> None:
        self._counts: deque[CountAt] = deque()

    def add(self, t: float, done: float) -> None:
        """Take the next count; one that goes back begins anew, and what was told twice is heard once."""
        counts = self._counts
        if counts and done < counts[-1].done:
            counts.clear()
        if counts and (done == counts[-1].done or t < counts[-1].t):
            return
        counts.append(CountAt(t, done))
        while len(counts) > 2 and t - counts[1].t >= RECENT_S and done - counts[1].done >= RECENT_STEPS:
            counts.popleft()

    @property
    def gap_s(self) -> float:
        """Return how far the last two counts are apart."""
        return self._counts[-1].t - self._counts[-2].t if len(self._counts) > 1 else 0.0

    @property
    def per_s(self) -> float | None:
        """Return how many there are in a second; None before it is known."""
        if len(self._counts) < 2 or self._counts[-1].t <= self._counts[0].t:
            return None
        first, last = self._counts[0], self._counts[-1]
        return (last.done - first.done) / (last.t - first.t)


class ProgressClock:
    """Takes what the lowest rank that counts tells in one attempt: others tell the same, some a little later."""

    def __init__(self) -> None:
        self._rank: int | None = None
        self._attempt: tuple[int, int] = (-1, 0)
        self._is_read = False
        self._begin()

    def _begin(self) -> None:
        self._told: dict[str, float] = {}
        self._at = 0.0
        self._starts_over: bool | None = None
        """Whether steps are those of an epoch; None while it does not show."""
        self._before = 0.0
        """Steps of the passes that are over."""
        self._step_at_turn: float | None = None
        self._lowest_epoch: float | None = None
        self._has_results = self._ends_epochs = self._counts_first = self._is_fractional = False
        self._steps, self._epochs = Recent(), Recent()
        self._passes: deque[float] = deque(maxlen=RECENT_PASSES + 1)
        """When the latest epochs began."""

    def note_read(self) -> None:
        """Note that its steps were read in lines that were written for people."""
        self._is_read = True

    def take(self, t: float, attempt: tuple[int, int], rank: int, values: Mapping[str, float]) -> None:
        """Take what a rank told; an attempt that is over counts no more."""
        if attempt < self._attempt or not self._speaks(attempt, rank, values):
            return
        self._has_results = self._has_results or not (COUNTS | SETTINGS).issuperset(values)
        counts = {name: values[name] for name in COUNTS if name in values}
        turned = "epoch" in counts and counts["epoch"] > self._told.get("epoch", counts["epoch"])
        if "steps" in counts and self._is_another_bar(counts, turned):
            del counts["steps"]
            counts.pop("step", None)
        if "epoch" in counts:
            self._take_epoch(t, counts["epoch"])
        if "step" in counts:
            self._take_step(t, counts["step"], turned)
        elif turned:
            self._step_at_turn = self._told.get("step")
        self._told.update(counts)
        if counts:
            self._at = t

    def _speaks(self, attempt: tuple[int, int], rank: int, values: Mapping[str, float]) -> bool:
        if attempt > self._attempt:
            self._attempt, self._rank = attempt, None
            self._begin()
        if COUNTS.isdisjoint(values):
            return self._rank is None or rank == self._rank
        if self._rank is not None and rank > self._rank:
            return False
        if self._rank is not None and rank < self._rank:
            self._begin()
        self._rank = rank
        return True

    def _is_another_bar(self, counts: Mapping[str, float], turned: bool) -> bool:
        """Return whether a bar of another length begins within an epoch, such as that of a validation."""
        known = self._told.get("steps")
        if known is None or counts["steps"] == known or turned or "epoch" not in self._told:
            return False
        return counts.get("step", 0.0) < self._told.get("step", 0.0)

    def _take_epoch(self, t: float, epoch: float) -> None:
        before = self._told.get("epoch")
        if before is None:
            self._ends_epochs = self._has_results and "step" not in self._told
            self._counts_first = "step" in self._told
        if self._lowest_epoch is None or epoch < self._lowest_epoch:
            self._lowest_epoch = epoch
        self._is_fractional = self._is_fractional or epoch != int(epoch)
        if before is None or epoch > before:
            self._passes.append(t)
        self._epochs.add(t, epoch)

    def _take_step(self, t: float, step: float, turned: bool) -> None:
        before = self._told.get("step")
        if before is not None and step < before * FAR_BACK:
            self._starts_over = True
            self._before += max(before, self._told.get("steps", before))
            self._step_at_turn = None
        elif before is not None and step < before:
            self._steps = Recent()
        elif self._step_at_turn is not None and step > self._step_at_turn:
            self._starts_over, self._step_at_turn = self._starts_over or False, None
        if turned and self._step_at_turn is None and (before is None or step >= before):
            self._step_at_turn = step
        self._steps.add(t, self._before + step)

    def at(self, now: float, attempt: tuple[int, int] | None, is_over: bool) -> TrainingProgress | None:
        """Return where the training is by what was told in the newest attempt; None before it counts anything."""
        told = self._told
        if attempt is None or self._attempt < attempt or ("step" not in told and "epoch" not in told):
            return None
        unit = "step" if "step" in told else "epoch"
        recent = self._steps if unit == "step" else self._epochs
        rate = recent.per_s
        done, total, of = self._reach()
        left_s = None if is_over else self._left_s(done, total, of)
        if left_s is not None:
            # Since it was last told it has gone on, but nobody knows further than to the next count.
            left_s = max(0.0, left_s - min(max(0.0, now - self._at), recent.gap_s))
        return TrainingProgress(
            **told,
            share=None if total is None else round(min(1.0, max(0.0, done / total)), 4),
            rate=None if rate is None else float(f"{rate:.4g}"),
            rate_unit=None if rate is None else f"{unit}s/s",
            eta_s=None if left_s is None else round(left_s, 1),
            of=of,
        )

    def _reach(self) -> tuple[float, float | None, str]:
        """Return how much is done, of how much where that is known, and of what."""
        step, steps, epochs = (self._told.get(name) for name in ("step", "steps", "epochs"))
        if step is not None and steps and not self._is_of_epoch():
            return step, steps, "run"
        if epochs and self._lowest_epoch is not None:
            return self._epochs_done() + self._share_of_epoch(), epochs, "run"
        if step is not None and steps:
            return step, steps, "epoch"
        return 0.0, None, "run"

    def _is_of_epoch(self) -> bool:
        """Return whether steps are those of an epoch, as far as one can say now."""
        if self._starts_over is not None:
            return self._starts_over
        if self._is_fractional or self._lowest_epoch is None or not self._is_read:
            return False
        epochs, share = self._told.get("epochs"), self._told["step"] / self._told["steps"]
        if epochs is None:
            return not self._counts_first
        done = self._epochs_done()
        is_within = done / epochs - SLACK <= share <= (done + 1) / epochs + SLACK
        return epochs > 1 and not (done > 0 and is_within)

    def _epochs_done(self) -> float:
        """Return how many epochs are over: most programs count the one they are in, from 1 on or from 0."""
        first = 0.0 if self._lowest_epoch == 0 else 1.0
        done = self._told["epoch"] - first
        is_told_at_the_end = self._ends_epochs and "steps" not in self._told
        return max(0.0, done + 1 if is_told_at_the_end else done)

    def _share_of_epoch(self) -> float:
        steps = self._told.get("steps")
        if not steps or "step" not in self._told or not self._is_of_epoch():
            return 0.0
        if self._step_at_turn is not None and self._starts_over is not False and self._told["step"] >= steps * FAR_BACK:
            return 0.0  # what is known of steps is from before the turn
        return min(1.0, self._told["step"] / steps)

    def _left_s(self, done: float, total: float | None, of: str) -> float | None:
        if total is None:
            return None
        left = max(0.0, total - done)
        per_s, steps = self._steps.per_s, self._told.get("steps")
        by_epochs = of == "run" and total == self._told.get("epochs") and (not steps or self._is_of_epoch())
        if not by_epochs:
            return left / per_s if per_s else None
        epoch_s = self._epoch_s()
        if epoch_s is None and per_s and steps:
            epoch_s = steps / per_s
        return None if epoch_s is None else left * epoch_s

    def _epoch_s(self) -> float | None:
        """Return how long an epoch took of late, with all that is done between two."""
        if len(self._passes) < 2:
            return None
        return (self._passes[-1] - self._passes[0]) / (len(self._passes) - 1)
