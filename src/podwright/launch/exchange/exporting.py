"""Writing runs into one file that may be given away: what is their owner's affair stays behind."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any

import yaml

from podwright.files.archives import PIECE_BYTES
from podwright.files.untrusted import kind_of, open_untrusted
from podwright.files.whole import whole_file
from podwright.launch.exchange.bundle import LIST, RECORD_FILE, RUN_FILE, TEXTS, WORKLOAD_FILE, BundleFile, Contents
from podwright.launch.exchange.scrubbing import Scrubber
from podwright.launch.pull import bring
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.pilot import __version__
from podwright.pilot.protocol import record_folders
from podwright.runs import Asked
from podwright.runs.copies import LeftOut
from podwright.runs.metrics import METRICS_FILE
from podwright.runs.series import SERIES_FILE
from podwright.spec.problems import refuse

EPOCH = (1980, 1, 1, 0, 0, 0)
"""All entries have one time, so that the same runs give the same file."""
OF_RUN = ("client.jsonl", "engine.jsonl", METRICS_FILE, SERIES_FILE)
CODE = ("sha256", "files", "commit", "changed")


@dataclass(frozen=True)
class ExportOptions:
    """What of runs goes into a file; with `dry_run` it is listed alone."""

    checkpoints: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class RunsExported:
    """A file with runs, or with `dry_run` what it would hold."""

    runs: tuple[str, ...]
    file: Path
    contents: Contents
    bytes: int | None = None
    digest: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the document of `export`."""
        row = {"runs": list(self.runs), "file": str(self.file), "bytes": self.bytes, "digest": self.digest}
        names = [{"path": name, "bytes": file.bytes} for name, file in self.contents.files.items()]
        return {**row, "files": names, "left_out": list(self.contents.left_out)}


@dataclass(frozen=True)
class _Part:
    """A file as it goes into the archive: made here, or from a run's folder."""

    name: str
    data: bytes | None = None
    root: Path = Path()
    path: str = ""
    is_text: bool = False


def export_runs(
    session: Session,
    runs: Sequence[Run],
    to: Path,
    options: ExportOptions = ExportOptions(),  # noqa: B008 - it is frozen
) -> RunsExported:
    """Write runs that have ended, with the points of those that have some, whole or not at all."""
    named = _with_points(session, runs)
    ids = tuple(run.id for run in named)
    trees = ("results", *(["checkpoints"] if options.checkpoints else []))
    left: list[LeftOut] = []
    parts = list(chain.from_iterable(_parts(session, run, trees, left, set(ids)) for run in named))
    said = (*_never(named), *(f"{gap.path}: {gap.why}" for gap in left))
    if options.dry_run:
        listed = {part.name: BundleFile(_size(part), "") for part in parts}
        return RunsExported(ids, to, Contents(ids, listed, said, __version__))
    scrub = Scrubber.of(session.home.path, chain.from_iterable(run.folder.asked.secrets for run in named))
    with whole_file(to) as file, zipfile.ZipFile(file, "w") as archive:
        files = {part.name: _write(archive, part, scrub) for part in parts}
        contents = Contents(ids, files, said, __version__)
        with archive.open(_entry(LIST, True), "w") as entry:
            entry.write(json.dumps(contents.as_json()).encode())
    with to.open("rb") as written:
        digest = file_digest(written, "sha256").hexdigest()
    return RunsExported(ids, to, contents, to.stat().st_size, f"sha256:{digest}")


def _with_points(session: Session, runs: Sequence[Run]) -> list[Run]:
    """Return runs that have ended, each parent before its points."""
    all_of_them = chain(runs, *(run.points() for run in runs))
    ids = dict.fromkeys(run.id for run in all_of_them)
    named = sorted((Run(session, run_id) for run_id in ids), key=lambda run: not run.folder.asked.points)
    for run in named:
        record = run.record()
        if not record.is_final:
            raise refuse(f"{run.id} is {record.state}", hint=f"`podwright wait {run.id}`: only runs that ended travel")
    return named


def _never(runs: Sequence[Run]) -> Iterator[str]:
    """Say what of these runs is no part of any file."""
    variables = set().union(*(run.folder.asked.workload.get("env") or {} for run in runs))
    if variables:
        yield f"values of the environment: {', '.join(sorted(variables))}"
    if any(_patch_of(run.folder.asked) for run in runs):
        yield "kubernetes.patch of the workload"
    yield "tokens, orders, pod files and paths of their owner"


def _parts(
    session: Session, run: Run, trees: Sequence[str], left: list[LeftOut], together: set[str]
) -> Iterator[_Part]:
    """Yield what of a run travels; `together` are the runs that go into the same file."""
    left += bring(session, run.folder, list(trees))
    root, scrub = run.folder.path.resolve(), Scrubber.of(session.home.path)
    asked = _shown(run.folder.asked, together, scrub)
    record = {**run.last_known().as_json(), "folder": "", "parent": asked.parent}
    yield _Part(f"{run.id}/{RUN_FILE}", json.dumps(scrub.tree(asked.as_json())).encode())
    yield _Part(f"{run.id}/{RECORD_FILE}", json.dumps(scrub.tree(record)).encode())
    yield _Part(f"{run.id}/{WORKLOAD_FILE}", yaml.safe_dump(asked.workload, sort_keys=False).encode())
    job = root if (root / "job" / "code.tar").exists() or asked.parent else run.folder.job_path.resolve()
    if (job / "job" / "code.tar").exists():
        yield _Part(f"{run.id}/job/code.tar", root=job, path="job/code.tar")
    for name in (*OF_RUN, *_of_nodes(root)):
        if (root / name).is_file():
            yield _Part(f"{run.id}/{name}", root=root, path=name, is_text=bool(TEXTS.fullmatch(name)))
    for tree in trees:
        for name in _below(root, tree, run.id, left):
            yield _Part(f"{run.id}/{name}", root=root, path=name)


def _shown(asked: Asked, together: set[str], scrub: Scrubber) -> Asked:
    """Return what was asked of a run without what is its owner's affair; a point alone becomes a run by itself."""
    workload = {name: value for name, value in asked.workload.items() if name != "env"}
    if _patch_of(asked):
        workload["kubernetes"] = {**workload["kubernetes"], "patch": {}}
    code = {name: asked.code[name] for name in CODE if name in asked.code} if asked.code else None
    shown = replace(asked, workload=scrub.tree(workload), code=code, command_line=[], file="", after=None)
    if asked.parent not in together:
        return replace(shown, parent=None, index=None)
    return shown


def _patch_of(asked: Asked) -> Any:
    """Return what pod templates are patched with, where values of variables may stand, too."""
    return (asked.workload.get("kubernetes") or {}).get("patch")


def _of_nodes(root: Path) -> Iterator[str]:
    for _, _, path in record_folders(str(root / "record")):
        folder = Path(path)
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names alone
            inner = f"record/{folder.name}/{name}"
            if TEXTS.fullmatch(inner):
                yield inner


def _below(root: Path, inner: str, run_id: str, left: list[LeftOut]) -> Iterator[str]:
    """Yield the plain files below a folder of a run, which its program wrote; links and the like are left out."""
    with suppress(OSError):
        mode = (root / inner).lstat().st_mode
        if stat.S_ISDIR(mode):
            for name in sorted(os.listdir(root / inner)):  # noqa: PTH208 - a link in it is looked at by itself
                yield from _below(root, f"{inner}/{name}", run_id, left)
        elif not inner.isprintable() or "\\" in inner or ":" in inner:
            left.append(LeftOut(f"{run_id}/{inner!a}", "a name that not every machine can have"))
        elif stat.S_ISREG(mode):
            yield inner
        else:
            left.append(LeftOut(f"{run_id}/{inner}", f"{kind_of(mode)}, no plain file"))


def _size(part: _Part) -> int:
    return len(part.data) if part.data is not None else (part.root / part.path).stat().st_size


def _entry(name: str, is_text: bool) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_DEFLATED if is_text else zipfile.ZIP_STORED
    return entry


def _write(archive: zipfile.ZipFile, part: _Part, scrub: Scrubber) -> BundleFile:
    """Write one file, and return how much was written: its digest is that of the same bytes."""
    digest, count = sha256(), 0
    entry = _entry(part.name, part.is_text or part.data is not None)
    with archive.open(entry, "w", force_zip64=_size(part) > zipfile.ZIP64_LIMIT // 2) as target:
        for data in _pieces(part, scrub):
            digest.update(data)
            count += len(data)
            target.write(data)
    return BundleFile(count, digest.hexdigest())


def _pieces(part: _Part, scrub: Scrubber) -> Iterator[bytes]:
    if part.data is not None:
        yield part.data
        return
    with open_untrusted(part.root, part.path) as file:
        if part.is_text:
            yield from map(scrub, _lines(file))
        else:
            while data := file.read(PIECE_BYTES):
                yield data


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines, of which a rank may write very long ones: these come in pieces."""
    while line := file.readline(PIECE_BYTES):
        yield line
