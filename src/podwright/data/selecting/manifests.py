"""What it takes to bring the files of a selection elsewhere: a manifest, and what its source needs to be read.

Every file stands there with its size and its SHA-256; where that is not known, with the version that its source names
now (an ETag, or the time of the last change). What is not as large as it was when it was chosen is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from podwright.data.selecting.pool import DataSample
from podwright.data.selecting.selections import Selection
from podwright.data.tree.known_layouts import known_layout
from podwright.data.tree.paths import BelowRoot, as_json
from podwright.data.tree.roots import Roots, is_address
from podwright.pilot.data.manifest import pack_manifest
from podwright.pilot.data.sources import KEYS, Facts, SourceFailed, look, version_of
from podwright.spec.problems import Refusal, refuse

_AT_ONCE = 32
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@dataclass(frozen=True)
class SelectionManifest:
    """A manifest as it travels, and how much it stands for."""

    data: bytes
    site: Mapping[str, str]
    files: int
    size_bytes: int
    source: str
    """Where its files lie: a path, or an address."""


def site_of(root: bytes, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the source of a dataset needs beside its address: of S3 the endpoint and the region."""
    if not root.startswith(b"s3://"):
        return {}
    site = {"endpoint": _first(environ, _ENDPOINT), "region": _first(environ, _REGION)}
    return {name: value for name, value in site.items() if value}


def _first(environ: Mapping[str, str], names: Iterable[str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def make_manifest(
    selection: Selection, split: str | None, environ: Mapping[str, str] = os.environ
) -> SelectionManifest:
    """Return the manifest of a selection, or of one of its splits; look at its source once."""
    site: dict[str, str] = {}
    for _, root in selection.roots:
        site |= site_of(root, environ)
    rows = list(_rows(selection, split))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        facts = list(pool.map(lambda row: _look(row, site, environ), rows))
    found, wrong = [], []
    for row, seen in zip(rows, facts, strict=True):
        mtime_ns = row.pop("mtime_ns")
        if row["size"] is None and seen is None:  # what lies beside the samples need not be there
            continue
        if seen is None or row["size"] not in (None, seen.size) or not _is_of_time(row, mtime_ns, seen):
            wrong.append(row["path"])
        else:
            found.append({**row, "size": seen.size, "etag": seen.etag or None})
    if wrong:
        raise changed(selection, wrong)
    size = sum(row["size"] for row in found)
    return SelectionManifest(pack_manifest(found), site, len(found), size, os.fsdecode(selection.root))


def _rows(selection: Selection, split: str | None) -> Iterator[dict[str, Any]]:
    for number, (name, sample) in enumerate(samples_of(selection, split)):
        for file in sample.files:
            of_sample = {"split": name, "sample": number, "role": file.role}
            facts = {"size": file.size, "sha256": file.sha256, "mtime_ns": file.mtime_ns}
            yield {**_row(selection.roots, file), **facts, **of_sample}
    layout = known_layout(selection.layout)
    for path in layout.beside if layout else ():
        yield {**_row(selection.roots, BelowRoot(path, None)), "size": None, "sha256": None, "mtime_ns": None}


def _row(roots: Roots, file: BelowRoot) -> dict[str, Any]:
    root, below = roots.place(file.path_bytes)
    if is_address(root):
        source = f"{root.decode().rstrip('/')}/{quote(below)}"
    else:
        source = Path(os.fsdecode(root + b"/" + below)).as_uri()
    return {**as_json(file.path, file.raw), "source": source}


def _look(row: Mapping[str, Any], site: Mapping[str, str], environ: Mapping[str, str]) -> Facts | None:
    """Return what the source says of a file; a SHA-256 needs no question."""
    if row["sha256"]:
        return Facts(row["size"], "")
    try:
        return look(row["source"], site, environ)
    except SourceFailed as failure:
        if failure.final:
            return None
        message = f"{row['source']}: {failure}"
        raise refuse(message, hint="start the run again when its data can be reached", exit_code=3) from None


def _is_of_time(row: Mapping[str, Any], mtime_ns: int | None, seen: Facts) -> bool:
    """Return whether a file has the time of when it was chosen; one with a SHA-256 is compared by that as it comes."""
    if mtime_ns is None or row["sha256"] or not row["source"].startswith("file:"):
        return True
    return seen.etag == version_of(mtime_ns, row["size"])


def samples_of(selection: Selection, split: str | None) -> Iterator[tuple[str, DataSample]]:
    """Yield the samples of a split, or of all of them."""
    for name, sample in selection.rows():
        if split in (None, name):
            yield name, sample


def changed(selection: Selection, wrong: list[str]) -> Refusal:
    """Return the refusal of a selection whose files are not what they were."""
    count = "1 file is" if len(wrong) == 1 else f"{len(wrong)} files are"
    message = f"{count} not what {selection.name} was made of, the first: {wrong[0]}"
    return refuse(message, hint=f"bring them back, or scan {selection.dataset} again and make a new selection")


def unnamed_keys(site_root: bytes, secrets: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return the keys of S3 that are set here and that a run would not be given, as it does not name them."""
    if not site_root.startswith(b"s3://"):
        return []
    return [name for name in KEYS if environ.get(name) and name not in secrets]
