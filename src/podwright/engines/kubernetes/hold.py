"""Runs that we keep suspended: each for a reason that its object names, so that only we resume it, and only then.

Reasons come one after the other: a run that is being made, comes after another and is beyond the points that may run at
once waits for all three. What Kueue or a person suspended has no reason of ours and is never resumed by us.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import JSON_PATCH, Api, ApiError
from podwright.clients.kubernetes.kinds import BY_NAME, ObjectKind
from podwright.clients.kubernetes.paths import path_of

MAKING, AFTER, PARALLEL, TOGETHER = "making", "after", "parallel", "together"
"""Its files are not all there yet; another run must succeed first; enough points run; not all its nodes are free."""
REASONS = (MAKING, AFTER, PARALLEL, TOGETHER)
MARKS = (names.HELD, names.HELD_THEN, names.HELD_FOR, names.HELD_UNTIL)
GONE, CHANGED = 404, 422
"""What the server answers when the object, or what the patch tests, is not as it was a moment ago."""


def held_reason(job: Mapping[str, Any]) -> str:
    """Return why we keep a run suspended; nothing where we do not. In 0.1 the mark was the run that comes first."""
    mark = str(_annotations(job).get(names.HELD, ""))
    if mark and mark not in REASONS:
        return AFTER
    return mark


def held_reasons(job: Mapping[str, Any]) -> list[str]:
    """Return why we keep a run suspended, and what it waits for after that."""
    later = str(_annotations(job).get(names.HELD_THEN, ""))
    return [reason for reason in (held_reason(job), *later.split()) if reason]


def held_run(job: Mapping[str, Any]) -> str:
    """Return the run that this one waits for; nothing where it waits for none."""
    if held_reason(job) != AFTER:
        return ""
    return str(_annotations(job).get(names.HELD_FOR) or _annotations(job)[names.HELD])


def _annotations(job: Mapping[str, Any]) -> Mapping[str, Any]:
    return job["metadata"].get("annotations") or {}


def hold(kind: ObjectKind, own: dict[str, Any], reason: str) -> None:
    """Make an object be suspended for this reason, and after it for those that it is held for already.

    Kueue resumes whatever has the label of a queue as soon as there is room, so that the label waits too.
    """
    annotations = own["metadata"].setdefault("annotations", {})
    later = [annotations[name] for name in (names.HELD, names.HELD_THEN) if name in annotations]
    annotations[names.HELD] = reason
    if later:
        annotations[names.HELD_THEN] = " ".join(later)
    queue = own["metadata"]["labels"].pop(names.QUEUE, None)
    if queue:
        annotations[names.HELD_QUEUE] = queue
    *above, field = kind.suspend.strip("/").split("/")
    place = own
    for name in above:
        place = place[name]
    place[field] = True


def release(api: Api, site: Mapping[str, Any], job: Mapping[str, Any], reason: str) -> None:
    """Let a run wait for this reason no longer; one that another client released, or that is gone, is left alone."""
    if held_reason(job) != reason:
        return
    kind, name = BY_NAME[site["kind"]], job["metadata"]["name"]
    change = json.dumps(release_patch(kind, job)).encode()
    try:
        api.patch(path_of(kind.name, site["namespace"], name), change, JSON_PATCH)
    except ApiError as error:
        if error.status not in (GONE, CHANGED):
            raise


def release_patch(kind: ObjectKind, job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of the one patch that takes a reason away: all of them are done, or none.

    The first step fails when the mark is not there any more, so that of two clients only one resumes the run, and a run
    that somebody suspended afterwards stays suspended.
    """
    annotations = job["metadata"]["annotations"]
    test = {"op": "test", "path": pointer(names.HELD), "value": annotations[names.HELD]}
    following, _, rest = annotations.get(names.HELD_THEN, "").partition(" ")
    if following:
        shorter = _replace(names.HELD_THEN, rest) if rest else _remove(names.HELD_THEN)
        return [test, _replace(names.HELD, following), shorter]
    kept = [name for name in MARKS if name in annotations]
    steps = [test, *(_remove(name) for name in kept)]
    queue = annotations.get(names.HELD_QUEUE)
    if queue is None:
        return [*steps, {"op": "replace", "path": kind.suspend, "value": False}]
    # Kueue resumes it, when it has admitted it.
    label = f"/metadata/labels/{_escaped(names.QUEUE)}"
    return [*steps, _remove(names.HELD_QUEUE), {"op": "add", "path": label, "value": queue}]


def _remove(annotation: str) -> dict[str, Any]:
    return {"op": "remove", "path": pointer(annotation)}


def _replace(annotation: str, value: str) -> dict[str, Any]:
    return {"op": "replace", "path": pointer(annotation), "value": value}


def pointer(annotation: str) -> str:
    """Return the place of an annotation in an object."""
    return f"/metadata/annotations/{_escaped(annotation)}"


def _escaped(name: str) -> str:
    """Return a name as a JSON pointer spells it."""
    return name.replace("~", "~0").replace("/", "~1")
