"""Batches of one rank, epoch after epoch: who takes what, and in how many steps."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .ahead import copied_ahead
from .epochs import EpochOrder, keys_of

try:
    from torch.utils.data import DataLoader
except ImportError:  # the order of samples can be looked at without it
    DataLoader = None  # type: ignore[assignment,misc]

WINDOW = 4096
"""Places in the order that are worked out at once: by torch that takes a tenth of the time of one by one."""
TAILS = ("pad", "drop", "uneven")
"""What becomes of samples that fill no step of all ranks: some come again, they are left out, or ranks differ."""


@dataclass(frozen=True)
class Share:
    """What one rank takes of what is left of an epoch."""

    positions: range
    again: Optional[int]
    """A position that comes a second time, after the others."""
    repeated: int
    """Samples that come again, on all ranks together."""

    def __len__(self) -> int:
        return len(self.positions) + (self.again is not None)


class RankPlace(NamedTuple):
    """One rank among all."""

    rank: int
    world: int


def share(length: int, taken: int, place: RankPlace, batch: int = 1, tail: str = "uneven") -> Share:
    """Return what one rank takes of an epoch of which all ranks together have taken some.

    A step of all ranks takes the next positions of all in turn. With `pad` and `drop` all ranks take equally many: a
    rank that made one step more than another would wait for it in the next sum of gradients, perhaps for ever.
    """
    rank, world = place
    left = length - taken
    if tail == "uneven":
        return Share(range(taken + rank, length, world), None, 0)
    if tail == "drop":
        each = left // (batch * world) * batch
        return Share(range(taken + rank, taken + each * world, world), None, 0)
    each = -(-left // world)
    positions = range(taken + rank, length, world)
    # At most one place of a rank is beyond the end; with fewer samples than ranks they come more than once.
    again = None if len(positions) == each else (taken + rank + (each - 1) * world) % length
    return Share(positions, again, each * world - left)


class _Steps:
    """What a DataLoader asks for the numbers of each batch."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[List[Any]]:
        loader, size = self._loader, self._loader.batch_size
        order, mine = loader.order(), loader.share()
        key_of = loader.keys()
        window = size * max(WINDOW // size, 1)
        ends = max(len(mine), 1)
        for begin in range(0, ends, window):
            numbers = order.numbers(mine.positions[begin : begin + window])
            if mine.again is not None and begin + window >= ends:
                numbers += order.numbers(range(mine.again, mine.again + 1))
            for start in range(0, len(numbers), size):
                yield [key_of(number) for number in numbers[start : start + size]]


class Loader:
    """Batches of one rank, epoch after epoch; `state_dict` holds where all ranks are, at a step they all made.

    Every rank makes the same number of steps: with `tail="pad"` some samples come again to fill the last one
    (`repeated`), with "drop" those that fill none are left out. With "uneven" each sample comes exactly once and some
    ranks make a step less: for scoring, where ranks do not wait for each other. `options` are DataLoader's.
    """

    def __init__(
        self,
        samples: Any,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        tail: str = "pad",
        **options: Any,
    ) -> None:
        if tail not in TAILS:
            raise ValueError(f'tail "{tail}" is none of {", ".join(TAILS)}')
        self.samples, self.batch_size, self.seed, self.shuffle, self.tail = samples, batch_size, seed, shuffle, tail
        self.place = RankPlace(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
        self.epoch = self.taken = 0
        self._device: Any = None
        self._options = options
        self._inner: Any = None

    def among(self, rank: int, world: int) -> Loader:
        """Be this rank of so many, where they are not those of RANK and WORLD_SIZE; return the loader itself."""
        self.place = RankPlace(rank, world)
        return self

    def to(self, device: Any) -> Loader:
        """Give batches on this device, and return the loader itself.

        For a GPU other processes decode, a core each, into pinned memory, and the next batch is copied on a stream of
        its own while the step at hand computes.
        """
        self._device, self._inner = device, None
        return self

    @property
    def steps(self) -> int:
        """Return the steps of a whole epoch for this rank."""
        return -(-len(self.share(0)) // self.batch_size)

    @property
    def repeated(self) -> int:
        """Return how many samples of this epoch come again, on all ranks together."""
        return self.share().repeated

    def share(self, taken: Optional[int] = None) -> Share:
        """Return what this rank takes of what is left of the epoch; refuse where no epoch has a step."""
        length = len(self.samples)
        if self.tail == "drop" and length < self.batch_size * self.place.world:
            raise RuntimeError(
                f"{length} samples fill no step of {self.place.world} ranks with {self.batch_size} each: "
                f'give tail="pad", a smaller batch or fewer ranks'
            )
        return share(length, self.taken if taken is None else taken, self.place, self.batch_size, self.tail)

    def order(self) -> EpochOrder:
        """Return the order of the present epoch."""
        blocks = getattr(self.samples, "blocks", None)
        return EpochOrder([len(self.samples)] if blocks is None else blocks, self.seed, self.epoch, self.shuffle)

    def keys(self) -> Any:
        """Return what makes of a number what the samples are asked for: itself, or it and its draw in this epoch."""
        if not getattr(self.samples, "draws", False):
            return int
        first = (next(keys_of(self.seed)) << 40) + self.epoch * len(self.samples)
        return lambda number: (number, first + number)

    def __len__(self) -> int:
        """Return the steps that are left of the epoch for this rank."""
        return -(-len(self.share()) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rest of the epoch; a batch counts as taken once the next one is asked for."""
        length, wide = len(self.samples), self.batch_size * self.place.world
        if self._inner is None:
            self._inner = self._made()
        for batch in copied_ahead(self._inner, self._device):
            # Before it is given: whoever saves the state in the step saves it after this batch.
            self.taken = min(self.taken + wide, length)
            yield batch
        self.epoch, self.taken = self.epoch + 1, 0

    def _made(self) -> Any:
        options = {"worker_init_fn": _apart, **self._options}
        if str(self._device).startswith("cuda"):
            options = {"num_workers": _cores(), "pin_memory": True, **options}
        return DataLoader(self.samples, batch_sampler=_Steps(self), **options)

    def state_dict(self) -> Dict[str, int]:
        """Return where the epoch is, for a checkpoint that belongs after the batch that was given last."""
        return {"epoch": self.epoch, "taken": self.taken, "seed": self.seed, "samples": len(self.samples)}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Go on where a checkpoint was written, with any number of ranks and any size of batches."""
        if state["samples"] != len(self.samples):
            raise RuntimeError(f"the checkpoint is of {state['samples']} samples, and here are {len(self.samples)}")
        self.epoch, self.taken, self.seed = state["epoch"], state["taken"], state["seed"]


def _cores() -> int:
    """Return the cores that each rank of this node has for itself."""
    return max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def _apart(worker: int) -> None:
    """Leave the group of processes that a launcher signals: what decodes must outlive that for the step at hand."""
    os.setpgid(0, 0)
