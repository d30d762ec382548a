"""`sync`: what runs told, written for trackers of experiments; again it adds only what came since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from podwright.launch.exchange.mlflow import MlflowServer
from podwright.launch.exchange.tensorboard import TensorBoardFolder
from podwright.launch.exchange.tracked import Tracked
from podwright.launch.exchange.wandb import WandbFolder
from podwright.launch.run import Run, is_over
from podwright.launch.session import Session
from podwright.spec.problems import refuse, short

LOOK_S = 2.0


class Tracker(Protocol):
    """Where runs are written."""

    def write(self, run: Tracked) -> int:
        """Add what is not there yet; return how many values that were."""


TRACKERS: Mapping[str, Callable[[str], Tracker]] = {
    "mlflow": MlflowServer,
    "tensorboard": TensorBoardFolder,
    "wandb": WandbFolder,
}


@dataclass(frozen=True)
class RunsSynced:
    """Runs with how many values of them were written."""

    runs: tuple[str, ...]
    to: str
    written: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `sync`."""
        return {"runs": list(self.runs), "to": self.to, "written": self.written}


def tracker_of(to: str) -> Tracker:
    """Return what `KIND=PLACE` names."""
    kind, _, place = to.partition("=")
    if kind not in TRACKERS or not place:
        kinds = ", ".join(f"{name}={'URL' if name == 'mlflow' else 'DIR'}" for name in TRACKERS)
        raise refuse(f'"{short(to)}" names no tracker', hint=f"it is one of {kinds}", field="--to")
    return TRACKERS[kind](place)


def sync_runs(session: Session, runs: Sequence[Run], to: str, follow: bool = False) -> Iterator[RunsSynced]:
    """Write what runs told; with `follow` go on until they are over. Yield at each look what was written by it."""
    tracker = tracker_of(to)
    left = list(chain.from_iterable(run.parts() for run in runs))
    ids = tuple(run.id for run in left)
    while left:
        written, over = 0, []
        for run in left:
            tracked = Tracked.of(run)
            written += tracker.write(tracked)
            if is_over(run, tracked.record):
                over.append(run)
        yield RunsSynced(ids, to, written)
        left = [run for run in left if run not in over] if follow else []
        if left:
            session.clock.sleep(LOOK_S)
