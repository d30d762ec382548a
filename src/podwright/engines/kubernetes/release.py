"""Lets a run start that was made suspended, because it comes after another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import JSON_PATCH, Api, ApiError
from podwright.clients.kubernetes.kinds import BY_NAME, ObjectKind
from podwright.clients.kubernetes.paths import path_of
from podwright.engines.kubernetes.states import held_run

GONE, CHANGED = 404, 422
"""What the server answers when the object, or what the patch tests, is not as it was a moment ago."""


def release(api: Api, site: Mapping[str, Any], run_id: str) -> None:
    """Resume a run that we hold; one that another client released, or that is gone, is left alone."""
    kind = BY_NAME[site["kind"]]
    path = path_of(kind.name, site["namespace"], run_id)
    job = api.find(path)
    if job is None or not held_run(job):
        return
    change = json.dumps(release_patch(kind, job)).encode()
    try:
        api.patch(path, change, JSON_PATCH)
    except ApiError as error:
        if error.status not in (GONE, CHANGED):
            raise


def release_patch(kind: ObjectKind, job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of the one patch that releases a run: all of them are done, or none.

    The first step fails when the mark is not there any more, so that of two clients only one resumes the run, and a run
    that somebody suspended afterwards stays suspended.
    """
    annotations = job["metadata"]["annotations"]
    mark = f"/metadata/annotations/{_escaped(names.HELD)}"
    steps: list[dict[str, Any]] = [
        {"op": "test", "path": mark, "value": annotations[names.HELD]},
        {"op": "remove", "path": mark},
    ]
    queue = annotations.get(names.HELD_QUEUE)
    if queue is None:
        return [*steps, {"op": "replace", "path": kind.suspend, "value": False}]
    # Kueue resumes it, when it has admitted it.
    label = f"/metadata/labels/{_escaped(names.QUEUE)}"
    kept = f"/metadata/annotations/{_escaped(names.HELD_QUEUE)}"
    return [*steps, {"op": "remove", "path": kept}, {"op": "add", "path": label, "value": queue}]


def _escaped(name: str) -> str:
    """Return a name as a JSON pointer spells it."""
    return name.replace("~", "~0").replace("/", "~1")
