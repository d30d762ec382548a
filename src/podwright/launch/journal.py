"""What clients did and saw: appended to the run's client.jsonl, one write a line, by any number of clients."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from podwright.files.journal import append, lines_of
from podwright.pilot.masking import Masker
from podwright.pilot.protocol import KEY_EPOCH, KEY_KIND, KEY_TIME, Epoch
from podwright.runs import RunFolder
from podwright.runs.store import home_refusal
from podwright.spec.problems import Refusal

TEXTS = ("why", "reason", "text")
"""Fields that hold what another program said."""


def note(folder: RunFolder, kind: str, epoch: Epoch | None = None, **fields: Any) -> None:
    """Append what a client did or saw to the run's client.jsonl; `epoch` is the attempt it is about, if it is.

    What others said passes the masker: an error text may repeat a secret.
    """
    row: dict[str, Any] = {KEY_TIME: round(time.time(), 3), KEY_KIND: kind, "pid": os.getpid()}
    if epoch is not None:
        row[KEY_EPOCH] = list(epoch)
    line = lines_of({**row, **fields, **_masked_texts(folder, fields)})
    path = folder.path / "client.jsonl"
    try:
        _set_aside(path)
        append(path, line)
    except OSError as error:
        raise home_refusal(folder.path, error) from None


def _set_aside(path: Path) -> None:
    """Move what is no plain file, and lies where ours belongs, out of the way: else the run could never be settled."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            path.rename(path.with_name(f"{path.name}.{time.time_ns()}.aside"))


def _masked_texts(folder: RunFolder, fields: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: fields[name] for name in TEXTS if isinstance(fields.get(name), str)}
    if not texts:
        return {}
    names: list[str] = []
    with suppress(Refusal):  # of a run whose own words cannot be read, nobody knows which secrets it had
        names = folder.asked.secrets
    mask = masker_of(names)
    return {name: mask.text(text) for name, text in texts.items()}


def masker_of(names: Iterable[str]) -> Masker:
    """Return what takes the values of these variables out of a text; those that are not set here cannot be in it."""
    return Masker(os.environ[name] for name in names if name in os.environ)
