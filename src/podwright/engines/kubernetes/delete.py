"""Ends runs: many of them by one request, where the user may; else some at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import Api, ApiError
from podwright.clients.kubernetes.paths import path_of

AT_ONCE = 32
CHUNK = 100
"""Runs that one selector names: an address may not be longer than some thousand characters."""
FORBIDDEN = 403
Place = tuple[str, str, str]
"""Kind, namespace and name."""


def delete_runs(api: Api, places: Sequence[Place]) -> None:
    """Delete the runs' own objects with all that belongs to them, which gives ranks the grace they were promised."""
    for (kind, namespace), group in groupby(sorted(places), lambda place: place[:2]):
        ids = [run_id for _, _, run_id in group]
        for at in range(0, len(ids), CHUNK):
            _delete(api, kind, namespace, ids[at : at + CHUNK])


def _delete(api: Api, kind: str, namespace: str, ids: Sequence[str]) -> None:
    if len(ids) > 1 and _delete_together(api, path_of(kind, namespace), ids):
        return
    with ThreadPoolExecutor(max_workers=min(len(ids), AT_ONCE)) as pool:
        list(pool.map(lambda run_id: api.delete(path_of(kind, namespace, run_id), "Foreground"), ids))


def _delete_together(api: Api, path: str, ids: Sequence[str]) -> bool:
    """Return whether the user may delete a collection; `pod grant` gives that right since 0.2."""
    try:
        api.delete_all(path, f"{names.RUN} in ({','.join(ids)})", "Foreground")
    except ApiError as error:
        if error.status == FORBIDDEN:
            return False
        raise
    return True
