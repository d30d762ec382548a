"""Runs that colleagues share: listed, and read from a private copy, as anything may lie there."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.files.people import user_name
from podwright.files.untrusted import read_untrusted
from podwright.files.whole import write_whole
from podwright.launch import pods
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.sharing import OPEN, RECORD_FILE, RUN_FILE, copy_shown, place_of
from podwright.runs import Home
from podwright.runs.record import Record, from_row, parse_asked
from podwright.runs.store import ID
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.launch.records import RunRecords

EVERYBODY = "all"
SHARES = ("all", "team")
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,63}\$?")
MAX_USERS, MAX_RUNS, MAX_RECORD_BYTES = 10_000, 10_000, 1 << 20
"""Of one listing: users, the runs of each, and what is read of each record."""


class SharedRun(Run):
    """A colleague's run, by the copy that was made of it; it goes by USER/ID."""

    def __init__(self, copy: tempfile.TemporaryDirectory[str], known: Record) -> None:
        session = Session(Home.open(Path(copy.name)), engines={}, schedulers={})
        super().__init__(session, known.id.rpartition("/")[2])
        self._copy, self._known = copy, known

    def record(self) -> Record:
        """Return what its owner shared: nobody is asked, and nothing changes any more."""
        return self._known

    def last_known(self) -> Record:
        """Return the same."""
        return self._known

    def records(self) -> RunRecords:
        """Return the same; a shared run has no points."""
        from podwright.launch.records import RunRecords

        return RunRecords(self._known, [])

    def points(self) -> list[Run]:
        """Return none: points are shared as runs of their own."""
        return []


def open_shared(home: Home, ref: str) -> SharedRun:
    """Return a colleague's run, `USER/ID` or an unambiguous start of it, copied to where nobody changes it."""
    user, _, start = ref.partition("/")
    found = [path for path in _folders(home, user) if path.name.startswith(start)] if ID.fullmatch(start) else []
    exact = [path for path in found if path.name == start]
    names = sorted({path.name for path in found})
    if not found:
        raise refuse(f"there is no shared run {short(ref)!r}", hint=f"`podwright ps --user {_shown(user)}` lists them")
    if not exact and len(names) > 1:
        raise refuse(f"{short(ref)!r} may be any of {', '.join(names[:6])}", hint="give more of the id")
    return _copied((exact or found)[0], user)


def _shown(user: str) -> str:
    return user if USER.fullmatch(user) else "USER"


def _copied(folder: Path, user: str) -> SharedRun:
    known = _record_of(folder, user)
    if known is None:
        raise refuse(f"the shared run {user}/{folder.name} cannot be read: its record is damaged")
    copy = tempfile.TemporaryDirectory(prefix="podwright-shared-")
    target = Path(copy.name, "runs", folder.name)
    target.mkdir(parents=True, mode=0o700)
    try:
        asked = parse_asked(json.loads(read_untrusted(folder, RUN_FILE, MAX_RECORD_BYTES)))
        asked = replace(asked, id=folder.name, points=0, parent=None, target="shared", user=user)
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(f"the shared run {user}/{folder.name} cannot be read: {error}") from None
    write_whole(target / RUN_FILE, json.dumps(asked.as_json()).encode())
    own = replace(known, id=folder.name, folder=str(target))
    write_whole(target / RECORD_FILE, json.dumps(own.as_json()).encode())
    copy_shown(folder, target)
    return SharedRun(copy, known)


def listed(home: Home, user: str) -> Iterator[Record]:
    """Yield the records of what a user shares, or everybody but oneself; each goes by USER/ID."""
    for root in _roots(home):
        for name in _users(root) if user == EVERYBODY else [user]:
            if name != user_name() or user != EVERYBODY:
                for folder in _folders_of(root, name):
                    record = _record_of(folder, name)
                    if record is not None:
                        yield record


def _roots(home: Home) -> list[Path]:
    """Return where the known pods have shared runs; a pod whose file is damaged hides none of the others."""
    roots: dict[Path, None] = {}
    for name in pods.known(home):
        with suppress(Refusal, OSError):
            shared = pods.find(home, name).shared_runs
            if shared is not None:
                roots[Path(shared)] = None
    return list(roots)


def _users(root: Path) -> list[str]:
    with suppress(OSError), os.scandir(root) as entries:
        return sorted(entry.name for entry in islice(entries, MAX_USERS) if USER.fullmatch(entry.name))
    return []


def _folders(home: Home, user: str) -> list[Path]:
    found: list[Path] = []
    for root in _roots(home):
        found += _folders_of(root, user)
    return found


def _folders_of(root: Path, user: str) -> list[Path]:
    """Return the runs that a user shares below a root: folders that are that user's own, reached by no link."""
    if USER.fullmatch(user) is None or not _is_of(root / user, user):
        return []
    found: dict[str, Path] = {}
    for share in SHARES:
        with suppress(OSError), os.scandir(root / user / share) as entries:
            for entry in islice(entries, MAX_RUNS):
                if ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    found.setdefault(entry.name, Path(entry.path))
    return list(found.values())


def _is_of(folder: Path, user: str) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and user_name(status.st_uid) == user


def _record_of(folder: Path, user: str) -> Record | None:
    """Return the record of a shared run; its owner and its name are what the folders say, and not what it says."""
    try:
        record = from_row(json.loads(read_untrusted(folder, RECORD_FILE, MAX_RECORD_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    if not record.is_final:  # only what has ended is shared
        return None
    return replace(record, id=f"{user}/{folder.name}", user=user, folder=str(folder), parent=None)


def publish_page(run: Run, page: Callable[[Path], str]) -> None:
    """Put a report beside what is shared of a run; it is made of that alone."""
    try:
        place = place_of(run._session.home, run.folder)
    except (OSError, Refusal):
        return
    if place is None or not (place.folder / run.id / RECORD_FILE).is_file():
        return
    with suppress(OSError):
        path = place.folder / run.id
        write_whole(path / "report.html", page(path).encode("utf-8", "replace"), OPEN)
