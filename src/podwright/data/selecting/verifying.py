"""Whether the files of a selection are those that were chosen: by size and time, by SHA-256 where it is asked for.

Size and time of the last change are always compared. A file with another time is read, and is the one that was chosen
where its SHA-256 is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from podwright.data.policies.transfer import digest_of
from podwright.data.selecting.manifests import changed, samples_of
from podwright.data.selecting.pool import SampleFile
from podwright.data.selecting.selections import Selection
from podwright.data.tree.roots import is_address
from podwright.spec.problems import Refusal, refuse

HOWS = ("size", "stat", "sha256")
"""By what a file was compared, the weakest first; `stat` is size and time."""
_CHANGED, _UNSUMMED = "changed", "unsummed"


@dataclass(frozen=True)
class Verified:
    """How many files were compared, and by what; those compared by more are not counted among the weaker."""

    size: int = 0
    stat: int = 0
    sha256: int = 0

    def __add__(self, other: Verified) -> Verified:
        return Verified(self.size + other.size, self.stat + other.stat, self.sha256 + other.sha256)

    @property
    def files(self) -> int:
        """Return how many there are."""
        return self.size + self.stat + self.sha256

    def as_json(self) -> dict[str, Any]:
        """Return what the record of a run says of it; `how` is what is true of all of its files."""
        counts = {how: getattr(self, how) for how in HOWS}
        weakest = next((how for how in HOWS if counts[how]), HOWS[0])
        return {"how": weakest, "files": self.files, **counts}


def verify_files(selection: Selection, split: str | None, everything: bool) -> Verified:
    """Compare the files of a selection with what they were when they were chosen; refuse what they are not.

    `everything` reads all of them, which needs the SHA-256 of each to be known.
    """
    files = _files(selection, split)
    outcomes = list(_outcomes(selection, files, everything))
    wrong = [file.path for file, outcome in zip(files, outcomes, strict=True) if outcome == _CHANGED]
    if wrong:
        raise changed(selection, wrong)
    unsummed = [file.path for file, outcome in zip(files, outcomes, strict=True) if outcome == _UNSUMMED]
    if unsummed:
        raise no_checksum(selection, unsummed)
    return Verified(*(outcomes.count(how) for how in HOWS))


def will_be_verified(selection: Selection, split: str | None, everything: bool) -> Verified:
    """Return how the files of a selection are compared that is brought to nodes: its bytes are, as they come."""
    files = _files(selection, split)
    unsummed = [file.path for file in files if not file.sha256]
    if everything and unsummed:
        raise no_checksum(selection, unsummed)
    # Behind an address nobody looks at times: not every server has them.
    dated = 0
    for file in files:
        root, _ = selection.roots.place(file.path_bytes)
        dated += not is_address(root) and not file.sha256 and file.mtime_ns is not None
    return Verified(len(unsummed) - dated, dated, len(files) - len(unsummed))


def _files(selection: Selection, split: str | None) -> list[SampleFile]:
    files: list[SampleFile] = []
    for _, sample in samples_of(selection, split):
        files += sample.files
    return files


def _outcomes(selection: Selection, files: list[SampleFile], everything: bool) -> Iterator[str]:
    def compare(file: SampleFile) -> str:
        return _compare(selection.roots.whole(file.path_bytes), file, everything)

    # Reading lets go of Python's lock, and so does a status that a server is asked for.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 4) as pool:
        yield from pool.map(compare, files)


def _compare(path: bytes, file: SampleFile, everything: bool) -> str:
    try:
        facts = os.stat(path)  # noqa: PTH116 - paths are bytes
        if facts.st_size != file.size:
            return _CHANGED
        is_touched = file.mtime_ns not in (None, facts.st_mtime_ns)
        if everything and not file.sha256:
            return _UNSUMMED
        if everything or is_touched:
            return "sha256" if file.sha256 and digest_of(path) == file.sha256 else _CHANGED
    except OSError:
        return _CHANGED
    return "size" if file.mtime_ns is None else "stat"


def no_checksum(selection: Selection, paths: list[str]) -> Refusal:
    """Return the refusal of a selection whose bytes nobody can compare."""
    count = "1 file of it has" if len(paths) == 1 else f"{len(paths)} files of it have"
    message = f"{selection.name} cannot be verified: {count} no SHA-256, the first: {paths[0]}"
    root = os.fsdecode(selection.root)
    hint = f"podwright data scan {root} --name {selection.dataset} --checksums, and select again"
    return refuse(message, hint=hint, field="--verify")
