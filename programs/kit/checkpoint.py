"""Checkpoints that are whole or absent, and cost a step next to nothing: the last two are kept.

A state is copied into memory that stays allocated, on a GPU pinned and on a stream of its own, and a thread writes it
beside, syncs and renames it while the training goes on.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

KEPT = 2
State = dict[str, Any]


class Background:
    """Writes states while the training goes on, one at a time: one that is due waits for the last, or is left out."""

    def __init__(self, folder: Path, skips: bool = False) -> None:
        self._folder, self._skips = folder, skips
        self._memory: dict[str, Tensor] = {}
        self._stream: Any = None
        self._copied: Any = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.skipped = 0
        """Those that were due while another was written, and left out."""
        self.written, self.seconds, self.bytes = 0, 0.0, 0
        """How many are on disk, and how long the last one took to write, and what it holds."""

    def save(self, step: int, state: State) -> bool:
        """Begin to keep the state after `step`; returns whether it will be there."""
        self.check()
        if self._skips and self.is_busy:
            self.skipped += 1
            return False
        self.wait()
        copy = self._copy_of(state)
        if self._stream is not None:
            self._copied = self._stream.record_event()
        self._thread = threading.Thread(target=self._write, args=(step, copy), name="checkpoint", daemon=True)
        self._thread.start()
        return True

    @property
    def is_busy(self) -> bool:
        """Whether one is being written."""
        return self._thread is not None and self._thread.is_alive()

    def before_change(self) -> None:
        """Hold the GPU, not this process, until the state is copied: what follows changes it."""
        if self._copied is not None:
            torch.cuda.current_stream().wait_event(self._copied)
            self._copied = None

    def check(self) -> None:
        """Raise what a checkpoint could not be written for."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def wait(self, limit_s: float | None = None) -> bool:
        """Wait for the one that is being written; returns whether none is any more."""
        if self._thread is not None:
            self._thread.join(limit_s)
            if self._thread.is_alive():
                return False
            self._thread = None
        self.check()
        return True

    def _write(self, step: int, state: State) -> None:
        began = time.monotonic()
        try:
            if self._stream is not None:
                self._stream.synchronize()
            path = save(self._folder, step, state)
            self.written, self.seconds, self.bytes = self.written + 1, time.monotonic() - began, path.stat().st_size
        except BaseException as error:  # told to the training, at its next step
            self._error = error

    def _copy_of(self, value: Any, name: str = "") -> Any:
        """A state in memory that nothing changes while it is written."""
        if isinstance(value, dict):
            return {key: self._copy_of(inside, f"{name}/{key}") for key, inside in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._copy_of(inside, f"{name}/{at}") for at, inside in enumerate(value))
        return self._copy_of_tensor(value, name) if isinstance(value, Tensor) else value

    def _copy_of_tensor(self, tensor: Tensor, name: str) -> Tensor:
        kept = self._memory.get(name)
        if kept is None or (kept.shape, kept.dtype, kept.stride()) != (tensor.shape, tensor.dtype, tensor.stride()):
            # In the order of its memory, too: a fused optimizer goes through weights and state as they lie.
            kept = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, pin_memory=tensor.is_cuda)
            self._memory[name] = kept
        if not tensor.is_cuda:
            return kept.copy_(tensor.detach())
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        if self._copied is None:
            self._stream.wait_stream(torch.cuda.current_stream())
            self._copied = self._stream.record_event()
        with torch.cuda.stream(self._stream):
            kept.copy_(tensor.detach(), non_blocking=True)
        tensor.record_stream(self._stream)  # one that was put together for this is gone before it is copied
        return kept

    def figures(self) -> dict[str, float | int]:
        """What the last one took and holds, what the copies take of the host's memory, and how many were left out."""
        memory = sum(tensor.nbytes for tensor in self._memory.values())
        taken = {"checkpoint_write_s": self.seconds, "checkpoint_bytes": self.bytes, "checkpoint_memory_bytes": memory}
        return {**taken, "checkpoints": self.written, "checkpoints_skipped": self.skipped}


def _opened(path: Path) -> IO[bytes]:
    return path.open("wb")


def save(folder: Path, step: int, state: State, opened: Callable[[Path], IO[bytes]] = _opened) -> Path:
    """Write the state after `step`; returns when it is on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}.pt"
    fresh = folder / f".{path.name}.{os.getpid()}"
    try:
        with opened(fresh) as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    finally:
        fresh.unlink(missing_ok=True)
    _sync(folder)
    for old in saved(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    for torn in folder.glob(".step-*.pt.*"):  # of an attempt that was killed while it wrote
        torn.unlink(missing_ok=True)
    return path


def saved(folder: Path) -> list[Path]:
    """Checkpoints that are there, oldest first."""
    return sorted(folder.glob("step-*.pt"))


def load_latest(folder: Path, say: Callable[[str], None]) -> tuple[str, State] | None:
    """Name and state of the newest checkpoint that can be read.

    A damaged one is set aside under another name, so that it neither counts as one of the last two nor is tried again.
    """
    for path in reversed(saved(folder)):
        try:
            return path.name, _load(path)
        except (
            OSError,
            EOFError,
            RuntimeError,
            ValueError,
            KeyError,
            pickle.UnpicklingError,
            zipfile.BadZipFile,
        ) as error:
            reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
            say(f"checkpoint {path.name} is damaged ({reason[0]}); falling back to the one before")
            path.replace(path.with_name(f"damaged-{path.name}"))
    return None


def _load(path: Path) -> State:
    with zipfile.ZipFile(path) as archive:
        if torn := archive.testzip():
            raise zipfile.BadZipFile(f"{torn} has a wrong checksum")
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
