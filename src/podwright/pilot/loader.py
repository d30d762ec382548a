"""A PyTorch dataset over the data of a run, which every rank can import as `podwright_data`.

    from podwright_data import Loader, SampleFolder
    loader = Loader(SampleFolder(folder, decode), batch_size=32, seed=1)
    for epoch in range(loader.epoch, 10):
        for batch in loader:
            ...
            save({"loader": loader.state_dict(), ...})

Standard library and torch alone; pyarrow for Parquet. A sample is a dictionary: of a folder the bytes of its files by
role, of a tar shard those of its members by suffix, of Parquet a row. `decode` makes of it what the program wants, and
is given a mapping that reads a file when it is asked for.

The order of an epoch follows from seed and epoch, not from the ranks: a step takes the next samples of all, and each
rank its share of them. So the state is one number, how many were taken, and a run goes on with any number of ranks.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tarfile
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from math import isqrt
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

try:
    from torch.utils.data import DataLoader, Dataset
except ImportError:  # the order of samples can be looked at without it
    DataLoader, Dataset = None, object  # type: ignore[assignment,misc]

MASK = (1 << 64) - 1
ROUNDS = 6
BLOCK = 512
HEADER = struct.Struct("100s24x11s21x1s100x5s83x1s")
"""Of a member of a tar: its name, its size, its kind, "ustar", and the first byte of a longer name."""
PLAIN = frozenset((b"0", b"\0", b"5"))
MOST_OPEN = 64


def mixed(number: int) -> int:
    """Return 64 bits of which each depends on every bit of a number (splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


class Permutation:
    """A shuffle of 0 to length - 1 that holds no list: a Feistel network over a rectangle, walked until it ends inside.

    It is the same on every machine and in every version of Python and torch.
    """

    def __init__(self, length: int, seed: int) -> None:
        self._length = length
        self._rows = isqrt(max(length - 1, 0)) + 1
        self._columns = -(-length // self._rows) or 1
        keys = [mixed(mixed(seed) + round_) for round_ in range(ROUNDS)]
        self._keys = list(zip(keys[::2], keys[1::2]))

    def __getitem__(self, position: int) -> int:
        rows, columns = self._rows, self._columns
        while True:
            row, column = divmod(position, columns)
            for key, other in self._keys:
                row = (row + mixed(column ^ key)) % rows
                column = (column + mixed(row ^ other)) % columns
            position = row * columns + column
            if position < self._length:
                return position


class EpochOrder:
    """The order of one epoch over blocks of samples; the blocks are shuffled, and the samples of each."""

    def __init__(self, blocks: Sequence[int], seed: int, epoch: int, shuffle: bool = True) -> None:
        self._shuffle, self._seed = shuffle, mixed(seed) ^ mixed(~epoch & MASK)
        self._starts = [0, *accumulate(blocks)]
        places = range(len(blocks))
        self._blocks = [Permutation(len(blocks), self._seed)[i] for i in places] if shuffle else list(places)
        self._ends = list(accumulate(blocks[block] for block in self._blocks))
        self._inner: Tuple[int, Optional[Permutation]] = (-1, None)
        self._lengths = list(blocks)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, position: int) -> int:
        if not self._shuffle:
            return position
        place = bisect_right(self._ends, position)
        block = self._blocks[place]
        inside = position - (self._ends[place] - self._lengths[block])
        if self._inner[0] != block:
            self._inner = (block, Permutation(self._lengths[block], self._seed + block))
        assert self._inner[1] is not None
        return self._starts[block] + self._inner[1][inside]


def shares(length: int, taken: int, batch_size: int, rank: int, world: int) -> Iterator[range]:
    """Yield the positions of each step of one rank, from what all ranks together have taken.

    The last step may be smaller, and give some ranks one sample less, or none.
    """
    for start in range(taken, length, batch_size * world):
        end = min(start + batch_size * world, length)
        share = range(start + rank, end, world)
        if share:
            yield share


SampleRow = Tuple[Any, ...]
"""A sample before it is read: the path of its shard ("" for files), what is known of it already as a dictionary, and
then in turn a role, an offset and a size, or a role, the path of a file and -1. One tuple: there may be millions."""


class LazySample(Mapping):  # type: ignore[type-arg]
    """What `decode` is given: files by role, each read when it is asked for."""

    __slots__ = ("_row",)

    def __init__(self, row: SampleRow) -> None:
        self._row = row

    def __getitem__(self, role: str) -> Any:
        row = self._row
        if role in row[1]:
            return row[1][role]
        for at in range(2, len(row), 3):
            if row[at] == role:
                return _read(row[0], row[at + 1], row[at + 2])
        raise KeyError(role)

    def __iter__(self) -> Iterator[str]:
        yield from self._row[1]
        yield from self._row[2::3]

    def __len__(self) -> int:
        return len(self._row[1]) + (len(self._row) - 2) // 3


class SampleFolder(Dataset):  # type: ignore[type-arg]
    """The samples of a folder: of `samples.jsonl` where there is one, else every file."""

    def __init__(self, folder: str, decode: Optional[Callable[[Dict[str, Any]], Any]] = None, split: str = "") -> None:
        self._folder, self._decode = folder, decode
        self._samples: List[SampleRow] = []
        self._tables: List[Tuple[str, int]] = []
        self.blocks: List[int] = []
        self._ends: List[int] = []
        self._held: Tuple[int, Any] = (-1, None)
        for row in _rows(folder, split):
            self._add(row)
        if self._samples:
            self.blocks.insert(0, len(self._samples))
            self._tables.insert(0, ("", 0))
        self._ends = list(accumulate(self.blocks))

    def _add(self, row: Dict[str, str]) -> None:
        paths = [name for role, name in row.items() if role not in ("split", "class") and not role.endswith("_bytes")]
        kind = os.path.splitext(paths[0])[1]
        whole = os.path.join(self._folder, paths[0])
        if kind == ".tar":
            self._samples += _members(whole)
        elif kind == ".parquet":
            groups = _parquet(whole)
            sizes = [groups.metadata.row_group(i).num_rows for i in range(groups.metadata.num_row_groups)]
            self._tables += [(whole, group) for group in range(len(sizes))]
            self.blocks += sizes
        else:
            self._samples.append(self._of_files(row))

    def _of_files(self, row: Dict[str, str]) -> SampleRow:
        known: Dict[str, str] = {}
        files: List[Any] = []
        for role, name in row.items():
            if role in ("split", "class"):
                known[role] = name
            elif not role.endswith("_bytes"):
                files += (role, os.path.join(self._folder, name), -1)
        return ("", known, *files)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> Any:
        block = bisect_right(self._ends, number)
        path, group = self._tables[block]
        inside = number - (self._ends[block] - self.blocks[block])
        sample: Any = self._row(block, path, group, inside) if path else LazySample(self._samples[inside])
        if self._decode:
            return self._decode(sample)
        return sample if path else dict(sample)

    def _row(self, block: int, path: str, group: int, inside: int) -> Dict[str, Any]:
        if self._held[0] != block:
            self._held = (block, _parquet(path).read_row_group(group))
        rows: List[Dict[str, Any]] = self._held[1].slice(inside, 1).to_pylist()
        return rows[0]


def _rows(folder: str, split: str) -> Iterator[Dict[str, str]]:
    listed = os.path.join(folder, "samples.jsonl")
    if os.path.exists(listed):
        with open(listed, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if not split or row.get("split") == split:
                    yield row
        return
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            inside = above[len(folder) :].strip("/")
            yield {"file": os.path.join(inside, name), "class": os.path.basename(inside)}


def _members(path: str) -> List[SampleRow]:
    """Return the samples of a shard: members of one name up to its first dot, by what follows it."""
    samples: Dict[str, SampleRow] = {}
    try:
        members = _quickly(path)
    except (ValueError, struct.error):  # a name or a size in another form, or an end that is cut off
        members = []
    for member, offset, size in members or _slowly(path):
        dot = member.find(".", member.rfind("/") + 1)
        key, suffix = (member, "") if dot < 0 else (member[:dot], member[dot + 1 :])
        if key in samples:
            samples[key] += (suffix, offset, size)
        else:
            samples[key] = (path, {"key": key}, suffix, offset, size)
    return list(samples.values())


def _quickly(path: str) -> List[Tuple[str, int, int]]:
    """Return (name, offset, size) of the members of a tar that has only plain files and folders; else nothing.

    `tarfile` takes ten times as long, and this is done at the start of every rank.
    """
    members, offset = [], 0
    with open(path, "rb", buffering=0) as file:
        number = file.fileno()
        # Not mapped into memory: a page fault for each header would cost twice as much as to read it.
        while (head := os.pread(number, HEADER.size, offset)) and head[0]:
            name, size_text, kind, magic, prefix = HEADER.unpack(head)
            if magic != b"ustar" or kind not in PLAIN or prefix != b"\0":
                return []
            size = int(size_text, 8)
            offset += BLOCK
            if kind != b"5":
                members.append((name.rstrip(b"\0").decode(), offset, size))
            offset += (size + BLOCK - 1) // BLOCK * BLOCK
    return members


def _slowly(path: str) -> List[Tuple[str, int, int]]:
    try:
        with tarfile.open(path, "r:") as archive:
            return [(member.name, member.offset_data, member.size) for member in archive if member.isfile()]
    except tarfile.ReadError as error:
        raise RuntimeError(f"{path} is no plain tar: {error}; compressed shards cannot be read in any order") from None


class _Shards:
    """Open shards of this process, the last few of them: opening one for every sample would cost more than reading.

    What nobody may write to, as staging leaves it, is mapped into memory. Any other is read: to look into a file that
    somebody cuts off meanwhile would kill the process.
    """

    def __init__(self) -> None:
        self._files: Dict[str, Any] = {}
        self._owner = 0

    def read(self, path: str, offset: int, size: int) -> bytes:
        shard = self._files.get(path)
        if shard is None or self._owner != os.getpid():
            shard = self._open(path)
        if isinstance(shard, int):
            return os.pread(shard, size, offset)
        data: bytes = shard[offset : offset + size]
        return data

    def _open(self, path: str) -> Any:
        if self._owner != os.getpid():  # a worker must not share what its parent opened
            self._files, self._owner = {}, os.getpid()
        if len(self._files) >= MOST_OPEN:
            oldest = self._files.pop(next(iter(self._files)))
            (os.close if isinstance(oldest, int) else mmap.mmap.close)(oldest)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._files[path] = file
        if not os.fstat(file).st_mode & 0o222:
            self._files[path] = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
            os.close(file)
        return self._files[path]


_SHARDS = _Shards()


def _read(shard: str, place: Any, size: int) -> bytes:
    """Return a member of a shard, which lies at an offset; or a whole file, which lies at a path."""
    if shard:
        return _SHARDS.read(shard, place, size)
    with open(place, "rb") as file:
        return file.read()


def _parquet(path: str) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise RuntimeError(f"{path} is Parquet, which needs pyarrow beside the program: pip install pyarrow") from None
    return parquet.ParquetFile(path)


class _Steps:
    """What a DataLoader asks for the numbers of each batch."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[List[int]]:
        loader = self._loader
        order = loader.order()
        for share in shares(len(order), loader.taken, loader.batch_size, loader.rank, loader.world):
            yield [order[position] for position in share]


class Loader:
    """Batches of one rank, epoch after epoch; `state_dict` holds where all ranks are, at a step they all made.

    `rank` and `world` are those of the run unless they are given. Other arguments are DataLoader's.
    """

    def __init__(
        self,
        samples: SampleFolder,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        rank: Optional[int] = None,
        world: Optional[int] = None,
        **options: Any,
    ) -> None:
        self.samples, self.batch_size, self.seed, self.shuffle = samples, batch_size, seed, shuffle
        self.rank = int(os.environ.get("RANK", 0)) if rank is None else rank
        self.world = int(os.environ.get("WORLD_SIZE", 1)) if world is None else world
        self.epoch = self.taken = 0
        self._inner = DataLoader(samples, batch_sampler=_Steps(self), **options)

    def order(self) -> EpochOrder:
        """Return the order of the present epoch."""
        return EpochOrder(self.samples.blocks, self.seed, self.epoch, self.shuffle)

    def __len__(self) -> int:
        """Return the steps that are left of the epoch for this rank."""
        left = len(self.samples) - self.taken
        full, rest = divmod(left, self.batch_size * self.world)
        return full + (rest > self.rank)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rest of the epoch; a batch counts as taken once the next one is asked for."""
        length = len(self.samples)
        for batch in self._inner:
            # Before it is given: whoever saves the state in the step saves it after this batch.
            self.taken = min(self.taken + self.batch_size * self.world, length)
            yield batch
        self.epoch, self.taken = self.epoch + 1, 0

    def state_dict(self) -> Dict[str, int]:
        """Return where the epoch is, for a checkpoint that belongs after the batch that was given last."""
        return {"epoch": self.epoch, "taken": self.taken, "seed": self.seed, "samples": len(self.samples)}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Go on where a checkpoint was written, with any number of ranks and any size of batches."""
        if state["samples"] != len(self.samples):
            raise RuntimeError(f"the checkpoint is of {state['samples']} samples, and here are {len(self.samples)}")
        self.epoch, self.taken, self.seed = state["epoch"], state["taken"], state["seed"]
