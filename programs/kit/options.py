"""Settings: one frozen dataclass a program, read from the command line and from what Podwright sets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

Settings = TypeVar("Settings")


def count_of(text: str) -> int:
    """A whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return int(text)


def whole_of(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
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


def positive_of(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number above 0')
    return number


def option(default: Any, read: Any, explanation: str, choices: Sequence[str] | None = None) -> Any:
    """A setting with its default, its reader and its line of help."""
    return field(default=default, metadata={"type": read, "help": explanation, "choices": choices})


def switch(explanation: str) -> Any:
    """A setting that is off unless its flag is given."""
    return field(default=False, metadata={"action": "store_true", "help": explanation})


DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("auto", "fp32", "tf32", "bf16", "fp16")


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What every program can be told."""

    out: Path = field(
        default=Path("results"),
        metadata={"type": Path, "help": "folder for results; default: $PODWRIGHT_FOLDER/results, else ./results"},
    )
    checkpoint: Path | None = field(
        default=None,
        metadata={"type": Path, "help": "folder for checkpoints; default: $PODWRIGHT_CHECKPOINT, else none are kept"},
    )
    precision: str = option("auto", str, "auto is bf16 on a GPU that has it, else fp32", PRECISIONS)
    device: str = option("auto", str, "auto is cuda where there is a GPU", DEVICES)
    checkpoint_steps: int = option(50, whole_of, "steps between checkpoints within an epoch; 0: at its end only")
    skip_checkpoints: bool = switch("leave one out that is due while another is written, instead of waiting for it")
    grace_s: float = option(30.0, positive_of, "most seconds to wait for a checkpoint at the end; $PODWRIGHT_GRACE_S")
    tell_every_s: float = option(0.5, float, "least seconds between two lines of progress")
    seed: int = option(0, whole_of, "decides first weights and the order of samples")
    compile: bool = switch("use torch.compile; slow to start")
    profile_steps: int = option(0, whole_of, "steps to profile; default: $PODWRIGHT_PROFILE, else none")
    tune: bool = switch("let torch.compile try variants of every kernel: minutes to start, faster steps")


def read_settings(
    kind: type[Settings], about: str, arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Settings:
    """The command line; where it is silent, what Podwright set; then the defaults."""
    parser = argparse.ArgumentParser(description=about)
    settings = {setting.name: setting for setting in fields(kind)}  # type: ignore[arg-type]
    for setting in settings.values():
        required = setting.default is MISSING
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}", default=argparse.SUPPRESS, required=required, **setting.metadata
        )
    given = vars(parser.parse_args(arguments))
    if "out" in settings and "PODWRIGHT_FOLDER" in environment:
        given.setdefault("out", Path(environment["PODWRIGHT_FOLDER"]) / "results")
    if "checkpoint" in settings and environment.get("PODWRIGHT_CHECKPOINT"):
        given.setdefault("checkpoint", Path(environment["PODWRIGHT_CHECKPOINT"]))
    if "grace_s" in settings and environment.get("PODWRIGHT_GRACE_S"):
        given.setdefault("grace_s", float(environment["PODWRIGHT_GRACE_S"]))
    if "profile_steps" in settings and environment.get("PODWRIGHT_PROFILE", "").isdecimal():
        given.setdefault("profile_steps", int(environment["PODWRIGHT_PROFILE"]))
    return kind(**given)
