"""Finding the runs of a user in their folder on a cluster, with what the queue knows of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from podwright.clients.ssh import Reach
from podwright.engines.found import AT_WORK, OVER, WAITING, FoundRun, asked_of
from podwright.engines.site import SITE
from podwright.engines.slurm.controller import last_word
from podwright.engines.slurm.queue import QueueRow
from podwright.engines.slurm.states import seen
from podwright.pilot.protocol import parse_line
from podwright.runs.states import BY_END
from podwright.runs.typed import texts
from podwright.spec.problems import refuse

AT_ONCE = 500
"""Runs of one question that are named on its command line."""
Rows = Mapping[str, Sequence[QueueRow]]


def found_runs(reach: Reach, python: str, folder: str, ids: Sequence[str], queue: Rows) -> Iterator[FoundRun]:
    """Yield these runs as they lie in the folder, or all but points of others."""
    for at in range(0, max(len(ids), 1), AT_ONCE):
        where, rows = _ask(reach, python, folder, ids[at : at + AT_ONCE])
        for row in rows:
            run = _found(row, where, queue)
            if run is not None and (not ids or run.asked.id in ids):
                yield run if not reach.is_here else _here(run, where)


def _ask(reach: Reach, python: str, folder: str, ids: Sequence[str]) -> tuple[str, list[dict[str, Any]]]:
    program = files("podwright.engines.slurm").joinpath("on_cluster.py").read_bytes()
    answer = reach.call([python, "-I", "-S", "-", folder, *ids], program)
    if answer.code:
        raise refuse(f"the runs in {folder} cannot be listed: {last_word(answer)}", exit_code=3)
    lines = [parse_line(line) for line in answer.out.splitlines()]
    head, *rows = lines or [None]
    return str((head or {}).get("folder") or folder), [row for row in rows if row is not None]


def _found(row: Mapping[str, Any], folder: str, queue: Rows) -> FoundRun | None:
    asked = asked_of(row, "slurm")
    if asked is None:
        return None
    listed = list(chain.from_iterable(queue.get(name, ()) for name in (asked.id, *asked.point_ids)))
    owner = str(row.get("owner") or "").partition("_")[0]
    handle = next((found.array for found in listed), owner if owner.isdecimal() else "")
    return FoundRun(asked, _state(row, listed), handle, {SITE: _site(row, folder)})


def _state(row: Mapping[str, Any], listed: Sequence[QueueRow]) -> str:
    """Return how far a run is: what is in the queue counts, then how its pilots ended it."""
    meanings = {seen(found.state, found.reason).state for found in listed}
    if "there" in meanings:
        return AT_WORK
    if "waiting" in meanings:
        return WAITING
    ended = BY_END.get(str(row.get("ended")))
    return ended or ("cancelled" if row.get("cancelled") else OVER)


def _site(row: Mapping[str, Any], folder: str) -> bytes:
    """Return how the run is reached: where it lies is what we asked, its shell is made of words that are words."""
    site = row.get("site")
    told: Mapping[str, Any] = site if isinstance(site, dict) else {}
    return json.dumps({"folder": folder, **{name: texts(told.get(name)) or [] for name in ("step", "wrap")}}).encode()


def _here(run: FoundRun, folder: str) -> FoundRun:
    return FoundRun(run.asked, run.state, run.handle, run.files, Path(folder, "runs", run.asked.id))
