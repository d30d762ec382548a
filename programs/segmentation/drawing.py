"""Draws a street as a camera on a car sees it: sky, ground, then things from far to near."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from canvas import Canvas, Colour, Point
from street import DASHED, HOUSE, ID, NATURE, PAVEMENT, POLE, ROAD, SIGN, SKY, SOLID, Street, Thing, Weather, ahead

SIGHT_M = 75.0  # nothing further off is drawn,
THIN_SIGHT_M = 40.0  # and nothing thin from here on, where it is less than a pixel wide
THIN = ("person", "lamp", "sign")
STATIONS_M = (0.0, 2.5, 6.0, 11.0, 18.0, 28.0, 45.0, SIGHT_M)  # the ground is drawn in pieces between these, both ways


def draw_street(canvas: Canvas, street: Street, along_m: float, aside_m: float, rng: np.random.Generator) -> None:
    """Draw what is seen from the own lane, `along_m` down the street and `aside_m` off the lane's middle."""
    middle = -street.own_lane_m - aside_m
    _draw_sky(canvas, street, rng)
    _draw_ground(canvas, street, middle, along_m)
    placed = [(thing, (thing.x + middle, 0.0, ahead(thing.z - along_m))) for thing in street.things]
    seen = [(thing, at) for thing, at in placed if _is_seen(canvas, thing, at)]
    # Houses stand behind everything else, so they go first: their depth alone would order long walls wrongly.
    seen.sort(key=lambda pair: (pair[0].kind != "house", -math.hypot(pair[1][0], pair[1][2])))
    for thing, at in seen:
        DRAW[thing.kind](canvas, thing, at, street.weather)


def _is_seen(canvas: Canvas, thing: Thing, at: Point) -> bool:
    """Whether a thing is in view and out of the space that our own car needs."""
    x, _, z = at
    if abs(x) < thing.wide / 2 + 1.1 and abs(z) < thing.long / 2 + 4:
        return False
    return abs(z) < (THIN_SIGHT_M if thing.kind in THIN else SIGHT_M) and canvas.camera.sees(
        at, max(thing.wide, thing.long) / 2 + 0.5
    )


def _draw_sky(canvas: Canvas, street: Street, rng: np.random.Generator) -> None:
    horizon = -canvas.camera.focal * canvas.camera.pitch
    weather, bands = street.weather, 14
    for band in range(bands):
        share = band / (bands - 1)
        top = horizon - 0.5 * (1 - band / bands)
        mixed = [z * (1 - share) + h * share for z, h in zip(weather.zenith, weather.haze, strict=True)]
        colour = (round(mixed[0]), round(mixed[1]), round(mixed[2]))
        canvas.polygon(
            [(-0.6, top if band else -1), (0.6, top if band else -1), (0.6, horizon), (-0.6, horizon)], colour, ID[SKY]
        )
    ground = canvas.hazed(street.green, SIGHT_M)
    canvas.polygon([(-0.6, horizon), (0.6, horizon), (0.6, 1), (-0.6, 1)], ground, ID[NATURE])
    heights = rng.uniform(0.01, 0.045, 13)
    ridge = [(-0.6 + 0.1 * i, horizon - float(heights[i])) for i in range(13)]
    canvas.polygon([*ridge, (0.6, horizon + 0.01), (-0.6, horizon + 0.01)], ground, ID[NATURE])


def _draw_ground(canvas: Canvas, street: Street, middle: float, along_m: float) -> None:
    half, edge = street.half_m, street.half_m + street.pavement_m
    for side in (-1, 1):
        _strip(canvas, middle + side * edge, middle + side * 60, street.green, NATURE)
    _strip(canvas, middle - half, middle + half, street.asphalt, ROAD)
    for side in (-1, 1):
        _strip(canvas, middle + side * half, middle + side * edge, street.paving, PAVEMENT)
        _strip(canvas, middle + side * (half - 0.55), middle + side * (half - 0.25), street.paint, SOLID)
    for lane in range(1, street.lanes):
        x = middle - half + lane * street.lane_m
        start = -along_m % 7.0 - SIGHT_M + SIGHT_M % 7.0
        while start < SIGHT_M:
            _strip(canvas, x - 0.14, x + 0.14, street.paint, DASHED, (start, start + 3.6))
            start += 7.0


_CUTS_M = (*(-station for station in reversed(STATIONS_M[1:])), *STATIONS_M)


def _strip(
    canvas: Canvas,
    left: float,
    right: float,
    colour: Colour,
    label: str,
    reach: tuple[float, float] = (-SIGHT_M, SIGHT_M),
) -> None:
    """A band of ground along the street, in short pieces, so that it follows the bend and fades with distance."""
    cuts = [reach[0], *(cut for cut in _CUTS_M if reach[0] < cut < reach[1]), reach[1]]
    for near, far in pairwise(cuts):
        canvas.face([(left, 0, near), (right, 0, near), (right, 0, far), (left, 0, far)], colour, ID[label])


def _shade(colour: Colour, factor: float) -> Colour:
    return colour[0] * factor, colour[1] * factor, colour[2] * factor


def _box(canvas: Canvas, low: Point, high: Point, colour: Colour, what: int | None, sun: float) -> None:
    """Draw the sides of a box that face the camera, each in its own light."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    if y1 < canvas.camera.height_m:
        canvas.face([(x0, y1, z0), (x1, y1, z0), (x1, y1, z1), (x0, y1, z1)], _shade(colour, 1.1), what)
    if x0 > 0:
        canvas.face([(x0, y0, z0), (x0, y1, z0), (x0, y1, z1), (x0, y0, z1)], _shade(colour, 1 - sun), what)
    elif x1 < 0:
        canvas.face([(x1, y0, z0), (x1, y1, z0), (x1, y1, z1), (x1, y0, z1)], colour, what)
    end = z0 if z0 > 0 else z1
    if z0 > 0 or z1 < 0:
        canvas.face([(x0, y0, end), (x1, y0, end), (x1, y1, end), (x0, y1, end)], _shade(colour, 1 - sun / 2), what)


def _draw_house(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    x, _, z = at
    low = (x - thing.wide / 2, 0.0, z - thing.long / 2)
    high = (x + thing.wide / 2, thing.high, z + thing.long / 2)
    _box(canvas, low, high, thing.colour, ID[HOUSE], weather.sun)
    glass = _shade((70, 85, 105), 0.7 + 0.6 * (thing.look % 97) / 97)
    wall = low[0] - 0.02 if x > 0 else high[0] + 0.02
    for column in range(int(thing.long // 2.7)):
        near = low[2] + 0.8 + 2.7 * column
        far = near + 1.2
        if canvas.camera.sees((wall, 0.0, near), 1.5):
            for row in range(int(thing.high // 2.9)):
                base = 1.0 + 2.9 * row
                canvas.face(
                    [(wall, base, near), (wall, base + 1.4, near), (wall, base + 1.4, far), (wall, base, far)],
                    glass,
                    None,
                )


def _draw_vehicle(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    """A car: shadow, body, cabin with windows, lights."""
    x, _, z = at
    wide, long, waist, what = thing.wide / 2, thing.long / 2, thing.high * 0.56, ID[thing.label]
    _shadow(canvas, x, z, wide, long)
    _box(canvas, (x - wide, 0.12, z - long), (x + wide, waist, z + long), thing.colour, what, weather.sun)
    _box(
        canvas,
        (x - wide * 0.84, waist, z - long * 0.62),
        (x + wide * 0.84, thing.high, z + long * 0.4),
        _shade((58, 66, 78), 1.0),
        what,
        weather.sun,
    )
    roof = [
        (x - wide * 0.84, thing.high, z - long * 0.62),
        (x + wide * 0.84, thing.high, z - long * 0.62),
        (x + wide * 0.84, thing.high * 0.93, z - long * 0.62),
        (x - wide * 0.84, thing.high * 0.93, z - long * 0.62),
    ]
    canvas.face(roof, thing.colour, None)
    end, lamp = (z - long - 0.02, (205, 30, 30)) if z > 0 else (z + long + 0.02, (240, 240, 215))
    for side in (-1, 1):
        inner, outer = x + side * wide * 0.55, x + side * wide * 0.92
        canvas.face(
            [
                (inner, waist * 0.65, end),
                (outer, waist * 0.65, end),
                (outer, waist * 0.9, end),
                (inner, waist * 0.9, end),
            ],
            lamp,
            None,
        )
    _wheels(canvas, x, z, wide, long)


def _shadow(canvas: Canvas, x: float, z: float, wide: float, long: float) -> None:
    wide, long = wide * 1.06, long * 1.04
    canvas.face(
        [(x - wide, 0, z - long), (x + wide, 0, z - long), (x + wide, 0, z + long), (x - wide, 0, z + long)],
        (34, 34, 38),
        None,
    )


def _wheels(canvas: Canvas, x: float, z: float, wide: float, long: float) -> None:
    side = x - wide - 0.02 if x > 0 else x + wide + 0.02
    for along in (-0.62, 0.62):
        ring = [(side, 0.32 + 0.32 * math.sin(a), z + along * long + 0.32 * math.cos(a)) for a in _AROUND]
        canvas.face(ring, (24, 24, 26), None)


def _draw_truck(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    """A truck: a high box behind a cab of another colour."""
    x, _, z = at
    wide, long, what = thing.wide / 2, thing.long / 2, ID[thing.label]
    _shadow(canvas, x, z, wide, long)
    cab = (x - wide * 0.96, 0.3, z + long * 0.55), (x + wide * 0.96, thing.high * 0.82, z + long)
    body = (x - wide, 0.5, z - long), (x + wide, thing.high, z + long * 0.5)
    paint = _shade((thing.colour[2], thing.colour[0], thing.colour[1]), 0.9)
    parts = [(cab, paint), (body, thing.colour)]
    for (low, high), colour in parts if z > 0 else reversed(parts):
        _box(canvas, low, high, colour, what, weather.sun)
    _box(
        canvas, (x - wide * 0.9, 0.0, z - long * 0.95), (x + wide * 0.9, 0.5, z + long * 0.95), (40, 40, 44), what, 0.1
    )
    _dress_truck(canvas, thing, (x, 0.0, z))
    _wheels(canvas, x, z, wide, long)


def _dress_truck(canvas: Canvas, thing: Thing, at: Point) -> None:
    """What tells a truck from a wall: a red and white board and lights at the back, a windscreen in front, a stripe."""
    x, _, z = at
    wide, long = thing.wide / 2, thing.long / 2
    if z > 0:
        end = z - long - 0.02
        _patch(canvas, (x - 0.03, 0.9, end), (x + 0.03, thing.high * 0.96, end), (45, 45, 48))
        for i in range(6):
            left = x - wide + i * wide / 3
            _patch(canvas, (left, 0.5, end), (left + wide / 3, 0.9, end), (205, 35, 30) if i % 2 else (238, 238, 232))
    else:
        end = z + long + 0.02
        _patch(
            canvas, (x - wide * 0.85, thing.high * 0.5, end), (x + wide * 0.85, thing.high * 0.76, end), (52, 60, 72)
        )
    side = x - wide - 0.02 if x > 0 else x + wide + 0.02
    canvas.face(
        [(side, y, z + along) for y, along in ((0.5, -long), (0.8, -long), (0.8, long * 0.5), (0.5, long * 0.5))],
        (225, 190, 40),
        None,
    )


def _patch(canvas: Canvas, low: Point, high: Point, colour: Colour) -> None:
    """Paint a rectangle that faces along the street onto what is there already."""
    (x0, y0, z), (x1, y1, _) = low, high
    canvas.face([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)], colour, None)


_AROUND = [math.tau * i / 10 for i in range(10)]


def _draw_plant(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    """A crown of a few ragged blobs, on a trunk when it is a tree."""
    rng = np.random.default_rng(thing.look)
    base = 0.0
    if thing.kind == "tree":
        base, trunk = thing.high * 0.3, 0.04 * thing.high
        canvas.upright(
            at, [(-trunk, 0), (trunk, 0), (trunk, base * 1.4), (-trunk, base * 1.4)], (78, 60, 44), ID[NATURE]
        )
    middle = (base + thing.high) / 2 if base else thing.high * 0.35  # a bush stands in the ground
    for light, size in ((1 - weather.sun, 1.0), (1.0, 0.75), (1.15, 0.45)):
        radii = rng.uniform(0.75, 1.0, len(_AROUND)) * size
        outline = [
            (thing.wide / 2 * r * math.cos(a), middle + (thing.high - base) / 2 * (r * math.sin(a) + (1 - size) * 0.5))
            for r, a in zip(radii.tolist(), _AROUND, strict=True)
        ]
        canvas.upright(at, outline, _shade(thing.colour, light), ID[NATURE])


def _draw_person(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    high, what = thing.high, ID[thing.label]
    stride = 0.04 + 0.1 * (thing.look % 31) / 31
    legs = _shade((thing.colour[1], thing.colour[2], thing.colour[0]), 0.55)
    skin = _shade((205, 160, 130), 1 - 0.6 * (thing.look % 53) / 53)
    for side in (-1, 1):
        hip, foot = side * 0.06 * high, side * stride * high
        canvas.upright(
            at,
            [
                (hip - 0.06 * high, 0.5 * high),
                (hip + 0.06 * high, 0.5 * high),
                (foot + 0.05 * high, 0),
                (foot - 0.05 * high, 0),
            ],
            legs,
            what,
        )
    body = [(-0.13, 0.46), (0.13, 0.46), (0.17, 0.8), (0.1, 0.86), (-0.1, 0.86), (-0.17, 0.8)]
    canvas.upright(at, [(x * high, y * high) for x, y in body], _shade(thing.colour, 1 - weather.sun / 2), what)
    canvas.upright(at, [(0.075 * high * math.cos(a), high * (0.925 + 0.08 * math.sin(a))) for a in _AROUND], skin, what)


def _draw_lamp(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    half = thing.wide / 2
    canvas.upright(
        at,
        [(-half, 0), (half, 0), (half * 0.7, thing.high), (-half * 0.7, thing.high)],
        _shade(thing.colour, 1 - weather.sun / 2),
        ID[POLE],
    )


def _draw_sign(canvas: Canvas, thing: Thing, at: Point, weather: Weather) -> None:
    """A plate on a pole: round, pointed or square, with a rim."""
    half, radius = 0.12, thing.wide / 2
    canvas.upright(at, [(-half, 0), (half, 0), (half, thing.high), (-half, thing.high)], thing.colour, ID[POLE])
    corners = (10, 3, 4)[thing.look % 3]
    turn = math.pi / 2 if corners != 4 else math.pi / 4
    rim, plate = (((200, 25, 35), (240, 240, 240)), ((25, 70, 180), (30, 85, 200)), ((210, 190, 30), (235, 215, 60)))[
        thing.look // 3 % 3
    ]
    for colour, size in ((rim, 1.0), (plate, 0.68)):
        outline = [
            (
                radius * size * math.cos(turn + math.tau * i / corners),
                thing.high + radius * size * math.sin(turn + math.tau * i / corners),
            )
            for i in range(corners)
        ]
        canvas.upright(at, outline, _shade(colour, 1 - weather.sun / 2), ID[SIGN])


DRAW: dict[str, Callable[[Canvas, Thing, Point, Weather], None]] = {
    "house": _draw_house,
    "car": _draw_vehicle,
    "truck": _draw_truck,
    "tree": _draw_plant,
    "bush": _draw_plant,
    "person": _draw_person,
    "lamp": _draw_lamp,
    "sign": _draw_sign,
}
