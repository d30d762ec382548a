"""What a run cost, reckoned when it is over, from the prices of the pod it went to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.launch.session import POD_FILE
from podwright.runs import Record, RunFolder
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.costs.run_costs import RunCosts
    from podwright.spec import Pod


def pod_of(folder: RunFolder) -> Pod | None:
    """Return the pod that a run went to, from its own copy; None of a run on this machine alone."""
    from podwright.spec import load_pod

    path = folder.job_path / POD_FILE
    if not path.exists():
        return None
    return load_pod(path)


def reckon(folder: RunFolder, record: Record, pod: Pod) -> RunCosts:
    """Reckon a run with the prices of a pod."""
    from podwright.analysis.energy import energy_of
    from podwright.costs.ownership import pod_costs
    from podwright.costs.run_costs import reckon_run

    events = list(folder.events())
    energy = energy_of(folder.samples(), dict(enumerate(record.hosts)))
    return reckon_run(folder.asked, record, events, energy, (pod_costs(pod), pod.costs), kept_bytes(folder))


def cost_of(folder: RunFolder, record: Record) -> dict[str, Any] | None:
    """Return what goes into the record; None where no prices are given, and whatever is wrong with them."""
    with suppress(Refusal, OSError, ValueError):
        pod = pod_of(folder)
        if pod is None:
            return None
        from podwright.costs.ownership import is_priced  # and all of design, which no run on this machine needs

        if is_priced(pod):
            return reckon(folder, record, pod).as_cost()
    return None


def kept_bytes(folder: RunFolder) -> int:
    """Return how much of a run is kept here: results and checkpoints."""
    size = 0
    for name in ("results", "checkpoints"):
        for parent, _, files in os.walk(folder.path / name):
            for file in files:
                with suppress(OSError):
                    size += Path(parent, file).lstat().st_size
    return size
