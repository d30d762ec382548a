"""Batches of equal pictures that processes decode, a core each, straight into memory that the GPU copies from.

A step waits for the slowest of those who decode it. So a batch is cut into small parts, and who is done takes the next
one, of whichever batch: a process that shares its core with the training delays nobody. Nothing is copied on the way:
each picture is written where the GPU's copy reads it, in memory that all processes share. A few batches are ahead, no
more, however long a step takes.
"""

from __future__ import annotations

import os
import signal
import struct
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any

import numpy as np
import torch
from torch import Tensor

AHEAD = 4
"""Batches that are decoded or waiting."""
PART = 8
"""Pictures of a part: some 20 ms of work, many times what handing it out takes."""
MESSAGE = struct.Struct("<q")
"""The number of a part, over all batches ahead; -1 - number of one that failed. A pipe gives so few bytes whole or not
at all, to whichever process reads first: nobody holds a lock that it could die with."""
AT_ONCE = 64
"""Messages that are read at once."""
POLITE = 5
"""How much decoding stands back: the training's own thread, which the GPU waits for, goes first on a shared core."""
WORD = 1 << 64
NOBODY = WORD - 1
"""The sample of a place that a batch does not fill."""
WORDS = 8192
"""Bytes kept for what went wrong first."""
Key = tuple[int, int]
"""A sample, and its draw."""
Picture = np.ndarray[Any, np.dtype[np.uint8]]
Decode = Callable[[Key, Picture], int]
"""Writes a picture, and returns the number of what it shows."""
Given = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Shared:
    """What all processes see: for each batch ahead its keys, its pictures and what they show."""

    keys: np.ndarray[Any, np.dtype[np.uint64]]
    """Of each picture its sample, and its draw, which is a number of two words."""
    pictures: np.ndarray[Any, np.dtype[np.uint8]]
    truth: np.ndarray[Any, np.dtype[np.int64]]
    words: mmap

    @classmethod
    def of(cls, batch: int, shape: Sequence[int]) -> Shared:
        """Memory without a name: it is gone with its processes, and no mount bounds it."""

        def made(*sizes: int, kind: type) -> Any:
            count = int(np.prod(sizes))
            return np.frombuffer(mmap(-1, count * np.dtype(kind).itemsize), kind).reshape(sizes)

        pictures = made(AHEAD, batch, *shape, kind=np.uint8)
        return cls(made(AHEAD, batch, 3, kind=np.uint64), pictures, made(AHEAD, batch, kind=np.int64), mmap(-1, WORDS))

    def fail(self, text: str) -> None:
        """Keep what went wrong, its end if it is long."""
        kept = text.encode()[-WORDS:]
        self.words[: len(kept)] = kept

    def failure(self) -> str:
        """What went wrong."""
        return self.words[:].rstrip(b"\0").decode(errors="replace")


class Decoders:
    """Processes that decode batches of one size; they start with the first batch and end with this process."""

    def __init__(self, decode: Decode, batch: int, shape: Sequence[int], device: torch.device) -> None:
        self._decode, self._batch, self._device = decode, batch, device
        self._shared = Shared.of(batch, shape)
        self._parts = -(-batch // PART)
        self._tasks = self._done = -1
        self._workers: list[Any] = []
        self._stream: Any = None
        self._copied: list[Any] = [None] * AHEAD
        self._left = [0] * AHEAD
        """Parts of each batch ahead that are not decoded yet."""

    def batches(self, keys: Iterable[Sequence[Key]]) -> Iterator[Given]:
        """The pictures of each batch of keys on the device, and what they show, in the order of the keys."""
        if not self._workers:
            self._start()
        while any(self._left):  # of an epoch that was left before its end
            self._count_down()
        waiting: deque[tuple[int, int]] = deque()
        for number, of_batch in enumerate(keys):
            if len(waiting) == AHEAD:
                yield self._take(*waiting.popleft())
            slot = number % AHEAD
            self._hand_out(slot, of_batch)
            waiting.append((slot, len(of_batch)))
        while waiting:
            yield self._take(*waiting.popleft())

    def _hand_out(self, slot: int, keys: Sequence[Key]) -> None:
        """Have a batch decoded."""
        if self._copied[slot] is not None:
            self._copied[slot].synchronize()  # its memory is still read until then
        self._shared.keys[slot, : len(keys)] = [(sample, draw % WORD, draw // WORD) for sample, draw in keys]
        self._shared.keys[slot, len(keys) :, 0] = NOBODY
        self._left[slot] = -(-len(keys) // PART)
        try:
            for part in range(self._left[slot]):
                os.write(self._tasks, MESSAGE.pack(slot * self._parts + part))
        except BrokenPipeError:
            raise self._ended() from None

    def _take(self, slot: int, count: int) -> Given:
        """Wait for a batch, and give it."""
        while self._left[slot]:
            self._count_down()
        pictures = torch.from_numpy(self._shared.pictures[slot, :count])
        truth = torch.from_numpy(self._shared.truth[slot, :count].copy())
        if self._stream is None:
            return pictures.clone(), truth
        with torch.cuda.stream(self._stream):
            given = pictures.to(self._device, non_blocking=True), truth.to(self._device, non_blocking=True)
            self._copied[slot] = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            self._copied[slot].record()
        step = torch.cuda.current_stream(self._device)
        step.wait_event(self._copied[slot])
        for tensor in given:
            tensor.record_stream(step)
        return given

    def _count_down(self) -> None:
        """Wait for parts of any batch."""
        ready = wait([self._done, *(worker.sentinel for worker in self._workers)])
        if self._done not in ready:
            raise self._ended()
        for (number,) in MESSAGE.iter_unpack(os.read(self._done, AT_ONCE * MESSAGE.size)):
            if number < 0:
                raise RuntimeError(f"a picture could not be decoded:\n{self._shared.failure()}")
            self._left[number // self._parts] -= 1

    def _ended(self) -> RuntimeError:
        """What to say once a process is gone: it may be seen by its pipes before it is seen by its end."""
        gone = wait([worker.sentinel for worker in self._workers])
        first = next(worker for worker in self._workers if worker.sentinel in gone)
        first.join()
        return RuntimeError(f"a process that decodes pictures ended with {first.exitcode}")

    def _start(self) -> None:
        """Start a process for each core of this rank. Memory is pinned after that: it need not be pinned in them."""
        tasks, self._tasks = os.pipe()
        self._done, done = os.pipe()
        forked = get_context("fork")
        given = (self._decode, self._shared, tasks, done, (self._tasks, self._done))
        cores = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        self._workers = [forked.Process(target=work, args=given, daemon=True) for _ in range(max(1, cores))]
        for worker in self._workers:
            worker.start()
        os.close(tasks)
        os.close(done)
        if self._device.type == "cuda":
            memory = self._shared.pictures
            # Where it is refused, copies wait for themselves, and are right all the same.
            torch.cuda.cudart().cudaHostRegister(memory.ctypes.data, memory.nbytes, 0)  # type: ignore[no-untyped-call]
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]


def work(decode: Decode, shared: Shared, tasks: int, done: int, others: Sequence[int]) -> None:
    """Decode parts until the training is gone: nobody can write to the pipe then."""
    os.setpgid(0, 0)  # a launcher's signal is for the training, which ends its step first
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    os.nice(POLITE)
    for descriptor in others:
        os.close(descriptor)
    batch = shared.truth.shape[1]
    parts = -(-batch // PART)
    while told := os.read(tasks, MESSAGE.size):
        (number,) = MESSAGE.unpack(told)
        slot, part = divmod(number, parts)
        try:
            for row in range(part * PART, min((part + 1) * PART, batch)):
                sample, low, high = map(int, shared.keys[slot, row])
                if sample != NOBODY:
                    shared.truth[slot, row] = decode((sample, high * WORD + low), shared.pictures[slot, row])
        except Exception:  # whatever a picture does to its decoder: the training says it and ends
            shared.fail(traceback.format_exc())
            number = -1 - number
        os.write(done, MESSAGE.pack(number))
