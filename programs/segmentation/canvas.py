"""A pinhole camera on a street, and the pair of images it fills: what is seen and what it is.

Every shape is drawn twice, into the picture (finer, then scaled down, so edges are soft as in a photograph) and into
the label image (hard edges, one colour per class). Drawing both from one projection is what keeps them in register.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import Image, ImageDraw

Point = tuple[float, float, float]  # metres: to the right, up, ahead
Flat = tuple[float, float]
Colour = tuple[float, float, float]  # 0 to 255 each

NEAR_M = 0.6
FINE_WIDTH = 600  # a picture this wide needs no finer drawing


@dataclass(frozen=True)
class Camera:
    """Where a camera looks: yaw to the right of the way ahead, and the bend of the street before it."""

    yaw: float
    pitch: float
    focal: float  # in picture widths
    height_m: float
    bend: float  # 1/m: how far the street leaves the straight line, per metre squared

    @cached_property
    def _turn(self) -> tuple[float, float]:
        return math.sin(self.yaw), math.cos(self.yaw)

    def place(self, point: Point) -> Point:
        """A point of the street in the camera's own axes."""
        x, y, z = point
        x += self.bend * z * z
        sin, cos = self._turn
        return x * cos - z * sin, y - self.height_m, x * sin + z * cos

    def flatten(self, placed: Point) -> Flat:
        """Where a placed point falls, in picture widths from the picture's middle."""
        x, y, z = placed
        return self.focal * x / z, -self.focal * y / z - self.focal * self.pitch

    def sees(self, point: Point, radius_m: float) -> bool:
        """Whether something this big around a point can be in the picture at all."""
        x, _, z = self.place(point)
        return z + radius_m > NEAR_M and self.focal * (abs(x) - radius_m) < 0.5 * (z + radius_m)


def clip_near(points: Sequence[Point]) -> list[Point]:
    """The part of a polygon that lies before the camera."""
    kept: list[Point] = []
    for one, two in zip(points, [*points[1:], points[0]], strict=True):
        if one[2] >= NEAR_M:
            kept.append(one)
        if (one[2] >= NEAR_M) != (two[2] >= NEAR_M):
            t = (NEAR_M - one[2]) / (two[2] - one[2])
            kept.append((one[0] + t * (two[0] - one[0]), one[1] + t * (two[1] - one[1]), NEAR_M))
    return kept


class Canvas:
    """The two images under the brush."""

    def __init__(self, camera: Camera, size: tuple[int, int], haze: Colour, sight_m: float) -> None:
        self.camera = camera
        self.size = size
        self.haze = haze
        self.sight_m = sight_m
        self.fine = 1 if size[0] >= FINE_WIDTH else 2
        self.picture = Image.new("RGB", (size[0] * self.fine, size[1] * self.fine))
        self.label = Image.new("L", size)
        self._draw_picture = ImageDraw.Draw(self.picture)
        self._draw_label = ImageDraw.Draw(self.label)

    def face(self, points: Sequence[Point], colour: Colour, what: int | None) -> None:
        """Draw a flat polygon of the street; `what` is the class id, None leaves the label as it is."""
        placed = clip_near([self.camera.place(point) for point in points])
        if len(placed) >= 3:
            depth = sum(math.hypot(x, z) for x, _, z in placed) / len(placed)
            self.polygon([self.camera.flatten(point) for point in placed], self.hazed(colour, depth), what)

    def upright(self, foot: Point, outline: Iterable[Flat], colour: Colour, what: int | None) -> None:
        """Draw an outline (metres: right, up) that stands at `foot` and faces the camera."""
        x, y, z = self.camera.place(foot)
        if z >= NEAR_M * 2:
            points = [self.camera.flatten((x + right, y + up, z)) for right, up in outline]
            self.polygon(points, self.hazed(colour, math.hypot(x, z)), what)

    def polygon(self, points: Sequence[Flat], colour: tuple[int, int, int], what: int | None) -> None:
        """Fill a polygon given in picture widths."""
        width, height = self.size
        pixels = [(width / 2 + u * width, height / 2 + v * width) for u, v in points]
        if not _touches(pixels, width, height):
            return
        self._draw_picture.polygon([(u * self.fine, v * self.fine) for u, v in pixels], fill=colour)
        if what is not None:
            # ImageDraw puts pixel centres on whole numbers; the finer picture has them half a pixel further.
            self._draw_label.polygon(
                [(u - 0.5 + 0.5 / self.fine, v - 0.5 + 0.5 / self.fine) for u, v in pixels], fill=what
            )

    def hazed(self, colour: Colour, depth_m: float) -> tuple[int, int, int]:
        """A colour as it looks through the air."""
        clear = math.exp(-depth_m / self.sight_m)
        red, green, blue = (round(c * clear + h * (1 - clear)) for c, h in zip(colour, self.haze, strict=True))
        return min(red, 255), min(green, 255), min(blue, 255)

    def pixels(self) -> tuple[np.ndarray, np.ndarray]:
        """The picture (float, still finer than the label) and the class ids."""
        return np.asarray(self.picture, dtype=np.float32), np.asarray(self.label)


def _touches(pixels: Sequence[Flat], width: int, height: int) -> bool:
    across = [u for u, _ in pixels]
    down = [v for _, v in pixels]
    return max(across) >= 0 and min(across) <= width and max(down) >= 0 and min(down) <= height
