"""Samples of a folder, of tar shards and of Parquet tables, each read when it is asked for."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from .shards import INDEX, SampleRow, Shards, samples_of

try:
    from torch.utils.data import Dataset
except ImportError:  # samples can be read without it
    Dataset = object  # type: ignore[assignment,misc]

Key = Union[int, Tuple[int, int]]
"""The number of a sample, or that and its draw."""


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
    """The samples of a folder: of `samples.jsonl` where there is one, else every file.

    With `draws`, `decode` is given a number beside each sample, from which to make random changes of it: it follows
    from seed, epoch and sample, so they are the same on any number of ranks, and after a run went on.
    """

    def __init__(
        self, folder: str, decode: Optional[Callable[..., Any]] = None, split: str = "", draws: bool = False
    ) -> None:
        self._folder, self._decode, self.draws = folder, decode, draws
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

    def __getitem__(self, key: Key) -> Any:
        number, *draw = key if isinstance(key, tuple) else (key,)
        is_row = number >= len(self._samples)
        sample: Any = self._row(number) if is_row else LazySample(self._samples[number], self._shards)
        return self._decode(sample, *draw) if self._decode else dict(sample)

    def labels(self, number: int) -> Dict[str, str]:
        """Return what is known of a sample of files before it is read: its class, its split, its key."""
        found: Dict[str, str] = self._samples[number][1]
        return found

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
