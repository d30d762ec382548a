"""Runs that another home of the same user has cancelled: to Slurm a job whose pilots were stopped has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from podwright.clients.ssh import Reach
from podwright.engines.base import Status
from podwright.engines.slurm.site import run_path
from podwright.runs import RunFolder
from podwright.runs.events import CancelAsked
from podwright.spec.problems import Refusal

LOOK = 'for path; do if [ -e "$path/cancelled" ]; then echo "$path"; fi; done'
ELSEWHERE = "was cancelled from another home"


def cancelled_elsewhere(
    reach: Reach, folders: Sequence[RunFolder], statuses: Mapping[str, Status]
) -> dict[str, Status]:
    """Return the runs among those that failed which carry the mark of a cancelling that this home knows nothing of."""
    failed = {run_path(folder): folder.id for folder in folders if _may_be(folder, statuses[folder.id])}
    marked: list[str] = []
    if failed:
        with suppress(Refusal):  # the next look asks again
            marked = reach.call(["sh", "-c", LOOK, "podwright", *failed]).text.splitlines()
    ids = [failed[path] for path in marked if path in failed]
    return {run_id: replace(statuses[run_id], outcome="cancelled", reason=ELSEWHERE) for run_id in ids}


def _may_be(folder: RunFolder, status: Status) -> bool:
    if (status.state, status.outcome) != ("gone", "failed"):
        return False
    return not any(isinstance(event, CancelAsked) for event in folder.client_events())
