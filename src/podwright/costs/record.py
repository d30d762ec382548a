"""What a run's record says of its cost: computed when it is over, from the prices of the pod it went to."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from podwright.runs import Record, RunFolder
from podwright.runs.folder import POD_FILE
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.spec import Pod


def pod_of(folder: RunFolder) -> Pod | None:
    """Return the pod that a run went to, from its own copy; None of a run on this machine alone."""
    from podwright.spec import load_pod

    path = folder.job_path / POD_FILE
    if not path.exists():
        return None
    return load_pod(path)


def record_cost(folder: RunFolder, record: Record) -> dict[str, Any] | None:
    """Return what goes into the record; None where no prices are given, and whatever is wrong with them."""
    with suppress(Refusal, OSError, ValueError):
        pod = pod_of(folder)
        if pod is None:
            return None
        # Only now: they need all of design, and a run on this machine does not.
        from podwright.costs.ownership import is_priced
        from podwright.costs.run_costs import cost_of_run

        if is_priced(pod):
            return cost_of_run(folder, record, pod).as_cost()
    return None
