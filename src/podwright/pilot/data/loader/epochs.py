"""The order of an epoch, which follows from seed and epoch alone: standard library, and torch where it is there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from math import isqrt
from typing import Any, Iterator, List, Sequence

try:
    import torch
except ImportError:  # the order can be looked at without it
    torch = None  # type: ignore[assignment]

LOW = (1 << 31) - 1
ROUNDS = 3


def mixed(numbers: Any) -> Any:
    """Return 31 bits of which each depends on every bit of a number of 31 bits; also of each in a tensor of them.

    No product is above 63 bits, so the same lines do for Python's numbers and for torch's.
    """
    numbers = ((numbers >> 16) ^ numbers) * 0x45D9F3B & LOW
    numbers = ((numbers >> 15) ^ numbers) * 0x45D9F3B & LOW
    return (numbers >> 16) ^ numbers


def keys_of(seed: int) -> Iterator[int]:
    """Yield keys that follow from a seed of up to 62 bits."""
    key = mixed(mixed(seed & LOW) ^ (seed >> 31 & LOW))
    while True:
        key = mixed(key + 0x1E3779B9 & LOW)
        yield key


class Permutation:
    """A shuffle of 0 to length - 1 that holds no list: a Feistel network over a rectangle, walked until it ends inside.

    It is the same on every machine and in every version of Python and torch.
    """

    def __init__(self, length: int, seed: int) -> None:
        self._length = length
        self._rows = isqrt(max(length - 1, 0)) + 1
        self._columns = -(-length // self._rows) or 1
        keys = keys_of(seed)
        self._keys = [(next(keys), next(keys)) for _ in range(ROUNDS)]

    def numbers(self, positions: range) -> List[int]:
        """Return what lies at these positions."""
        if torch is None:
            return [self[position] for position in positions]  # type: ignore[unreachable]
        numbers = self._walked(torch.arange(positions.start, positions.stop, positions.step))
        while bool((outside := numbers >= self._length).any()):
            numbers[outside] = self._walked(numbers[outside])
        listed: List[int] = numbers.tolist()
        return listed

    def __getitem__(self, position: int) -> int:
        number: int = self._walked(position)
        while number >= self._length:
            number = self._walked(number)
        return number

    def _walked(self, positions: Any) -> Any:
        rows, columns = self._rows, self._columns
        row, column = positions // columns, positions % columns
        for key, other in self._keys:
            row = (row + mixed(column ^ key)) % rows
            column = (column + mixed(row ^ other)) % columns
        return row * columns + column


class EpochOrder:
    """The order of one epoch over blocks of samples; the blocks are shuffled, and the samples of each."""

    def __init__(self, blocks: Sequence[int], seed: int, epoch: int, shuffle: bool = True) -> None:
        self._shuffle, self._seed = shuffle, next(keys_of(seed)) << 31 ^ next(keys_of(epoch))
        self._starts = [0, *accumulate(blocks)]
        self._blocks = Permutation(len(blocks), self._seed).numbers(range(len(blocks)))
        self._ends = list(accumulate(blocks[block] for block in self._blocks))

    def __len__(self) -> int:
        return self._starts[-1]

    def numbers(self, positions: range) -> List[int]:
        """Return the samples at these positions, which go up."""
        if not self._shuffle:
            return list(positions)
        numbers: List[int] = []
        while positions:
            index = bisect_right(self._ends, positions[0])
            block, end = self._blocks[index], self._ends[index]
            start = self._starts[block]
            length = self._starts[block + 1] - start
            count = bisect_left(positions, end)
            first, last = positions[0] - (end - length), positions[count - 1] - (end - length)
            inside = Permutation(length, self._seed + block + 1).numbers(range(first, last + 1, positions.step))
            numbers += [start + number for number in inside]
            positions = positions[count:]
        return numbers
