"""The manifest of an input: a line for each file, with where it comes from and what identifies its content.

    {"path": "a/b.png", "size": 120, "sha256": HEX or null, "etag": TEXT or null, "source": URL}

`path_bytes` (base64) stands beside a path that is no UTF-8. A file of a sample has `split`, `sample` (its number) and
`role` too: what `samples.jsonl` is made of.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

from ..system.plain_files import read_whole
from .sources import SCHEMES, Site, SourceFile

SAMPLES = b"samples.jsonl"
SHA256 = re.compile(r"[0-9a-f]{64}")


class BadManifest(Exception):
    """In words."""


class Content(NamedTuple):
    """One content of an input, however many files have it; `key` names it in the cache."""

    key: str
    file: SourceFile
    sha256: str
    site: Site
    paths: List[Tuple[str, bytes]]
    """(input, path below its folder)"""


class StagedInput(NamedTuple):
    """One input that is brought to the node: what the order says of it, and its rows."""

    name: str
    site: Site
    rows: List[Dict[str, Any]]


def read_manifest(path: str, sha256: str) -> List[Dict[str, Any]]:
    """Return the rows of a manifest, which must be what the order says."""
    data = read_whole(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BadManifest(f"{path} is damaged: its digest is not the one in the order")
    return parse_manifest(data)


def parse_manifest(data: bytes) -> List[Dict[str, Any]]:
    """Return the rows of a manifest's bytes."""
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


def pack_manifest(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a manifest as it travels: the same bytes for the same rows."""
    text = "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows)
    return gzip.compress(text.encode(), 6, mtime=0)


def path_bytes(row: Mapping[str, Any]) -> bytes:
    """Return the path of a row, which must stay below the input's folder."""
    raw = base64.b64decode(row["path_bytes"]) if "path_bytes" in row else str(row["path"]).encode()
    parts = raw.split(b"/")
    if b".." in parts or b"" in parts or b"." in parts or raw == SAMPLES:
        raise BadManifest(f"{row['path']} is no path below the input's folder")
    return raw


def key_of(row: Mapping[str, Any]) -> str:
    """Return the name of a content in the cache: its SHA-256, or else what identifies this version of the file."""
    if row.get("sha256"):
        if not SHA256.fullmatch(str(row["sha256"])):
            raise BadManifest(f"{row['path']} has no SHA-256")
        return str(row["sha256"])
    fields = [str(row["source"]), str(row["size"]), str(row.get("etag") or "")]
    return "v" + hashlib.sha256("\0".join(fields).encode()).hexdigest()


def items_of(inputs: Iterable[StagedInput]) -> List[Content]:
    """Return every content once, in an order that is the same on all nodes."""
    items: Dict[str, Content] = {}
    for staged in inputs:
        for row in staged.rows:
            source, size = str(row["source"]), int(row["size"])
            if source.partition(":")[0] not in SCHEMES or size < 0:
                raise BadManifest(f"{row['path']} comes from {source}, which is no source")
            key, path = key_of(row), (staged.name, path_bytes(row))
            if key not in items:
                file = SourceFile(source, size, str(row.get("etag") or ""))
                items[key] = Content(key, file, str(row.get("sha256") or ""), staged.site, [])
            items[key].paths.append(path)
    return [items[key] for key in sorted(items)]


def sample_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of samples.jsonl: a sample's split, and its files by role."""
    samples: Dict[int, Dict[str, Any]] = {}
    for row in rows:
        if "sample" not in row:
            continue
        sample = samples.setdefault(int(row["sample"]), {"split": row.get("split")})
        sample[str(row["role"])] = row["path"]
        if "path_bytes" in row:
            sample[f"{row['role']}_bytes"] = row["path_bytes"]
    for number in sorted(samples):
        yield json.dumps(samples[number]) + "\n"


def must_verify(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether what a cache has already is read again, as an order says it."""
    return any(entry.get("verify") for entry in entries)


def read_inputs(job: str, entries: Iterable[Mapping[str, Any]]) -> List[StagedInput]:
    """Return the inputs that an order names; their manifests lie beside it."""
    inputs = []
    for entry in entries:
        rows = read_manifest(os.path.normpath(os.path.join(job, str(entry["manifest"]))), str(entry["sha256"]))
        inputs.append(StagedInput(str(entry["name"]), dict(entry.get("site") or {}), rows))
    return inputs
