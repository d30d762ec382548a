"""The capacity file: a fleet of cars, what is kept of its data, what is labelled, and what is trained on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.forms import read_text
from podwright.spec.hardware import StorageKind
from podwright.spec.types import Bandwidth, Count, Duration, Line, Name, Number, Ratio, Size, Speed, Strict

Positive = Annotated[Number, Field(gt=0)]
Share = Annotated[Number, Field(gt=0, le=1)]


class Sensor(Strict):
    """Sensors of a car that are alike: cameras by their pixels, all others by their rate."""

    name: Line = Field(default="cameras", description="such as cameras or lidar")
    count: Count = Field(default=1, description="how many a car has")
    megapixels: Positive | None = Field(default=None, description="millions of pixels of one picture")
    fps: Positive | None = Field(default=None, description="pictures a second")
    bits: Positive = Field(default=8, description="bits of a pixel as recorded; raw Bayer data has 8 to 16")
    rate_bytes_s: Bandwidth | None = Field(default=None, alias="rate", description="of one sensor, instead of pixels")


class Fleet(Strict):
    """The cars and when they record."""

    cars: Count = Field(description="cars that record")
    hours_per_day: Annotated[Positive, Field(le=24)] = Field(description="hours a car records in a day")
    days_per_year: Annotated[Positive, Field(le=366)] = Field(default=365, description="days a year with recordings")
    sensors: tuple[Sensor, ...] = Field(description="what records")


class Ingest(Strict):
    """How the data comes in."""

    window_s: Duration = Field(default=86400.0, alias="window", description="in which a day's data must be in")
    link_gbps: Speed | None = Field(default=None, alias="link", description="speed of one line into the data centre")
    link_share: Share = Field(default=0.8, description="part of a line that carries data")


class Tier(Strict):
    """A place where data is kept for a time."""

    name: Name = Field(description="such as hot or archive")
    keep_s: Duration = Field(alias="keep", description="how long: 30d")
    share: Share = Field(default=1, description="part of the data that is kept here")
    compression: Ratio = Field(default=1, description="size before to size after")
    copies: Annotated[Count, Field(le=16)] = Field(default=1, description="how often it is stored")
    kind: StorageKind = Field(default="spectrum-scale", description="file system of the pod that `--pod` writes")


class Labels(Strict):
    """The pictures that networks learn from: a number, or a part of all pictures of a year."""

    images: Positive | None = Field(default=None, description="labelled pictures")
    share_of_frames: Share | None = Field(default=None, description="part of a year's pictures that are labelled")
    image_bytes: Size | None = Field(default=None, alias="image_size", description="of one picture as it is read")


class CapacityTraining(Strict):
    """What is trained, how fast a node is, and by when."""

    images_per_node_day: Positive = Field(description="labelled pictures that one node trains a network on in a day")
    networks: Count = Field(default=1, description="networks")
    experiments: Count = Field(default=1, description="trainings of each network")
    within_s: Duration = Field(alias="within", description="in which all trainings are done: 10d")
    utilization: Share = Field(default=1, description="part of the hours that nodes train")
    model: Line = Field(default="dgx-a100", description="nodes of the pod that `--pod` writes: a library name")
    gpus_per_node: Count = Field(default=8, description="GPUs of a node")


class CapacityFile(Strict):
    """The whole chain, or any part of it that stands alone."""

    name: Name = Field(description="lower-case letters, digits and dashes")
    title: Line | None = Field(default=None, description="a line about it")
    fleet: Fleet | None = Field(default=None, description="cars and sensors")
    ingest: Ingest = Field(default=Ingest(), description="how the data comes in")
    tiers: tuple[Tier, ...] = Field(default=(), description="where the data is kept")
    labels: Labels | None = Field(default=None, description="labelled pictures")
    training: CapacityTraining | None = Field(default=None, description="what is trained on them")
    assumptions: tuple[Line, ...] = Field(default=(), description="what the numbers rest on, in words")


def parse_capacity(text: str, file: str) -> CapacityFile:
    """Return the file of a text, or refuse with every problem at once, each with its place."""
    return read_text(CapacityFile, text, file, (_sensors, _chain), example="examples/capacity-fleet.yaml")


def _sensors(tree: dict[str, Any]) -> Iterator[Finding]:
    fleet = tree.get("fleet")
    if not isinstance(fleet, dict) or not isinstance(fleet.get("sensors"), list):
        return
    for index, sensor in enumerate(fleet["sensors"]):
        if not isinstance(sensor, dict):
            continue
        if "rate" in sensor:
            if "megapixels" in sensor:
                hint = "a rate is all that a sensor gives; leave out one of the two"
                yield Finding(("fleet", "sensors", index, "megapixels"), "stands beside a rate", hint)
            continue
        missing = [name for name in ("megapixels", "fps") if name not in sensor]
        if missing:
            hint = "give `megapixels` and `fps` of a camera, or the `rate` of any other sensor"
            yield Finding(("fleet", "sensors", index), f"has neither a rate nor {' and '.join(missing)}", hint)


def _chain(tree: dict[str, Any]) -> Iterator[Finding]:
    """Check that each link of the chain has the one before it."""
    labels = tree.get("labels")
    if "fleet" not in tree and "labels" not in tree:
        yield Finding((), "has nothing to compute with", "give a `fleet`, or `labels` and `training`")
    if isinstance(labels, dict) and ("images" in labels) == ("share_of_frames" in labels):
        yield Finding(("labels",), "needs either images or share_of_frames", "give one of the two")
    if isinstance(labels, dict) and "share_of_frames" in labels and "fleet" not in tree:
        yield Finding(("labels", "share_of_frames"), "needs a fleet", "give `images` instead, or add `fleet:`")
    if "training" in tree and "labels" not in tree:
        yield Finding(("training",), "has no pictures to train on", "add `labels:`")
    if "tiers" in tree and "fleet" not in tree:
        yield Finding(("tiers",), "has no data to keep", "add `fleet:`")
