"""Taking runs up that others exported: whole or not at all, checked, and nothing of them run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import Any

import yaml

from podwright.files.archives import ArchiveBounds, BadArchive, OthersArchive, open_archive
from podwright.files.untrusted import open_untrusted
from podwright.files.whole import make_private, write_whole
from podwright.launch.exchange.bundle import (
    MAX_JSON_BYTES,
    RECORD_FILE,
    RUN_FILE,
    WORKLOAD_FILE,
    Contents,
    read_contents,
)
from podwright.launch.session import Session
from podwright.runs import Asked
from podwright.runs.points import point_id
from podwright.runs.record import Record, from_row, parse_asked
from podwright.runs.store import ID, home_refusal, taking_up
from podwright.spec.problems import Refusal, refuse, short

BOUNDS = ArchiveBounds()


@dataclass(frozen=True)
class RunsImported:
    """Runs that were taken up: the first, or the parent of all, with how much came."""

    id: str
    runs: tuple[str, ...]
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `import`."""
        return {"id": self.id, "files": self.files, "bytes": self.bytes, "runs": list(self.runs)}


def import_runs(
    session: Session, file: Path, new_id: str | None = None, bounds: ArchiveBounds = BOUNDS
) -> RunsImported:
    """Take up the runs of a file; a file that is not what an export writes is refused, and leaves nothing here."""
    try:
        with open_archive(file, bounds) as archive:
            return _taken_up(session, file, archive, new_id)
    except BadArchive as error:
        raise refuse(str(error), hint="`podwright export` writes such files", file=str(file)) from None
    except Refusal:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse(f"cannot be read: {reason}", file=str(file)) from None


def _taken_up(session: Session, file: Path, archive: OthersArchive, new_id: str | None) -> RunsImported:
    contents = read_contents(archive)
    names = _names(contents.runs, new_id)
    runs = [_ImportedRun.read(archive, contents, run_id) for run_id in contents.runs]
    _check_family(runs)
    for name in names.values():
        if session.home.is_there(name):
            hint = "`--as ID` takes it up under another id"
            raise refuse(f"there is a run {name} here already", hint=hint, file=str(file))
    origin = {"digest": _digest_of(file), "at": round(time.time(), 3), "left_out": list(contents.left_out)}
    try:
        with taking_up(session.home, [names[run.asked.id] for run in reversed(runs)]) as folders:
            for run in runs:
                run.fill(folders[names[run.asked.id]], archive, contents, names, origin)
    except OSError as error:
        raise home_refusal(session.home.path, error) from None
    session.home.sync()
    total = sum(entry.file_size for entry in archive.entries.values())
    ids = tuple(names.values())
    return RunsImported(ids[0], ids, len(contents.files), total)


def _digest_of(file: Path) -> str:
    with open_untrusted(file.absolute().parent, file.name) as opened:
        return f"sha256:{file_digest(opened, 'sha256').hexdigest()}"


def _names(runs: Sequence[str], new_id: str | None) -> dict[str, str]:
    """Return by its id in the file what each run is called here; points go with their parent."""
    if new_id is None:
        return {run: run for run in runs}
    if not ID.fullmatch(new_id) or len(new_id) > 100 or new_id == "last":
        hint = "an id is lower-case letters, digits and dashes"
        raise refuse(f'"{short(new_id)}" is no id', hint=hint, field="--as")
    first = runs[0]
    others = [run for run in runs[1:] if not run.startswith(f"{first}-")]
    if others:
        raise refuse(f"the file holds {len(runs)} runs", hint="one run, or a sweep, has one id", field="--as")
    return {run: new_id + run.removeprefix(first) for run in runs}


@dataclass(frozen=True)
class _ImportedRun:
    """A run of a file: what was asked of it and how it ended, as far as our own classes can say it."""

    asked: Asked
    record: Record | None

    @classmethod
    def read(cls, archive: OthersArchive, contents: Contents, run_id: str) -> _ImportedRun:
        try:
            asked = parse_asked(json.loads(archive.read(f"{run_id}/{RUN_FILE}", MAX_JSON_BYTES)))
            record = from_row(json.loads(archive.read(f"{run_id}/{RECORD_FILE}", MAX_JSON_BYTES)))
        except (ValueError, RecursionError) as error:
            if isinstance(error, BadArchive):
                raise
            raise BadArchive(f"what {run_id} says of itself cannot be read: {error}") from None
        if asked.id != run_id or record.id != run_id or not record.is_final:
            raise BadArchive(f"{run_id} is not the run that its files tell of, or it has not ended")
        return cls(asked, None if asked.points else record)

    def fill(
        self,
        folder: Path,
        archive: OthersArchive,
        contents: Contents,
        names: Mapping[str, str],
        origin: Mapping[str, Any],
    ) -> None:
        """Write the run into a folder that nobody sees yet."""
        run_id, new = self.asked.id, names[self.asked.id]
        for inner in contents.of_run(run_id):
            if inner not in (RUN_FILE, RECORD_FILE, WORKLOAD_FILE):
                _write(archive, contents, f"{run_id}/{inner}", folder / inner)
        asked = replace(
            self.asked,
            id=new,
            parent=names.get(self.asked.parent or ""),
            file="",
            after=None,
            command_line=[],
            imported_from=dict(origin),
        )
        make_private(folder / "spec")
        workload = yaml.safe_dump(asked.workload, sort_keys=False).encode("utf-8", "replace")
        write_whole(folder / WORKLOAD_FILE, workload)
        if self.record is not None:
            record = replace(self.record, id=new, parent=asked.parent, imported_from=asked.imported_from)
            write_whole(folder / RECORD_FILE, json.dumps({**record.as_json(), "folder": ""}, indent=2).encode())
        write_whole(folder / RUN_FILE, json.dumps(asked.as_json(), indent=1).encode())


def _write(archive: OthersArchive, contents: Contents, name: str, path: Path) -> None:
    make_private(path.parent)
    with ExitStack() as stack:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = stack.enter_context(os.fdopen(os.open(path, flags, 0o600), "wb"))
        digest = archive.copy(name, target.write)
    if digest != contents.files[name].sha256:
        raise BadArchive(f"{name[:80]!r} is not what the list says it is")


def _check_family(runs: Sequence[_ImportedRun]) -> None:
    """Refuse points without their parent, and parents that stand after their points or claim another's."""
    parents = {run.asked.id: run.asked for run in runs if run.asked.points}
    for run in runs:
        asked = run.asked
        if asked.parent is None:
            continue
        parent = parents.get(asked.parent)
        index = asked.index if asked.index is not None else -1
        if parent is None or not 0 <= index < parent.points or asked.id != point_id(parent.id, index) or asked.points:
            raise BadArchive(f"{asked.id} is no point of a run in this file")
