"""Goes through a tree on all cores. Only the standard library: each process starts by importing this file.

One process does a small tree alone. A larger one is dealt out: a worker goes through folders until it has seen enough
entries, hands back its rows with the folders it has not come to, and gets others.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

FIELDS = ("folder", "mode", "size", "mtime_ns", "ctime_ns", "inode", "uid", "gid")
"""What is known of an entry beside its name; `folder` is the place of its folder in the same batch."""
_LARGEST = (1 << 63) - 1
ENTRIES = 20_000
"""How many entries a batch has before its worker hands it in."""


@dataclass(slots=True)
class Rows:
    """Entries as columns that are cheap to send: names end to end with their lengths, numbers row by row."""

    names: bytes = b""
    lengths: array[int] = field(default_factory=lambda: array("i"))
    numbers: array[int] = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class Batch:
    """What one worker saw: folders by their paths below the root, ending in /, and what lies in them."""

    folders: Rows
    files: Rows
    unread: list[tuple[bytes, str]]
    """Folders that could not be read, and why."""
    rest: list[bytes]
    """Folders that were seen and not gone through."""


def walk(
    root: bytes, workers: int, seen: Callable[[int], None] | None = None, entries: int = ENTRIES
) -> Iterator[Batch]:
    """Yield the whole tree below a folder in batches; `seen` hears how many files there were so far."""
    files = 0
    for batch in _batches(root, workers, entries):
        files += len(batch.files.lengths)
        if seen is not None:
            seen(files)
        yield batch


def _batches(root: bytes, workers: int, entries: int) -> Iterator[Batch]:
    first = walk_some(root, [b""], entries)
    yield first
    if workers > 1 and len(first.rest) > 1:
        yield from _dealt(root, first.rest, workers, entries)
        return
    rest = deque(first.rest)
    while rest:
        batch = walk_some(root, [rest.popleft()], entries)
        rest.extend(batch.rest)
        yield batch


def _dealt(root: bytes, folders: Sequence[bytes], workers: int, entries: int) -> Iterator[Batch]:
    """Deal folders out to processes, each asked by a thread; whoever is done gets a share of what is left."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    rest, idle = deque(folders), [_Worker() for _ in range(workers)]
    running: dict[Future[Batch], _Worker] = {}
    try:
        with ThreadPoolExecutor(workers) as pool:
            while rest or running:
                while rest and idle:
                    share = max(1, min(len(rest) // (2 * workers), 64))
                    worker, taken = idle.pop(), [rest.popleft() for _ in range(share)]
                    running[pool.submit(worker.ask, root, taken, entries)] = worker
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    idle.append(running.pop(future))
                    batch = future.result()
                    rest.extend(batch.rest)
                    yield batch
    finally:
        for worker in [*idle, *running.values()]:
            worker.end()


class _Worker:
    """A process that goes through folders; it ends with us, since then its stdin does."""

    def __init__(self) -> None:
        import subprocess
        import sys

        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
        # Without `site`, which takes longer to start than many a walk: the standard library and this package do.
        command = [sys.executable, "-S", "-m", "podwright.data.walk_worker"]
        environment = {**os.environ, "PYTHONPATH": package}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def ask(self, root: bytes, folders: Sequence[bytes], entries: int) -> Batch:
        import pickle

        question, answer = self._process.stdin, self._process.stdout
        assert question is not None
        assert answer is not None
        try:
            pickle.dump((root, list(folders), entries), question)
            question.flush()
            batch: Batch = pickle.load(answer)
        except (EOFError, OSError, pickle.UnpicklingError):  # somebody killed it: its share is ours
            return walk_some(root, folders, entries)
        return batch

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def walk_some(root: bytes, folders: Sequence[bytes], entries: int) -> Batch:
    """Go through folders, depth first, until so many entries were seen; a folder that was begun is finished."""
    batch = Batch(Rows(), Rows(), [], [])
    folder_names: list[bytes] = []
    file_names: list[bytes] = []
    stack = list(reversed(folders))
    while stack and len(file_names) + len(folder_names) < entries:
        folder = stack.pop()
        inner: list[bytes] = []
        try:
            status = os.stat(os.path.join(root, folder))  # noqa: PTH116, PTH118 - paths are bytes, by the million
            names = _list(root + b"/" + folder, len(folder_names), batch.files.numbers, inner)
        except FileNotFoundError:  # gone meanwhile
            continue
        except OSError as error:
            batch.unread.append((folder, (error.strerror or str(error)).lower()))
            continue
        _add(batch.folders.numbers, 0, status)
        folder_names.append(folder)
        file_names += names
        stack.extend(folder + name + b"/" for name in reversed(inner))
    _pack(batch.folders, folder_names)
    _pack(batch.files, file_names)
    batch.rest = stack
    return batch


def _list(path: bytes, place: int, numbers: array[int], inner: list[bytes]) -> list[bytes]:
    """Return the names of what is in a folder and is none itself; its numbers and the folders in it are added."""
    names: list[bytes] = []
    with os.scandir(path) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # gone meanwhile
                continue
            if stat.S_ISDIR(status.st_mode):
                inner.append(entry.name)
                continue
            names.append(entry.name)
            _add(numbers, place, status)
    inner.sort()
    return names


def _add(numbers: array[int], place: int, status: os.stat_result) -> None:
    row = [
        place,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_uid,
        status.st_gid,
    ]
    try:
        numbers.fromlist(row)
    except OverflowError:  # an inode with 64 bits, or a time after the year 2262
        numbers.fromlist([max(-_LARGEST, min(number, _LARGEST)) for number in row])


def _pack(rows: Rows, names: list[bytes]) -> None:
    rows.names = b"".join(names)
    rows.lengths = array("i", map(len, names))
