"""Batches that processes decode: what is in them and in which order, and what becomes of one that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.programs.conftest import PROGRAMS

START = """\
import os, signal, sys
import torch
import photos
from kit.decoding import Decoders
from kit.loader import Loader
from kit.samples import Keys, as_it_is, from_step

train, _, _ = photos.read(sys.argv[1], 16)
decoders = Decoders(train.write, 12, (16, 16, 3), torch.device("cpu"))
def loader(count=len(train)):
    return Loader(Keys(count), 12, seed=3, tail="uneven", collate_fn=as_it_is)
"""
"""Twelve pictures are a part of eight and one of four, and the last batch is not full."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty-three pictures of two classes, each of a colour of its own."""
    for number in range(63):
        place = tmp_path / "photos" / ("even", "odd")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        colour = (4 * number, 255 - 4 * number, 30)
        Image.new("RGB", (48, 32), colour).save(place / f"{number:02}.jpg")
    return tmp_path / "photos"


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, which has no threads of others when it forks."""
    command = [sys.executable, "-c", START + program, str(folder)]
    return subprocess.run(command, cwd=PROGRAMS / "resnet", capture_output=True, text=True, timeout=120, check=False)


def test_batches_are_those_of_the_loader(folder: Path) -> None:
    """Whole epochs, one gone on with in its middle, and one after an epoch that was left."""
    done = run(
        folder,
        """
def direct(keys):
    pictures, truth = zip(*(train[key] for key in keys))
    return torch.stack(pictures), torch.tensor(truth)
for epoch, start in ((0, 0), (1, 0), (1, 3)):
    expected = [direct(keys) for keys in from_step(loader(), epoch, start)]
    given = list(decoders.batches(from_step(loader(), epoch, start)))
    assert len(given) == len(expected) == 5 - start
    assert all((a == b).all() for pair in zip(given, expected) for a, b in zip(*pair))
left = decoders.batches(loader())
first = next(left)[0].clone()
left.close()
again = list(decoders.batches(loader()))
assert (again[0][0] == first).all() and len(again) == 5
print("equal")
""",
    )
    assert done.stdout == "equal\n", done.stderr


def test_a_picture_that_cannot_be_decoded_ends_the_training_with_its_reason(folder: Path) -> None:
    (folder / "odd" / "31.jpg").write_bytes(b"no picture")
    done = run(folder, "list(decoders.batches(loader()))")
    assert done.returncode == 1
    assert "RuntimeError: a picture could not be decoded:" in done.stderr
    assert "cannot identify image file" in done.stderr


def test_a_process_that_is_killed_ends_the_training(folder: Path) -> None:
    """All are killed before they are given anything, so that nobody hands in what they had."""
    program = """
decoders._start()
for worker in decoders._workers:
    os.kill(worker.pid, signal.SIGKILL)
list(decoders.batches(loader()))
"""
    done = run(folder, program)
    assert "RuntimeError: a process that decodes pictures ended with -9" in done.stderr


def test_processes_end_with_the_training(folder: Path) -> None:
    """They would hold its output open else, and this test would not come to its end."""
    done = run(folder, "next(decoders.batches(loader())); os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -9
