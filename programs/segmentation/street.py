"""A made-up street and what stands on it.

A street is laid out once per scene (lanes, pavements, houses, trees, traffic, weather) and is closed like a ring, so
that every frame along it has something to show. Sizes are those of the real things in metres, but thin ones (lane
marks, poles) are made wider, as they would vanish at the small picture sizes this is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from canvas import Colour

RING_M = 420.0


SKY, NATURE, HOUSE, ROAD, PAVEMENT = "Sky", "Nature object", "Buildings", "RD normal street", "Sidewalk"
SOLID, DASHED, POLE, SIGN = "Solid line", "Dashed line", "Poles", "Traffic sign 1"
CARS = ("Car 1", "Car 2", "Car 3", "Car 4")
TRUCKS = ("Truck 1", "Truck 2", "Truck 3")
PEOPLE = ("Pedestrian 1", "Pedestrian 2", "Pedestrian 3")
LABELS = (SKY, NATURE, HOUSE, ROAD, PAVEMENT, SOLID, DASHED, POLE, SIGN, *CARS, *TRUCKS, *PEOPLE)
ID = {label: number for number, label in enumerate(LABELS)}


@dataclass(frozen=True)
class Weather:
    """Light and air of a scene."""

    zenith: Colour
    haze: Colour
    sight_m: float
    sun: float  # how much darker a side in shade is, 0 to 1
    gain: float
    tint: Colour
    cloud: float


@dataclass(frozen=True)
class Thing:
    """Something on the street: where its middle is (metres right of the road's middle, metres along), how big it is."""

    kind: str
    label: str
    x: float
    z: float
    wide: float
    high: float
    long: float
    colour: Colour
    look: int  # seeds what is random about its looks


@dataclass(frozen=True)
class Street:
    """One scene."""

    lanes: int
    lane_m: float
    pavement_m: float
    asphalt: Colour
    paving: Colour
    green: Colour
    paint: Colour
    weather: Weather
    things: tuple[Thing, ...]

    @property
    def half_m(self) -> float:
        """From the middle of the road to its edge."""
        return self.lanes * self.lane_m / 2

    @property
    def own_lane_m(self) -> float:
        """The middle of the lane we drive in: the rightmost one."""
        return self.half_m - self.lane_m / 2


def make_street(rng: np.random.Generator, green: float) -> Street:
    """Lay out a scene; `green` is the share of nature against houses, 0 to 1."""
    lanes, lane_m = int(rng.integers(2, 4)), float(rng.uniform(3.3, 3.8))
    half_m, pavement_m = lanes * lane_m / 2, float(rng.uniform(2.0, 3.4))
    edge_m = half_m + pavement_m
    things = [
        *_sides(rng, edge_m, green),
        *_traffic(rng, lanes, lane_m, half_m),
        *_people(rng, half_m, pavement_m),
        *_posts(rng, half_m),
    ]
    return Street(
        lanes=lanes,
        lane_m=lane_m,
        pavement_m=pavement_m,
        asphalt=_grey(rng, 70, 105),
        paving=_grey(rng, 135, 175, warm=14),
        green=(rng.uniform(60, 105), rng.uniform(100, 135), rng.uniform(45, 70)),
        paint=_grey(rng, 215, 245),
        weather=make_weather(rng),
        things=tuple(things),
    )


def make_weather(rng: np.random.Generator) -> Weather:
    """Anything from a clear noon to a dull evening."""
    dull = float(rng.uniform(0, 1))
    haze = tuple(float(c + rng.uniform(-12, 12)) for c in (214 - 30 * dull, 222 - 32 * dull, 232 - 36 * dull))
    return Weather(
        zenith=(95 + 80 * dull, 145 + 40 * dull, 225 - 40 * dull),
        haze=(haze[0], haze[1], haze[2]),
        sight_m=float(rng.uniform(90, 260)) * (1.3 - 0.6 * dull),
        sun=0.45 - 0.3 * dull,
        gain=float(rng.uniform(0.72, 1.12)),
        tint=(float(rng.uniform(0.92, 1.08)), 1.0, float(rng.uniform(0.92, 1.08))),
        cloud=float(rng.uniform(0, 30)),
    )


def _grey(rng: np.random.Generator, low: float, high: float, warm: float = 5) -> Colour:
    base = float(rng.uniform(low, high))
    return base + float(rng.uniform(-warm, warm)), base, base + float(rng.uniform(-warm, warm))


def _colour(rng: np.random.Generator, low: float, high: float) -> Colour:
    red, green, blue = rng.uniform(low, high, 3)
    return float(red), float(green), float(blue)


def _look(rng: np.random.Generator) -> int:
    return int(rng.integers(1 << 30))


def _sides(rng: np.random.Generator, edge_m: float, green: float) -> Iterator[Thing]:
    """Houses, trees and bushes along both sides."""
    for side in (-1, 1):
        z = 0.0
        while z < RING_M:
            long = float(rng.uniform(9, 22))
            if rng.random() > green:
                deep, high, gap = rng.uniform(8, 14), rng.uniform(5, 15), rng.uniform(0.3, 3)
                x = side * (edge_m + gap + deep / 2)
                yield Thing("house", HOUSE, x, z + long / 2, deep, high, long * 0.94, _wall(rng), _look(rng))
            else:
                yield from _grove(rng, side, edge_m, z, long)
            z += long


def _wall(rng: np.random.Generator) -> Colour:
    base = float(rng.uniform(105, 205))
    return base + float(rng.uniform(0, 40)), base + float(rng.uniform(-10, 12)), base - float(rng.uniform(0, 45))


def _grove(rng: np.random.Generator, side: int, edge_m: float, z: float, long: float) -> Iterator[Thing]:
    for _ in range(int(rng.integers(2, 6))):
        tree = rng.random() < 0.6
        high = rng.uniform(5, 10) if tree else rng.uniform(1, 2.6)
        wide = high * rng.uniform(0.5, 0.8) if tree else rng.uniform(2, 5)
        x, along = side * (edge_m + rng.uniform(1, 9)), z + rng.uniform(0, long)
        leaf = (rng.uniform(35, 95), rng.uniform(75, 130), rng.uniform(25, 65))
        yield Thing("tree" if tree else "bush", NATURE, x, along, wide, high, wide, leaf, _look(rng))


def _traffic(rng: np.random.Generator, lanes: int, lane_m: float, half_m: float) -> Iterator[Thing]:
    """Cars in the lanes and parked at the kerb, none inside another; a truck now and then."""
    placed: list[Thing] = []
    for turn in range(90):
        if turn % 3:
            x = -half_m + (int(rng.integers(lanes)) + 0.5) * lane_m + float(rng.normal(0, 0.25))
        else:
            x = float(rng.choice((-1, 1))) * (half_m + float(rng.uniform(-0.4, 0.6)))
        vehicle = _vehicle(rng, x, truck=rng.random() < 0.12)
        if not any(_collide(vehicle, other) for other in placed):
            placed.append(vehicle)
    yield from placed


def _collide(one: Thing, two: Thing) -> bool:
    return (
        abs(one.x - two.x) < (one.wide + two.wide) / 2 and abs(ahead(one.z - two.z)) < (one.long + two.long) / 2 + 0.8
    )


def _vehicle(rng: np.random.Generator, x: float, truck: bool) -> Thing:
    bright = rng.random() < 0.5
    colour = _grey(rng, 30, 240, warm=8) if bright else _colour(rng, 20, 215)
    z = float(rng.uniform(0, RING_M))
    if truck:
        size = rng.uniform(2.3, 2.6), rng.uniform(2.9, 3.8), rng.uniform(6.5, 10)
        return Thing("truck", str(rng.choice(TRUCKS)), x, z, *size, colour, _look(rng))
    size = rng.uniform(1.7, 2.0), rng.uniform(1.4, 1.8), rng.uniform(3.8, 4.9)
    return Thing("car", str(rng.choice(CARS)), x, z, *size, colour, _look(rng))


def _people(rng: np.random.Generator, half_m: float, pavement_m: float) -> Iterator[Thing]:
    for _ in range(46):
        x = float(rng.choice((-1, 1))) * (half_m + rng.uniform(0.1, 0.9) * pavement_m)
        if rng.random() < 0.12:
            x = float(rng.uniform(-half_m, half_m))
        high = rng.uniform(1.3, 1.95)
        yield Thing(
            "person",
            str(rng.choice(PEOPLE)),
            x,
            float(rng.uniform(0, RING_M)),
            high * 0.36,
            high,
            0.5,
            _colour(rng, 25, 220),
            _look(rng),
        )


def _posts(rng: np.random.Generator, half_m: float) -> Iterator[Thing]:
    """Lamp posts at even distances, traffic signs here and there."""
    z = float(rng.uniform(0, 12))
    while z < RING_M:
        side = float(rng.choice((-1, 1)))
        yield Thing(
            "lamp",
            POLE,
            side * (half_m + 0.55),
            z,
            rng.uniform(0.24, 0.34),
            rng.uniform(5, 8),
            0.2,
            _grey(rng, 35, 75),
            _look(rng),
        )
        z += float(rng.uniform(11, 19))
    for _ in range(30):
        yield Thing(
            "sign",
            SIGN,
            float(rng.choice((-1, 1))) * (half_m + rng.uniform(0.4, 0.9)),
            float(rng.uniform(0, RING_M)),
            rng.uniform(0.8, 1.15),
            rng.uniform(2.2, 3.1),
            0.1,
            _grey(rng, 150, 190),
            _look(rng),
        )


def ahead(distance_m: float) -> float:
    """A distance along the ring as the shorter way, negative when behind."""
    return (distance_m + RING_M / 2) % RING_M - RING_M / 2
