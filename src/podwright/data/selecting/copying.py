"""Copies the files of a selection into a folder, in the dataset's own layout: what `data stage` does.

A file is there whole and checked, or not at all; what a copy before has brought is taken as it is. `.staged.jsonl` in
the folder says what each file was when it came.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podwright.data.policies.transfer import digest_of
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.selecting.manifests import make_manifest
from podwright.data.selecting.selections import Selection
from podwright.files.locks import only
from podwright.files.whole import write_whole
from podwright.pilot.data.manifest import SAMPLES, key_of, parse_manifest, path_bytes, sample_lines
from podwright.pilot.data.sources import SourceFailed, SourceFile, fetch
from podwright.spec.problems import Refusal, refuse

NOTES = ".staged.jsonl"
_PART = b".podwright-part."
_AT_ONCE = 8
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Copied:
    """What became of the files of a selection."""

    files: int
    bytes: int
    copied: int
    reused: int
    from_peers: int
    took_s: float

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data stage`."""
        return asdict(self)


def stage_to(
    selection: Selection, split: str | None, folder: Path, progress: Progress = unheard, verify: bool = False
) -> Copied:
    """Copy what is not there yet; several files at a time, each under a name of its own until it is whole.

    With `verify` what is there is read again: a file of other bytes is brought again, whatever its times say.
    """
    began = time.monotonic()
    manifest = make_manifest(selection, split)
    rows = parse_manifest(manifest.data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTES).touch()
        filling = refuse(f"{folder} is being filled by another command", hint="wait for it to end", exit_code=1)
        with only(folder / NOTES, filling):
            missing = _copy_missing(rows, _Copy(folder, manifest.site, verify), progress)
            write_whole(folder / os.fsdecode(SAMPLES), "".join(sample_lines(rows)).encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse(f"{error.filename or folder} cannot be written: {reason}", field="--to") from None
    sizes = sum(row["size"] for row in rows)
    return Copied(len(rows), sizes, missing, len(rows) - missing, 0, round(time.monotonic() - began, 3))


def _copy_missing(rows: Sequence[Row], copy: _Copy, progress: Progress) -> int:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        missing = [row for row, has in zip(rows, pool.map(copy.has, rows), strict=True) if not has]
    copy.sweep(missing)
    total, lock = sum(row["size"] for row in missing), threading.Lock()
    brought_bytes = brought_files = 0

    def count(size: int, files: int = 0) -> None:
        nonlocal brought_bytes, brought_files
        with lock:
            # A server that gives no part of a file gives its beginning twice.
            brought_bytes = min(brought_bytes + size, total)
            brought_files += files
            progress(Advance("staging", brought_bytes, total, f"{brought_files} of {len(missing)} files"))

    def bring(row: Row) -> None:
        copy.bring(row, count)
        count(0, files=1)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(bring, missing))
    return len(missing)


class _Copy:
    """The folder that files are copied to, with what is known of those that came."""

    def __init__(self, folder: Path, site: Mapping[str, str], verify: bool) -> None:
        self._folder, self._site, self._verify = os.fsencode(folder), site, verify
        self._notes = folder / NOTES
        self._lock = threading.Lock()
        self._known: dict[str, list[Any]] = {}
        with suppress(OSError):
            for line in self._notes.read_text().splitlines():
                with suppress(ValueError, TypeError):  # a copy that was killed may have left half a line
                    path, *facts = json.loads(line)
                    self._known[path] = facts

    def has(self, row: Row) -> bool:
        """Return whether a file is there as it came, and is the one that is wanted."""
        try:
            facts = os.stat(self._target(row), follow_symlinks=False)  # noqa: PTH116 - paths are bytes
        except OSError:
            return False
        known = self._known.get(row["path"], [])
        if known[:3] != [key_of(row), facts.st_size, facts.st_mtime_ns]:
            return False
        # A folder that an older version filled says no SHA-256 of what came without one.
        return not self._verify or digest_of(self._target(row)) in (row["sha256"], *known[3:])

    def _target(self, row: Row) -> bytes:
        return self._folder + b"/" + path_bytes(row)

    def sweep(self, rows: Sequence[Row]) -> None:
        """Remove what a copy that was killed has left where these files go."""
        for above in {os.path.dirname(self._target(row)) for row in rows}:  # noqa: PTH120 - paths are bytes
            with suppress(FileNotFoundError):
                for name in os.listdir(above):  # noqa: PTH208
                    if name.startswith(_PART):
                        os.unlink(os.path.join(above, name))  # noqa: PTH108, PTH118

    def bring(self, row: Row, count: Callable[[int], None]) -> None:
        """Copy one file, and check it."""
        target = self._target(row)
        above = os.path.dirname(target)  # noqa: PTH120 - paths are bytes
        os.makedirs(above, exist_ok=True)  # noqa: PTH103 - paths are bytes
        number, part = tempfile.mkstemp(prefix=_PART, dir=above)
        try:
            with os.fdopen(number, "w+b") as file:
                sha256 = self._fetch(row, file, count)
            os.chmod(part, 0o644)  # noqa: PTH101 - paths are bytes
            os.replace(part, target)  # noqa: PTH105 - paths are bytes
        except BaseException:
            with suppress(OSError):
                os.unlink(part)  # noqa: PTH108 - paths are bytes
            raise
        facts = os.stat(target)  # noqa: PTH116 - paths are bytes
        line = json.dumps([row["path"], key_of(row), facts.st_size, facts.st_mtime_ns, sha256])
        with self._lock, self._notes.open("a") as notes:
            notes.write(f"{line}\n")

    def _fetch(self, row: Row, file: Any, count: Callable[[int], None]) -> str:
        source = SourceFile(row["source"], row["size"], row["etag"] or "")
        try:
            sha256 = fetch(source, self._site, os.environ, file, count)
        except SourceFailed as failure:
            raise _lost(row, str(failure), 2 if failure.final else 3) from None
        if row["sha256"] not in (None, sha256):
            raise _lost(row, "its SHA-256 is not that of the file that was chosen", 2)
        return sha256


def _lost(row: Row, why: str, exit_code: int) -> Refusal:
    return refuse(
        f"{row['source']}: {why}", hint="what came before it stays, and is not copied again", exit_code=exit_code
    )
