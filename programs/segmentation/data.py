"""Frames of A2D2 on disk, and the share of them that each rank trains on.

The layout is `SCENE/camera/cam_*/*_camera_*.png`, the label of a picture at the same place with `label` for `camera`.
Colours become class ids before anything is resized, and ids are resized to the nearest: blending the colours of labels
would invent classes. Frames are split by scene, since neighbours in a drive look alike and would leak into the score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import Dataset

from classes import IGNORE, Classes

Key = int | tuple[int, int]  # index of a frame, and the draw that alters it where it is altered
Say = Callable[[str], None]


@dataclass(frozen=True)
class Frame:
    """One labelled picture."""

    scene: str
    camera: str
    image: Path
    label: Path


def frames_root(path: Path) -> Path:
    """The folder that holds the scenes: the one given, or the published one inside it."""
    inner = path / "camera_lidar_semantic"
    return inner if inner.is_dir() else path


def find_frames(root: Path, cameras: Sequence[str], say: Say) -> list[Frame]:
    """All frames with a label, in order of scene, camera and name; says once what was left out."""
    frames: list[Frame] = []
    unlabelled: list[Path] = []
    for folder in sorted(root.glob("*/camera/cam_*")):
        if cameras and folder.name.removeprefix("cam_") not in cameras:
            continue
        scene, labels = folder.parents[1], folder.parents[1] / "label" / folder.name
        # One listing instead of a look at every file: on a network file system that is minutes less.
        there = {path.name for path in labels.iterdir()} if labels.is_dir() else set()
        for image in sorted(folder.glob("*.png")):
            name = image.name.replace("_camera_", "_label_")
            if name in there:
                frames.append(Frame(scene.name, folder.name.removeprefix("cam_"), image, labels / name))
            else:
                unlabelled.append(image)
    if unlabelled:
        count = "1 frame has" if len(unlabelled) == 1 else f"{len(unlabelled)} frames have"
        say(
            f"{count} no label and is left out: {unlabelled[0]}"
            if len(unlabelled) == 1
            else f"{count} no label and are left out, the first: {unlabelled[0]}"
        )
    return frames


def thin_out(frames: list[Frame], limit: int) -> list[Frame]:
    """At most `limit` frames, evenly spread; 0 is all."""
    if not 0 < limit < len(frames):
        return frames
    return [frames[i * len(frames) // limit] for i in range(limit)]


def split_by_scene(frames: list[Frame], held_out: float) -> tuple[list[Frame], list[Frame]]:
    """Frames to train on and frames to score on, from different scenes.

    Scenes are ranked by a hash of their name, so that a scene added later moves few others. A lone scene is cut in two,
    its end being held out.
    """
    scenes = sorted({frame.scene for frame in frames}, key=lambda name: hashlib.sha256(name.encode()).digest())
    if len(scenes) == 1:
        cut = len(frames) - max(1, round(held_out * len(frames)))
        return frames[:cut], frames[cut:]
    held = set(scenes[: max(1, min(len(scenes) - 1, round(held_out * len(scenes))))])
    return [f for f in frames if f.scene not in held], [f for f in frames if f.scene in held]


class Frames(Dataset[tuple[Tensor, Tensor]]):
    """Pictures (3, H, W) as bytes and class ids (H, W), all of one size.

    With `draws` a key carries the draw that decides mirror and light, so a frame depends on nothing but its key: a
    resumed run sees what the uninterrupted one would have seen.
    """

    draws = False

    def __init__(self, frames: Sequence[Frame], classes: Classes, size: tuple[int, int], say: Say) -> None:
        self.frames = list(frames)
        self.size = size
        self.say = say
        self._ids = np.full(1 << 24, IGNORE, dtype=np.uint8)
        self._ids[list(classes.ids)] = list(classes.ids.values())
        self._warned = torch.zeros(1, dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]  # shared with loader processes: one warning in all

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, key: Key) -> tuple[Tensor, Tensor]:
        index, *draws = key if isinstance(key, tuple) else (key,)
        frame = self.frames[index]
        picture = _open(frame.image).resize(self.size, Image.Resampling.BILINEAR)
        ids = Image.fromarray(self._to_ids(_open(frame.label), frame.label)).resize(self.size, Image.Resampling.NEAREST)
        pixels, truth = np.array(picture), np.array(ids)
        for draw in draws:
            pixels, truth = alter(pixels, truth, np.random.default_rng(draw))
        return torch.from_numpy(pixels).permute(2, 0, 1), torch.from_numpy(truth)

    def _to_ids(self, label: Image.Image, path: Path) -> np.ndarray:
        rgb = np.asarray(label).astype(np.uint32)
        colours = rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]
        ids = np.asarray(self._ids[colours])
        if not self._warned and (unknown := ids == IGNORE).any():
            self._warned += 1
            colour = int(colours[unknown][0])
            self.say(f"colours that class_list.json does not name are ignored, the first: #{colour:06x} in {path}")
        return ids


def _open(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, UnidentifiedImageError) as error:
        raise OSError(f"{path}: this picture cannot be read: {error}") from error


def alter(pixels: np.ndarray, ids: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mirror a frame by chance and put it in another light."""
    if rng.random() < 0.5:
        pixels, ids = pixels[:, ::-1], ids[:, ::-1]
    curve = (
        np.linspace(0, 1, 256)[:, None] ** rng.uniform(0.8, 1.25) * rng.uniform(0.75, 1.3) * rng.uniform(0.93, 1.07, 3)
    )
    table = (np.clip(curve, 0, 1) * 255).astype(np.uint8)
    return np.stack([table[pixels[..., channel], channel] for channel in range(3)], axis=-1), np.ascontiguousarray(ids)
