"""The settings of a training, from the command line and what Podwright sets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kit.options import Shared, count_of, option, read_settings, share_of, whole_of


def size_of(text: str) -> tuple[int, int]:
    """A picture size such as "176x112", width first."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and min(int(width), int(height)) >= 16):
        raise argparse.ArgumentTypeError(f'"{text}" is not a size like 176x112, at least 16 pixels each way')
    return int(width), int(height)


def names_of(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    data: Path = field(metadata={"type": Path, "help": "folder of frames in A2D2's layout"})
    epochs: int = option(6, count_of, "passes over the training frames")
    batch: int = option(2, count_of, "frames per rank and step")
    lr: float = option(6e-3, float, "highest learning rate, for 8 frames per step over all ranks; scaled by the root")
    width: int = option(24, count_of, "width of the network; its cost grows with the square")
    size: tuple[int, int] = option((176, 112), size_of, "pictures are resized to this, width x height")
    cameras: tuple[str, ...] = option((), names_of, "cameras to use, such as front_center,front_left; default: all")
    held_out: float = option(0.25, share_of, "share of the scenes to score on")
    more: Path | None = field(default=None, metadata={"type": Path, "help": "folder of further frames to train on"})
    score_on: Path | None = field(
        default=None, metadata={"type": Path, "help": "folder of frames to score on, instead of a share of the scenes"}
    )
    pool: Path | None = field(
        default=None,
        metadata={"type": Path, "help": "folder of frames to predict when trained: results get samples.jsonl"},
    )
    limit: int = option(0, whole_of, "use this many frames, evenly spread; 0: all")
    workers: int = option(-1, int, "loader processes per rank; -1: none on the CPU, up to 8 on a GPU")


def read_config(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Config:
    """The command line; where it is silent, what Podwright set; then the defaults."""
    return read_settings(Config, "Train a network that names every pixel of a driving scene.", arguments, environment)
