"""The file that runs travel in: a zip archive of their folders, with a list of all that is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podwright.files.archives import BadArchive, OthersArchive
from podwright.runs.store import ID

FORMAT = 1
LIST, RUN_FILE, RECORD_FILE, WORKLOAD_FILE = "podwright.json", "run.json", "record.json", "spec/workload.yaml"
MAX_LIST_BYTES, MAX_JSON_BYTES = 64 << 20, 16 << 20
MAX_RUNS, MAX_SAID = 100_000, 1000
_NODE = r"record/n[0-9]{1,7}\.r[0-9]{1,7}"
TEXTS = re.compile(
    rf"client\.jsonl|engine\.jsonl|{WORKLOAD_FILE}"
    rf"|{_NODE}/(events\.jsonl|ship\.jsonl|metrics\.jsonl|rank[0-9]{{1,7}}\.series\.jsonl"
    r"|(merged|launcher|rank[0-9]{1,7})\.log(\.1)?)"
)
"""What is text of ours or of ranks: places of its owner's are taken out of it."""
PLAIN = re.compile(r"metrics\.parquet|series\.parquet|job/code\.tar|(results|checkpoints)/.+", re.DOTALL)
"""What travels as it is."""


def may_travel(name: str) -> bool:
    """Tell whether a file of a run's folder is one that an archive of ours has."""
    return bool(name in (RUN_FILE, RECORD_FILE) or TEXTS.fullmatch(name) or PLAIN.fullmatch(name))


@dataclass(frozen=True)
class BundleFile:
    """A file of an archive, as the list has it."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Contents:
    """What the list of an archive says: the runs, a parent first, its files by name, and what stayed behind."""

    runs: tuple[str, ...]
    files: Mapping[str, BundleFile]
    left_out: tuple[str, ...] = ()
    version: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the list as it lies in the archive."""
        files = {name: {"bytes": file.bytes, "sha256": file.sha256} for name, file in self.files.items()}
        row = {"format": FORMAT, "version": self.version, "runs": list(self.runs)}
        return {**row, "left_out": list(self.left_out), "files": files}

    def of_run(self, run_id: str) -> Iterator[str]:
        """Yield the files of a run by their place in its folder."""
        for name in self.files:
            if name.startswith(f"{run_id}/"):
                yield name.removeprefix(f"{run_id}/")


def read_contents(archive: OthersArchive) -> Contents:
    """Return what an archive says it holds; BadArchive where that is not what is there, or nothing we would write."""
    try:
        row = json.loads(archive.read(LIST, MAX_LIST_BYTES))
        contents = _parsed(row)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, BadArchive):
            raise
        raise BadArchive(f"{LIST} is not what an export writes") from None
    if set(contents.files) != set(archive.entries) - {LIST}:
        odd = sorted(set(contents.files) ^ (set(archive.entries) - {LIST}))
        raise BadArchive(f"{odd[0][:80]!r} is in the archive or in its list, and not in both")
    for name, file in contents.files.items():
        run_id, _, inner = name.partition("/")
        if run_id not in contents.runs or not may_travel(inner):
            raise BadArchive(f"{name[:80]!r} is nothing that an export holds")
        if archive.entries[name].file_size != file.bytes:
            raise BadArchive(f"{name[:80]!r} is not as long as the list says")
    return contents


def _parsed(row: Mapping[str, Any]) -> Contents:
    if row["format"] != FORMAT:
        raise BadArchive("it was written by a newer Podwright" if row["format"] > FORMAT else "it has no known format")
    runs = tuple(row["runs"])
    if not 0 < len(runs) <= MAX_RUNS or len(set(runs)) < len(runs) or not all(ID.fullmatch(run) for run in runs):
        raise BadArchive("the ids of its runs are no ids")
    files = {
        str(name): BundleFile(int(file["bytes"]), str(file["sha256"])) for name, file in dict(row["files"]).items()
    }
    left_out = tuple(str(text)[:200] for text in row["left_out"][:MAX_SAID])
    return Contents(runs, files, left_out, str(row["version"])[:40])
