"""What a program is given of a selection: a folder of links in the dataset's own layout, and samples.jsonl.

{"split": "train", "image": PATH, "label": PATH, "json": PATH}      a line for each sample; paths from the folder
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.data.catalog.store import Store
from podwright.data.selecting.manifests import samples_of
from podwright.data.selecting.pool import SampleFile
from podwright.data.selecting.selections import Selection
from podwright.data.selecting.verifying import Verified, verify_files
from podwright.data.tree.known_layouts import known_layout
from podwright.data.tree.roots import Roots
from podwright.files.whole import make_private, write_whole

SAMPLES = "samples.jsonl"


@dataclass(frozen=True)
class Linked:
    """A folder of links, the folders that they lead into, and how what they lead to was compared."""

    folder: Path
    roots: tuple[str, ...]
    verified: Verified


def link(store: Store, selection: Selection, split: str | None, verify: bool = False) -> Linked:
    """Return the folder of a selection, or of one of its splits; it is made where it is not there yet.

    Files that are not what was chosen are refused: a run that pins a digest must get what it stands for.
    """
    verified = verify_files(selection, split, verify)
    key = hashlib.sha256(
        b"\0".join([selection.digest.encode(), selection.roots.key, (split or "").encode()])
    ).hexdigest()
    folder = store.home / "linked" / key[:16]
    if not folder.is_dir():
        make_private(folder.parent)
        draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _make(draft, selection, split)
            _publish(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return Linked(folder, tuple(map(os.fsdecode, selection.roots.folders)), verified)


def _publish(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        # Another client was faster; what it made is the same.
        if not folder.is_dir():
            raise


def _make(folder: Path, selection: Selection, split: str | None) -> None:
    folder.mkdir(mode=0o700)
    inside = os.fsencode(folder)
    lines = []
    for name, sample in samples_of(selection, split):
        for file in sample.files:
            _link(selection.roots, inside, file.path_bytes)
        lines.append(json.dumps({"split": name, **_described(sample.files)}) + "\n")
    layout = known_layout(selection.layout)
    for name in layout.beside if layout else ():
        if Path(os.fsdecode(selection.root), name).exists():
            _link(selection.roots, inside, os.fsencode(name))
    write_whole(folder / SAMPLES, "".join(lines).encode())


def _link(roots: Roots, folder: bytes, path: bytes) -> None:
    link = folder + b"/" + path
    os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120 - paths are bytes
    # Two samples may have a file in common.
    with suppress(FileExistsError):
        os.symlink(roots.whole(path), link)  # noqa: PTH211 - paths are bytes


def _described(files: tuple[SampleFile, ...]) -> dict[str, str]:
    described = {}
    for file in files:
        described[file.role] = file.path
        if file.raw is not None:
            described[f"{file.role}_bytes"] = base64.b64encode(file.raw).decode("ascii")
    return described


def runs_with(home_runs: Path, selection: Selection) -> list[dict[str, Any]]:
    """Return the runs that were given this selection, whatever it was called: id, input and split."""
    from podwright.runs import RunFolder
    from podwright.spec.problems import Refusal

    rows = []
    for folder in sorted(home_runs.iterdir()):
        try:
            inputs = RunFolder(folder, in_home=True).asked.inputs or {}
        except Refusal:  # a run whose run.json cannot be read has told nothing
            continue
        for name, pin in inputs.items():
            if isinstance(pin, dict) and pin.get("digest") == selection.digest:
                rows.append({"id": folder.name, "input": name, "split": pin.get("split")})
    return rows
