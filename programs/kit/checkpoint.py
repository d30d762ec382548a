"""Checkpoints that are whole or absent: written beside, synced, renamed; the last two are kept."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

KEPT = 2
State = dict[str, Any]


def save(folder: Path, step: int, state: State) -> Path:
    """Write the state after `step`; returns when it is on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}.pt"
    fresh = folder / f".{path.name}.{os.getpid()}"
    try:
        with fresh.open("wb") as file:
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
