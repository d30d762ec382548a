"""Finds TensorBoard's event files below a run's folder and makes curves of them, beside what its ranks told."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from podwright.analysis.event_files import Scalar, scalars
from podwright.analysis.reported import Told
from podwright.files.untrusted import open_untrusted
from podwright.runs import RunFolder, fields
from podwright.runs.events import Recognised
from podwright.runs.series import ToldValue

FOLDERS = ("results", "checkpoints")
MARK = ".tfevents."
MAX_FILES = 16
MAX_ENTRIES = 20_000
MAX_DEPTH = 8
MAX_NAMES = 200
MAX_VALUES = 500_000


def event_files(folder: Path) -> list[str]:
    """Return the paths of event files below a run's folder, by their names; a link is not followed."""
    paths: list[str] = []
    entries = 0
    for name in FOLDERS:
        for parent, folders, names in os.walk(folder / name):
            entries += len(folders) + len(names)
            below = Path(parent).relative_to(folder)
            if len(below.parts) > MAX_DEPTH or entries > MAX_ENTRIES:
                folders.clear()
            paths += [(below / name).as_posix() for name in names if MARK in name]
    return sorted(paths)[:MAX_FILES]


def values_of_event_files(folder: Path, unread: list[str]) -> Iterator[ToldValue]:
    """Return the values of all event files, name by name; what is wrong with a file is added to `unread`."""
    rows: dict[tuple[str, str], list[Scalar]] = {}
    left = MAX_VALUES
    for path in event_files(folder):
        parent = Path(path).parent.as_posix()
        try:
            for scalar in islice(_scalars(folder, path), left):
                left -= 1
                if len(rows) < MAX_NAMES or (parent, scalar.tag) in rows:
                    rows.setdefault((parent, scalar.tag), []).append(scalar)
        except (OSError, ValueError) as error:
            unread.append(f"{Path(path).name}: {error}")
    if not left:
        unread.append(f"event files of TensorBoard: only {MAX_VALUES} of their values are read")
    return _values(rows)


def _scalars(folder: Path, path: str) -> Iterator[Scalar]:
    with open_untrusted(folder, path) as file:
        for scalar in scalars(file):
            # A value that is no number, or at no time, can be drawn nowhere.
            if fields.number(scalar.value) is not None and fields.moment(scalar.t) is not None:
                yield scalar


def _values(rows: dict[tuple[str, str], list[Scalar]]) -> Iterator[ToldValue]:
    """Yield the values by name; a tag that several folders have is named after each of them, as TensorBoard does."""
    folders: dict[str, set[str]] = {}
    for parent, tag in rows:
        folders.setdefault(_tidy(tag), set()).add(parent)
    for (parent, tag), scalars_read in rows.items():
        name = _tidy(tag)
        if len(folders[name]) > 1:
            name = f"{_tidy(Path(parent).name)}_{name}"
        for scalar in sorted(scalars_read, key=lambda scalar: scalar.t):
            yield ToldValue(scalar.t, 0, 0, 0, 0, float(scalar.step), None, 1, name, scalar.value)


def _tidy(text: str) -> str:
    return re.sub(r"[^\w.]+|/+", "_", text.strip().lower()).strip("_") or "value"


def guessed_names(run: RunFolder) -> frozenset[str]:
    """Return the names whose values were only guessed from the output."""
    names: set[str] = set()
    for event in run.events_of(Recognised):
        names.update(str(row.get("name")) for row in event.names if row.get("how") == "form")
    return frozenset(names)


def beside(ranks: Told, guessed: frozenset[str], more: Told) -> Told:
    """Return what ranks told, and of event files what they did not; a name that was only guessed is theirs."""
    curves = {name: points for name, points in ranks.curves.items() if name not in guessed or name not in more.curves}
    curves |= {name: points for name, points in more.curves.items() if name not in curves}
    return Told(curves, ranks.progress)
