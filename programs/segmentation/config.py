"""The settings of a training, from the command line and what Podwright sets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


def size_of(text: str) -> tuple[int, int]:
    """A picture size such as "176x112", width first."""
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and min(int(width), int(height)) >= 16):
        raise argparse.ArgumentTypeError(f'"{text}" is not a size like 176x112, at least 16 pixels each way')
    return int(width), int(height)


def names_of(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def count_of(text: str) -> int:
    """A whole number, at least 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return int(text)


def whole_of(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(text)


def share_of(text: str) -> float:
    """A share between 0 and 1, neither of them."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a share between 0 and 1')
    return share


def _option(default: Any, read: Any, words: str, choices: Sequence[str] | None = None) -> Any:
    return field(default=default, metadata={"type": read, "help": words, "choices": choices})


@dataclass(frozen=True)
class Config:
    """How to train."""

    data: Path = field(metadata={"type": Path, "help": "folder of frames in A2D2's layout", "required": True})
    out: Path = field(
        default=Path("results"),
        metadata={"type": Path, "help": "folder for results; default: $PODWRIGHT_FOLDER/results, else ./results"},
    )
    checkpoint: Path | None = field(
        default=None,
        metadata={"type": Path, "help": "folder for checkpoints; default: $PODWRIGHT_CHECKPOINT, else none are kept"},
    )
    epochs: int = _option(6, count_of, "passes over the training frames")
    batch: int = _option(2, count_of, "frames per rank and step")
    lr: float = _option(6e-3, float, "highest learning rate, for 8 frames per step over all ranks; scaled by the root")
    width: int = _option(24, count_of, "width of the network; its cost grows with the square")
    size: tuple[int, int] = _option((176, 112), size_of, "pictures are resized to this, width x height")
    cameras: tuple[str, ...] = _option((), names_of, "cameras to use, such as front_center,front_left; default: all")
    held_out: float = _option(0.25, share_of, "share of the scenes to score on")
    limit: int = _option(0, whole_of, "use this many frames, evenly spread; 0: all")
    precision: str = _option("auto", str, "auto is bf16 on a GPU that has it, else fp32", ("auto", "fp32", "bf16"))
    device: str = _option("auto", str, "auto is cuda where there is a GPU", ("auto", "cpu", "cuda"))
    workers: int = _option(-1, int, "loader processes per rank; -1: none on the CPU, up to 8 on a GPU")
    checkpoint_steps: int = _option(50, whole_of, "steps between checkpoints within an epoch; 0: at its end only")
    tell_every_s: float = _option(0.5, float, "least seconds between two lines of progress")
    seed: int = _option(0, whole_of, "decides first weights, order and changes of the frames")
    compile: bool = field(default=False, metadata={"help": "use torch.compile; slow to start"})


def read_config(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Config:
    """The command line; where it is silent, what Podwright set; then the defaults."""
    parser = argparse.ArgumentParser(description="Train a network that names every pixel of a driving scene.")
    for option in fields(Config):
        flag = f"--{option.name.replace('_', '-')}"
        if option.name == "compile":
            parser.add_argument(flag, action="store_true", help=option.metadata["help"])
        else:
            parser.add_argument(flag, default=argparse.SUPPRESS, **option.metadata)
    given = vars(parser.parse_args(arguments))
    if "PODWRIGHT_FOLDER" in environment:
        given.setdefault("out", Path(environment["PODWRIGHT_FOLDER"]) / "results")
    if environment.get("PODWRIGHT_CHECKPOINT"):
        given.setdefault("checkpoint", Path(environment["PODWRIGHT_CHECKPOINT"]))
    return Config(**given)
