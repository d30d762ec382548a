"""Draws small, plausible driving scenes in the layout of A2D2, since the real frames may not be shipped.

    python programs/segmentation/scenes.py OUT --frames 480 --scenes 4

OUT then holds class_list.json (all 55 colours) and per scene camera/cam_*/*.png with *.json, and label/cam_*/*.png in
class colours. The same arguments give the same pictures. The folder appears whole or not at all; an equal one that is
there already is kept, and a folder that was not made here is never replaced.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

import street as streets
from canvas import Camera, Canvas
from classes import a2d2_classes, class_of, rgb_of
from config import names_of, size_of
from drawing import draw_street
from kit.options import count_of
from street import LABELS, RING_M, Street, make_street

YAWS_DEGREES = {
    "front_center": 0,
    "front_left": -45,
    "front_right": 45,
    "side_left": -90,
    "side_right": 90,
    "rear_center": 180,
}
FOCAL = 0.87  # picture widths: a view of 60 degrees, as A2D2's front camera
MARK = ".scenes.json"
PER_PROCESS = 40  # frames that are worth starting another process for

# How strongly the surface of each class is mottled, as a share of its brightness.
MOTTLE = {streets.NATURE: 0.30, streets.ROAD: 0.09, streets.PAVEMENT: 0.10, streets.HOUSE: 0.08, streets.SKY: 0.02}


@dataclass(frozen=True)
class Plan:
    """What to draw."""

    frames: int = 480
    scenes: int = 4
    cameras: tuple[str, ...] = ("front_center", "front_left", "front_right")
    size: tuple[int, int] = (176, 112)
    seed: int = 0

    def shots(self) -> list[tuple[int, int, int]]:
        """Scene, camera and number of every frame, dealt evenly."""
        lanes = [(scene, camera) for scene in range(self.scenes) for camera in range(len(self.cameras))]
        return [(*lanes[i % len(lanes)], i // len(lanes)) for i in range(self.frames)]


def scene_start(scene: int) -> datetime:
    """When a scene was "recorded": names its folder."""
    return datetime(2026, 3, 2, 9, 12, 40, tzinfo=UTC) + timedelta(
        days=9 * scene, hours=2.35 * scene, seconds=37 * scene
    )


def scene_street(plan: Plan, scene: int) -> Street:
    """The street of a scene; houses and green alternate, so that no scene lacks either."""
    rng = np.random.default_rng([plan.seed, scene])
    return make_street(rng, green=0.35 + 0.3 * (scene % 2))


def draw_frame(plan: Plan, street: Street, shot: tuple[int, int, int]) -> tuple[Image.Image, np.ndarray]:
    """One frame: the picture and, per pixel, the number of its label in `street.LABELS`."""
    rng = np.random.default_rng([plan.seed, *shot, 7])
    camera = Camera(
        yaw=math.radians(YAWS_DEGREES[plan.cameras[shot[1]]] + rng.normal(0, 2)),
        pitch=float(rng.normal(0.03, 0.015)),
        focal=FOCAL,
        height_m=float(rng.uniform(1.4, 1.7)),
        bend=float(rng.normal(0, 0.0012)),
    )
    canvas = Canvas(camera, plan.size, street.weather.haze, street.weather.sight_m)
    draw_street(canvas, street, float(rng.uniform(0, RING_M)), float(rng.normal(0, 0.3)), rng)
    return expose(canvas, street, rng), canvas.pixels()[1]


def expose(canvas: Canvas, street: Street, rng: np.random.Generator) -> Image.Image:
    """Turn flat colours into a photograph: mottled surfaces, clouds, light, lens, sensor noise."""
    paint, ids = canvas.pixels()
    size = paint.shape[1], paint.shape[0]
    strength = np.array([MOTTLE.get(label, 0.05) for label in LABELS], dtype=np.float32)
    fine_ids = np.asarray(Image.fromarray(ids).resize(size, Image.Resampling.NEAREST))
    mottle = _noise(rng, size, 2) * 0.6 + _noise(rng, size, 8) * 0.6
    paint = paint * (1 + strength[fine_ids] * mottle)[..., None]
    clouds = np.clip(_noise(rng, size, 40), 0, None) * street.weather.cloud
    paint = paint + (clouds * (fine_ids == streets.ID[streets.SKY]))[..., None]
    tint = np.array(street.weather.tint, dtype=np.float32) * np.float32(street.weather.gain * rng.uniform(0.85, 1.15))
    paint = np.clip(paint * tint * _lens(size)[..., None], 0, 255)
    picture = Image.fromarray(paint.astype(np.uint8)).resize(canvas.size, Image.Resampling.BOX)
    picture = picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 0.7)) * canvas.size[0] / 192))
    gamma = (np.linspace(0, 1, 256) ** rng.uniform(0.88, 1.14) * 255).astype(np.float32)[np.asarray(picture)]
    noise = rng.standard_normal(gamma.shape, dtype=np.float32) * np.float32(rng.uniform(2, 7))
    return Image.fromarray(np.clip(gamma + noise, 0, 255).astype(np.uint8))


def _noise(rng: np.random.Generator, size: tuple[int, int], grain: int) -> np.ndarray:
    """Smooth noise, about one unit strong, with blobs `grain` pixels wide."""
    small = rng.standard_normal((size[1] // grain + 2, size[0] // grain + 2), dtype=np.float32)
    return np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BILINEAR))


def _lens(size: tuple[int, int]) -> np.ndarray:
    """Darker corners."""
    across, down = np.linspace(-1, 1, size[0], dtype=np.float32), np.linspace(-1, 1, size[1], dtype=np.float32)
    return np.asarray(1 - 0.14 * (across[None, :] ** 2 + down[:, None] ** 2) / 2)


def camera_record(camera: str, stamp_us: int, names: tuple[str, str]) -> dict[str, object]:
    """The JSON that A2D2 keeps beside a camera image; the lidar file it names is not there."""
    yaw = math.radians(YAWS_DEGREES[camera])
    view = {
        "origin": [1.7, 0.0, 0.95],
        "x-axis": [math.cos(yaw), -math.sin(yaw), 0.0],
        "y-axis": [math.sin(yaw), math.cos(yaw), 0.0],
    }
    return {
        "cam_name": camera,
        "cam_tstamp": stamp_us,
        "image_png": names[0],
        "pcld_npz": names[1],
        "pcld_view": view,
        "lidar_ids": {"0": "front_left", "1": "front_center", "2": "front_right"},
    }


def write_frame(plan: Plan, street: Street, shot: tuple[int, int, int], root: Path) -> set[int]:
    """Draw a frame and write its three files; tells which labels are on it."""
    scene, lens, number = shot
    camera, start = plan.cameras[lens], scene_start(scene)
    # As in A2D2, frame numbers of different cameras do not match.
    serial = 400 + 137 * scene + 53 * lens + 31 * number
    stem = f"{start:%Y%m%d%H%M%S}_{{}}_{camera.replace('_', '')}_{serial:09d}"
    place = root / f"{start:%Y%m%d_%H%M%S}"
    picture, ids = draw_frame(plan, street, shot)
    image = place / "camera" / f"cam_{camera}" / f"{stem.format('camera')}.png"
    picture.save(image, compress_level=1)
    Image.fromarray(PALETTE[ids]).save(
        place / "label" / f"cam_{camera}" / f"{stem.format('label')}.png", compress_level=1
    )
    stamp_us = int(start.timestamp() * 1_000_000) + 33_333 * serial
    record = camera_record(camera, stamp_us, (image.name, f"{stem.format('lidar')}.npz"))
    image.with_suffix(".json").write_text(json.dumps(record, indent=1))
    return set(np.unique(ids).tolist())


def _palette() -> np.ndarray:
    colours = {label: rgb_of(colour) for colour, label in a2d2_classes().labels.items()}
    return np.array([colours[label] for label in LABELS], dtype=np.uint8)


PALETTE = _palette()


def write_share(plan: Plan, root: Path, share: int, shares: int) -> set[int]:
    """Write every `shares`-th frame, from the `share`-th on."""
    built = {scene: scene_street(plan, scene) for scene in range(plan.scenes)}
    seen: set[int] = set()
    for shot in plan.shots()[share::shares]:
        seen |= write_frame(plan, built[shot[0]], shot, root)
    return seen


def write_all(plan: Plan, root: Path) -> set[int]:
    """Write all frames with one process per core, two at most: more than that buys little for small sets."""
    for scene, lens, _ in plan.shots():
        for kind in ("camera", "label"):
            (root / f"{scene_start(scene):%Y%m%d_%H%M%S}" / kind / f"cam_{plan.cameras[lens]}").mkdir(
                parents=True, exist_ok=True
            )
    (root / "class_list.json").write_text(json.dumps(a2d2_classes().labels, indent=1))
    workers = min(2, len(os.sched_getaffinity(0)), plan.frames // PER_PROCESS)
    if workers < 2:
        return write_share(plan, root, 0, 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(write_share, plan, root, share, workers) for share in range(workers)]
        return set().union(*(part.result() for part in parts))


def fingerprint(plan: Plan) -> dict[str, object]:
    """What decides the pictures: the plan and the code that draws them."""
    here = Path(__file__).parent
    code = b"".join(
        (here / name).read_bytes() for name in ("canvas.py", "street.py", "drawing.py", "scenes.py", "classes.csv")
    )
    return {"plan": json.loads(json.dumps(asdict(plan))), "code": hashlib.sha256(code).hexdigest()}


def make(plan: Plan, out: Path) -> dict[str, int]:
    """Make the set at `out` unless it is there; returns how many frames, scenes and classes it has."""
    mark = out / MARK
    there = json.loads(mark.read_text()) if mark.is_file() else None
    if there and there["made"] == fingerprint(plan):
        return dict(there["counts"])
    if there is None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} holds something that was not made here; name another folder or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.{os.getpid()}.new")
    try:
        fresh.mkdir()
        seen = write_all(plan, fresh)
        counts = {"frames": plan.frames, "scenes": plan.scenes, "classes": len({class_of(LABELS[i]) for i in seen})}
        (fresh / MARK).write_text(json.dumps({"made": fingerprint(plan), "counts": counts}))
        swap(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return counts


def swap(fresh: Path, out: Path) -> None:
    """Put `fresh` in the place of `out`; a reader sees the old set or the new one."""
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    if out.exists():
        out.rename(old)
    fresh.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def read_arguments(arguments: Sequence[str]) -> tuple[Plan, Path]:
    """The command line as a plan."""
    plan = Plan()
    parser = argparse.ArgumentParser(description="Draw driving scenes in the layout of A2D2.")
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--frames", type=count_of, default=plan.frames)
    parser.add_argument("--scenes", type=count_of, default=plan.scenes)
    parser.add_argument("--cameras", type=names_of, default=plan.cameras, help=f"of {', '.join(YAWS_DEGREES)}")
    parser.add_argument("--size", type=size_of, default=plan.size, help="width x height, such as 1920x1208")
    parser.add_argument("--seed", type=int, default=plan.seed)
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.cameras if name not in YAWS_DEGREES]:
        parser.error(f"{unknown[0]} is not a camera; there are {', '.join(YAWS_DEGREES)}")
    if given.frames < given.scenes:
        parser.error(f"{given.frames} frames are too few for {given.scenes} scenes: each needs one")
    return Plan(given.frames, given.scenes, given.cameras, given.size, given.seed), given.out


def main() -> None:
    """Make the set and say what it holds."""
    plan, out = read_arguments(sys.argv[1:])
    try:
        counts = make(plan, out)
    except OSError as error:
        sys.exit(str(error))
    print(f"{counts['frames']} frames, {counts['scenes']} scenes, {counts['classes']} classes")


if __name__ == "__main__":
    main()
