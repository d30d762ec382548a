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
import os
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .epochs import EpochOrder, share
from .shards import INDEX, SampleRow, Shards, samples_of

try:
    from torch.utils.data import DataLoader, Dataset
except ImportError:  # the order of samples can be looked at without it
    DataLoader, Dataset = None, object  # type: ignore[assignment,misc]

WINDOW = 4096
"""Places in the order that are worked out at once: by torch that takes a tenth of the time of one by one."""


class LazySample(Mapping):  # type: ignore[type-arg]
    """What `decode` is given: files by role, each read when it is asked for."""

    __slots__ = ("_row", "_shards")

    def __init__(self, row: SampleRow, shards: Shards) -> None:
        self._row, self._shards = row, shards

    def __getitem__(self, role: str) -> Any:
        row = self._row
        if role in row[1]:
            return row[1][role]
        at = self._index_of(role)
        return self._shards.read(row[0], row[at], row[at + 1]) if row[0] else _content(row[at])

    def view(self, role: str) -> memoryview:
        """Return the bytes of a file where they lie: of a shard that is mapped into memory nothing is copied."""
        row, at = self._row, self._index_of(role)
        return self._shards.view(row[0], row[at], row[at + 1]) if row[0] else memoryview(_content(row[at]))

    def _index_of(self, role: str) -> int:
        try:
            return 3 * self._row[2::3].index(role) + 3
        except ValueError:
            raise KeyError(role) from None

    def __iter__(self) -> Iterator[str]:
        yield from self._row[1]
        yield from self._row[2::3]

    def __len__(self) -> int:
        return len(self._row[1]) + (len(self._row) - 2) // 3


class SampleFolder(Dataset):  # type: ignore[type-arg]
    """The samples of a folder: of `samples.jsonl` where there is one, else every file."""

    def __init__(self, folder: str, decode: Optional[Callable[[Any], Any]] = None, split: str = "") -> None:
        self._folder, self._decode = folder, decode
        self._samples: List[SampleRow] = []
        self._tables: List[Tuple[str, int]] = []
        self.blocks: List[int] = []
        self._ends: List[int] = []
        self._open_group: Tuple[int, Any] = (-1, None)
        self._shards = Shards()
        for row in _rows(folder, split):
            self._add(row)
        if self._samples:
            self.blocks.insert(0, len(self._samples))
            self._tables.insert(0, ("", 0))
        self._ends = list(accumulate(self.blocks))

    def _add(self, row: Dict[str, str]) -> None:
        paths = [name for role, name in row.items() if role not in ("split", "class") and not role.endswith("_bytes")]
        kind = os.path.splitext(paths[0])[1]
        path = os.path.join(self._folder, paths[0])
        if kind == ".tar":
            self._samples += samples_of(path)
        elif kind == ".parquet":
            groups = _parquet(path)
            sizes = [groups.metadata.row_group(i).num_rows for i in range(groups.metadata.num_row_groups)]
            self._tables += [(path, group) for group in range(len(sizes))]
            self.blocks += sizes
        else:
            self._samples.append(self._of_files(row))

    def _of_files(self, row: Dict[str, str]) -> SampleRow:
        labels: Dict[str, str] = {}
        files: List[Any] = []
        for role, name in row.items():
            if role in ("split", "class"):
                labels[role] = name
            elif not role.endswith("_bytes"):
                files += (role, os.path.join(self._folder, name), -1)
        return ("", labels, *files)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> Any:
        if number >= len(self._samples):
            row = self._row(number)
            return self._decode(row) if self._decode else row
        sample = LazySample(self._samples[number], self._shards)
        return self._decode(sample) if self._decode else dict(sample)

    def _row(self, number: int) -> Dict[str, Any]:
        block = bisect_right(self._ends, number)
        if self._open_group[0] != block:
            path, group = self._tables[block]
            self._open_group = (block, _parquet(path).read_row_group(group))
        inside = number - (self._ends[block] - self.blocks[block])
        rows: List[Dict[str, Any]] = self._open_group[1].slice(inside, 1).to_pylist()
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
        for name in sorted(name for name in names if not name.endswith(INDEX)):
            inside = above[len(folder) :].strip("/")
            yield {"file": os.path.join(inside, name), "class": os.path.basename(inside)}


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
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
        loader, size = self._loader, self._loader.batch_size
        order = loader.order()
        positions = share(len(order), loader.taken, loader.rank, loader.world)
        window = size * max(WINDOW // size, 1)
        for begin in range(0, len(positions), window):
            numbers = order.numbers(positions[begin : begin + window])
            for start in range(0, len(numbers), size):
                yield numbers[start : start + size]


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
