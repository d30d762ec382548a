"""Pictures of a folder: what is cut out of them, and a training on them to its end."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.programs.conftest import told

Load = Callable[[str, str], ModuleType]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty-one red and as many blue pictures, larger than what is cut out of them."""
    for name, colour in (("red", (200, 20, 20)), ("blue", (20, 20, 200))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(21):
            Image.new("RGB", (96, 64), colour).save(tmp_path / "photos" / name / f"{number}.jpg")
    return tmp_path / "photos"


def test_a_training_on_a_folder(spawn: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    size = ("--side", 16, "--batch", 8, "--epochs", 2, "--target", 2, "--device", "cpu", "--tell-every-s", 0)
    process = spawn("resnet/train.py", "--data", folder, *size, "--out", tmp_path / "out")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    assert list(told(text, "loss")) == list(range(1, 9)), text  # 39 of 42 to train on, four whole batches of eight
    assert set(told(text, "accuracy")) == {4, 8}


def test_too_few_pictures(load: Load, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jpg").write_bytes(b"")
    with pytest.raises(SystemExit, match="1 pictures of 1 classes; 40 of two are the least"):
        load("resnet", "photos").read(str(tmp_path), 16)


def test_a_square_is_cut_out_by_its_draw(load: Load) -> None:
    """Red at the left, blue at the right: the middle has both, mirrored or not, and a draw always gives the same."""
    photos = load("resnet", "photos")
    pixels = np.zeros((200, 400, 3), np.uint8)
    pixels[:, :200, 0], pixels[:, 200:, 2] = 255, 255
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    middle = photos.decode(buffer.getvalue(), 32, [])
    assert tuple(middle.shape) == (32, 32, 3)
    assert middle[16, 4, 0] > 200
    assert middle[16, 28, 2] > 200
    drawn = [photos.decode(buffer.getvalue(), 32, [draw]) for draw in (1, 1, 2, 3, 4, 5)]
    assert (drawn[0] == drawn[1]).all()
    assert any(bool(one[16, 2, 2] > one[16, 2, 0]) for one in drawn), "some draw must mirror, or cut at the right"
