"""Runs for Weights & Biases, offline: a folder that `wandb sync` sends when its owner wants it.

What it has written it cannot read back, so that a run is written once, when it is over.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from podwright.files.locks import wait_for
from podwright.files.whole import write_whole
from podwright.launch.exchange.tracked import Tracked
from podwright.spec.problems import refuse


class WandbFolder:
    """A folder of offline runs, each noted when it is whole."""

    def __init__(self, place: str) -> None:
        self.folder = Path(place).expanduser()

    def write(self, run: Tracked) -> int:
        """Write a run that is over and not written yet; return how many values that were."""
        if not run.record.is_final:
            raise refuse(f"{run.id} is {run.record.state}", hint="for W&B a run is written once it is over")
        self.folder.mkdir(parents=True, exist_ok=True)
        written = self.folder / f"podwright-{run.id}.json"
        with wait_for(self.folder / ".podwright.lock"):
            if written.exists():
                return 0
            self._write(run)
            write_whole(written, json.dumps({"run": run.id, "values": len(run.points)}).encode())
        return len(run.points)

    def _write(self, run: Tracked) -> None:
        begun = _wandb().init(
            mode="offline",
            dir=str(self.folder),
            id=run.id,
            name=run.id,
            project=run.asked.name,
            tags=list(run.record.tags),
            notes=run.record.note or None,
            config={**run.parameters, **run.facts},
            settings=_settings(),
        )
        steps = sorted(run.points, key=lambda point: point.step)
        for step, points in groupby(steps, key=lambda point: point.step):
            begun.log({point.name: point.value for point in points}, step=step)
        begun.finish(exit_code=run.record.exit_code or 0)


def _wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise refuse("wandb is not installed", hint="pip install 'podwright[wandb]'", field="--to") from None
    return wandb


def _settings() -> Any:
    """Return settings by which nothing is read of this machine and this program: the run was elsewhere."""
    return _wandb().Settings(console="off", disable_git=True, save_code=False, x_disable_stats=True, silent=True)
