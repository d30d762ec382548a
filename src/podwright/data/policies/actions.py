"""What policies do with files, a batch at a time, and how that is undone where it can be."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from podwright.data.catalog.dataset import Match, open_dataset
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.policies import agents, transfer
from podwright.data.policies.checksums import add_checksums
from podwright.data.policies.curation import curate
from podwright.data.policies.folder import JournalEntry, Policy, PolicyFolder, entry_of
from podwright.data.policies.tags import Values, parse_tag, put_tags
from podwright.data.tree.roots import Roots
from podwright.files.whole import whole_path, write_whole

if TYPE_CHECKING:
    from podwright.data.launcher import Start


@dataclass
class Work:
    """A policy at work: on which files, and what it needs for that."""

    store: Store
    policy: Policy
    folder: PolicyFolder
    roots: Roots
    start: Start | None = None
    saved: int = 0
    """Of how many files the journal has what undoing needs."""

    def source(self, path: bytes) -> bytes:
        """Return where a file of the dataset lies."""
        return self.roots.whole(path)

    def target(self, path: bytes) -> bytes:
        """Return where a file's copy goes."""
        return os.fsencode(self.policy.to) + b"/" + path


def _tag(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    name, value = parse_tag(work.policy.tag)
    yield from _tagged(work, batch, {match.path_bytes: {name: value} for match in batch})


def _tagged(work: Work, batch: Sequence[Match], tags: Values) -> Iterator[JournalEntry]:
    """Give files tags; what they had before is what undoing needs."""
    before = put_tags(work.store, work.policy.dataset, tags)
    for match in batch:
        yield entry_of(match, kept=before.get(match.path_bytes))


def _checksum(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    add_checksums(work.store, work.policy.dataset, only={match.path_bytes for match in batch})
    for match in batch:
        yield entry_of(match)


def _agent(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    policy = work.policy
    lines = agents.batch_lines(work.roots, batch)
    if policy.workload:
        assert work.start is not None
        write_whole(work.folder.batch, lines.encode())
        printed = list(agents.run_workload(work.start, policy.workload, policy.target, work.folder.batch))
    else:
        printed = list(agents.run_program(policy.program, lines, work.folder.log))
    # Known before any of it is found: who is killed between would take its own output for news.
    work.folder.know_output(agents.written_by(printed))
    yield from _tagged(work, batch, agents.tags_of(printed, batch))


def _curate(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    with open_dataset(work.store, work.policy.dataset) as opened:
        verdicts = {match.path_bytes: verdict.tags() for match, verdict in curate(opened, batch)}
    yield from _tagged(work, batch, verdicts)


def _steps(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    """Do one thing after the other; what a tag was before the first of them is what undoing needs."""
    kept: dict[bytes, dict[str, str | None]] = {}
    for step in work.policy.steps:
        chosen = _fitting(work, batch, step["if"]) if "if" in step else list(batch)
        if step["do"] == "stats":
            count_labels(work.store, work.policy.dataset)
        elif step["do"] == "checksum":
            add_checksums(work.store, work.policy.dataset, only={match.path_bytes for match in chosen})
        elif chosen:
            name, value = parse_tag(step["tag"])
            before = put_tags(work.store, work.policy.dataset, {match.path_bytes: {name: value} for match in chosen})
            for path, tags in before.items():
                kept[path] = {**tags, **kept.get(path, {})}
    for match in batch:
        yield entry_of(match, kept=kept.get(match.path_bytes))


def _fitting(work: Work, batch: Sequence[Match], where: str) -> list[Match]:
    """Return the files of a batch of whose sample a file fits: an image has what its label holds."""
    with open_dataset(work.store, work.policy.dataset) as opened:
        paths = {(member.raw or member.path.encode()) for member in opened.members(opened.condition(where), None)}
    return [match for match in batch if match.path_bytes in paths]


Transfer = Callable[[bytes, bytes, int, int], str]


def _transferred(transferred: Transfer) -> Callable[[Work, Sequence[Match]], Iterator[JournalEntry]]:
    def act(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
        for match in batch:
            path = match.path_bytes
            try:
                digest = transferred(work.source(path), work.target(path), match.size, match.mtime_ns)
            except OSError as error:
                yield entry_of(match, why=transfer.reason(error))
            else:
                yield entry_of(match, kept={"sha256": digest})

    return act


def _delete(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    for match in batch:
        try:
            transfer.delete(work.source(match.path_bytes), match.size, match.mtime_ns)
        except FileNotFoundError:  # by us, before we were killed
            yield entry_of(match)
        except OSError as error:
            yield entry_of(match, why=transfer.reason(error))
        else:
            yield entry_of(match)


def _archive(work: Work, batch: Sequence[Match]) -> Iterator[JournalEntry]:
    """Pack a batch into a tar of its own, which is there whole or not at all; the files stay."""
    name = os.fsencode(f"{work.policy.name}-{work.saved:09d}.tar")
    path = work.target(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - paths are bytes
    with whole_path(Path(os.fsdecode(path))) as part:
        with part.open("wb") as file:
            reasons = _packed(work, file, batch)
            os.fsync(file.fileno())
        if all(reasons):
            part.unlink()
    for match, reason in zip(batch, reasons, strict=True):
        yield entry_of(match, reason, None if reason else {"archive": os.fsdecode(name)})


def _packed(work: Work, file: IO[bytes], batch: Sequence[Match]) -> list[str]:
    """Write files into a tar; return why each is not in it, nothing for those that are."""
    reasons = []
    with tarfile.open(fileobj=file, mode="w", errors="surrogateescape") as tar:
        for match in batch:
            before = tar.offset
            reasons.append(_pack(work, tar, match))
            if reasons[-1]:
                # What was written of it is taken back: nothing that follows half a file would be found.
                file.seek(before)
                file.truncate()
                tar.offset = before
    file.flush()
    return reasons


def _pack(work: Work, tar: tarfile.TarFile, match: Match) -> str:
    source = work.source(match.path_bytes)
    try:
        transfer.check_same(source, match.size, match.mtime_ns)
        tar.add(os.fsdecode(source), os.fsdecode(match.path_bytes), recursive=False)
        transfer.check_same(source, match.size, match.mtime_ns)
    except OSError as error:
        if error.errno in transfer.FULL:
            raise
        return transfer.reason(error)
    return ""


def _untag(work: Work, entries: Sequence[JournalEntry]) -> None:
    put_tags(work.store, work.policy.dataset, {entry.path: entry.kept for entry in entries if entry.kept})


def _remove_copies(work: Work, entries: Sequence[JournalEntry]) -> None:
    for entry in entries:
        copy = work.target(entry.path)
        if entry.kept and os.path.lexists(copy) and transfer.digest_of(copy) == entry.kept["sha256"]:
            os.unlink(copy)  # noqa: PTH108


def _move_back(work: Work, entries: Sequence[JournalEntry]) -> None:
    for entry in entries:
        moved = work.target(entry.path)
        if os.path.lexists(moved):
            transfer.move(moved, work.source(entry.path), entry.size, entry.mtime_ns)


def _remove_archives(work: Work, entries: Sequence[JournalEntry]) -> None:
    for name in {entry.kept["archive"] for entry in entries if entry.kept}:
        path = work.target(os.fsencode(name))
        if os.path.lexists(path):
            os.unlink(path)  # noqa: PTH108


@dataclass(frozen=True)
class Action:
    """One thing that policies do. `needs` are the fields without which it cannot; `undo` is None where nothing can."""

    act: Callable[[Work, Sequence[Match]], Iterator[JournalEntry]]
    needs: tuple[str, ...] = ()
    undo: Callable[[Work, Sequence[JournalEntry]], None] | None = None
    moves: bool = False
    """Files are gone from the dataset afterwards, or come back: it is scanned again."""
    review: bool = False
    """Somebody looks at the list before it is done."""


ACTIONS = {
    "tag": Action(_tag, ("tag",), _untag),
    "checksum": Action(_checksum),
    "copy": Action(_transferred(transfer.copy), ("to",), _remove_copies),
    "move": Action(_transferred(transfer.move), ("to",), _move_back, moves=True),
    "archive": Action(_archive, ("to",), _remove_archives),
    "delete": Action(_delete, moves=True, review=True),
    "agent": Action(_agent, ("program or workload",), _untag),
    "curate": Action(_curate, (), _untag),
    "steps": Action(_steps, ("steps",), _untag),
}
