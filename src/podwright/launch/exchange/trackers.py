"""The trackers of experiments there are, by the word that names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from podwright.launch.exchange.mlflow import MlflowServer
from podwright.launch.exchange.tensorboard import TensorBoardFolder
from podwright.launch.exchange.tracked import Tracked
from podwright.launch.exchange.wandb import WandbFolder
from podwright.spec.problems import refuse, short

SERVER = "mlflow"


class Tracker(Protocol):
    """Where runs are written."""

    def write(self, run: Tracked) -> int:
        """Add what is not there yet; return how many values that were."""


TRACKERS: Mapping[str, Callable[[str], Tracker]] = {
    SERVER: MlflowServer,
    "tensorboard": TensorBoardFolder,
    "wandb": WandbFolder,
}


def tracker_of(to: str) -> Tracker:
    """Return what `KIND=PLACE` names."""
    kind, _, place = to.partition("=")
    if kind not in TRACKERS or not place:
        kinds = ", ".join(f"{name}={'URL' if name == SERVER else 'DIR'}" for name in TRACKERS)
        raise refuse(f'"{short(to)}" names no tracker', hint=f"it is one of {kinds}", field="--to")
    return TRACKERS[kind](place)


def whole_place(to: str) -> str:
    """Return the same with a folder's whole path: who writes there later may be elsewhere."""
    kind, _, place = to.partition("=")
    return to if kind == SERVER else f"{kind}={Path(place).absolute()}"
