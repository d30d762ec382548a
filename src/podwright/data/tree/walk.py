"""Goes through a tree on all cores. One process does a small tree alone, a larger one is dealt out.

A worker goes through folders until it has seen enough entries, hands back its rows with the folders it has not come to,
and gets others.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from types import CodeType

import numpy as np

from podwright.data.tree import walk_folders
from podwright.data.tree.walk_folders import FIELDS, Walked

FIRST = 2_000
"""How many entries are seen before processes are started: most trees have fewer."""
ENTRIES = 10_000
"""How many entries a batch has before its worker hands it in."""
_START = "import marshal, sys; exec(marshal.load(sys.stdin.buffer))"
"""A process gets its program as bytecode: Python keeps none of a file that is started by its path."""
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries as columns: names with a zero byte behind each, and a row of numbers for each of `FIELDS`."""

    names: bytes
    numbers: Numbers

    def __len__(self) -> int:
        return int(self.numbers.shape[1])


@dataclass(frozen=True, slots=True)
class Batch:
    """What one worker saw: folders by their paths below the root, ending in /, and what lies in them."""

    folders: Rows
    files: Rows
    counts: Numbers
    """How many of the files lie in each folder; they are in the order of the folders."""
    unread: list[tuple[bytes, str]]
    """Folders that could not be read, and why."""
    acls: list[tuple[int, bytes]]
    """Lists of access, each with the place of its folder."""
    rest: list[bytes]
    """Folders that were seen and not gone through."""


def walk(root: bytes, workers: int, entries: int = ENTRIES) -> Iterator[Batch]:
    """Return the whole tree below a folder in batches.

    The walk begins with this call: its processes start while the caller makes ready for the first batch.
    """
    batches = _batches(root, workers, entries)
    first = next(batches)
    return chain([first], batches)


def walk_some(root: bytes, folders: Sequence[bytes], entries: int, skipped: frozenset[bytes] = frozenset()) -> Batch:
    """Go through folders in this process until so many entries were seen, and into none that is skipped."""
    return _batch(walk_folders.walk_folders(root, list(folders), entries, _lists(), skipped))


def labelled_batch(batch: Batch, label: str) -> Batch:
    """Return a batch whose paths begin with the label of their root."""
    top = label.encode() + b"/"
    folders = Rows(_behind(batch.folders.names, top), batch.folders.numbers)
    return replace(batch, folders=folders, unread=[(top + path, why) for path, why in batch.unread])


def _behind(names: bytes, top: bytes) -> bytes:
    return b"".join(top + name + b"\0" for name in names.split(b"\0")[:-1])


def top_names(batch: Batch) -> list[bytes]:
    """Return the names of files and folders that lie in the root itself, as far as the batch has them."""
    folders = batch.folders.names.split(b"\0")[:-1]
    tops = [folder.rstrip(b"/") for folder in folders if folder.count(b"/") == 1]
    if b"" in folders:
        at = folders.index(b"")
        start = int(batch.counts[:at].sum())
        tops += batch.files.names.split(b"\0")[start : start + int(batch.counts[at])]
    return tops


def _lists() -> bool:
    # Only what root scans is shared, and only what is shared must know who may enter a folder.
    return os.geteuid() == 0


def _batch(walked: Walked) -> Batch:
    paths, folder_numbers, counts, names, numbers, unread, acls, rest = walked
    folders = Rows(paths, np.frombuffer(folder_numbers, np.int64).reshape(len(FIELDS), -1))
    files = Rows(names, np.frombuffer(numbers, np.int64).reshape(len(FIELDS), -1))
    return Batch(folders, files, np.frombuffer(counts, np.int64), unread, acls, rest)


def _batches(root: bytes, workers: int, entries: int) -> Iterator[Batch]:
    first = walk_some(root, [b""], min(FIRST, entries))
    if workers > 1 and len(first.rest) > 1:
        yield from _dealt(root, first, workers, entries)
        return
    yield first
    rest = deque(first.rest)
    while rest:
        batch = walk_some(root, [rest.popleft()], entries)
        rest.extend(batch.rest)
        yield batch


def _dealt(root: bytes, first: Batch, workers: int, entries: int) -> Iterator[Batch]:
    """Deal folders out to processes, each asked by a thread; whoever is done gets a share of what is left."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    rest, idle = deque(first.rest), [_Worker() for _ in range(workers)]
    running: dict[Future[Batch], _Worker] = {}
    ready = [first]
    try:
        with ThreadPoolExecutor(workers) as pool:
            while rest or running:
                while rest and idle:
                    share = max(1, min(len(rest) // (2 * workers), 64))
                    worker, taken = idle.pop(), [rest.popleft() for _ in range(share)]
                    running[pool.submit(worker.ask, root, taken, entries)] = worker
                yield from ready
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                idle += [running.pop(future) for future in done]
                ready = [future.result() for future in done]
                rest.extend(chain.from_iterable(batch.rest for batch in ready))
        yield from ready
    finally:
        for worker in [*idle, *running.values()]:
            worker.end()


@cache
def _code() -> CodeType:
    # Without its loader a module would not be here.
    return walk_folders.__spec__.loader.get_code(walk_folders.__name__)  # type: ignore[union-attr,no-any-return]


class _Worker:
    """A process that goes through folders; it ends with us, since then its stdin does."""

    def __init__(self) -> None:
        import marshal
        import subprocess
        import sys

        # Without `site` and what the environment says: the standard library does, and that starts fast.
        command = [sys.executable, "-I", "-S", "-c", _START]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        with suppress(OSError):  # somebody killed it: whoever asks it is told so
            marshal.dump(_code(), self._process.stdin)

    def ask(self, root: bytes, folders: Sequence[bytes], entries: int) -> Batch:
        import marshal

        question, answer = self._process.stdin, self._process.stdout
        assert question is not None
        assert answer is not None
        try:
            marshal.dump((root, list(folders), entries, _lists()), question)
            question.flush()
            walked = walk_folders.receive(answer)
        except (EOFError, OSError, ValueError, TypeError):  # somebody killed it: its share is ours
            return walk_some(root, folders, entries)
        return _batch(walked)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
