"""From cars to nodes: what a fleet records, what must be carried and kept, and what it takes to train on it.

Sizes are decimal, as discs and lines are sold. Every figure carries how it came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

from podwright.spec import node_model
from podwright.spec.problems import refuse
from podwright.theme.words import count

if TYPE_CHECKING:
    from podwright.design.predict.capacity_file import CapacityFile, CapacityTraining, Fleet, Labels, Sensor, Tier

DAY_S = 86400.0
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True, slots=True)
class CapacityFigure:
    """One number of the chain: its name in JSON, the number, its unit, and how it came about."""

    section: str
    name: str
    value: float
    unit: str
    how: str

    @property
    def shown(self) -> str:
        """Return it for people: sizes and rates with the unit that fits, counts with separators."""
        value, unit = self.value, self.unit
        if unit in ("B", "B/s"):
            return si(value, unit)
        number = f"{value:.3g}"
        if value >= 100 or value == int(value):
            number = f"{value:,.0f}"
        if value == 1:
            unit = unit.removesuffix("s")
        return f"{number} {unit}".strip()


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What a catalogued dataset holds and brought in a day; `kept_share` is None where curation judged nothing."""

    dataset: str
    days: int
    size_bytes: int
    bytes_per_day: int
    kept_share: float | None
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """All figures of a capacity file, in the order of the chain."""

    file: CapacityFile
    figures: tuple[CapacityFigure, ...]

    @classmethod
    def of(cls, file: CapacityFile) -> CapacityPlan:
        """Follow the chain as far as the file goes."""
        figures: list[CapacityFigure] = []
        if file.fleet:
            figures += _data(file.fleet)
            per_day = _value(figures, "bytes_per_day")
            figures += _ingest(file, per_day)
            figures += [_tier(tier, per_day, file.fleet) for tier in file.tiers]
        if file.labels:
            figures += _labels(file.labels, file.fleet, figures)
        if file.labels and file.training:
            figures += _training(file.training, file.labels, _value(figures, "images"))
        return cls(file, tuple(figures))

    @classmethod
    def read(cls, text: str, name: str) -> CapacityPlan:
        """Follow the chain of a file's text, or refuse it with every problem at once; `name` is the file's."""
        from podwright.design.predict.capacity_file import parse_capacity

        return cls.of(parse_capacity(text, name))

    def get(self, section: str, name: str) -> float | None:
        """Return one figure's number; None where the file does not ask for it."""
        for figure in self.figures:
            if (figure.section, figure.name) == (section, name):
                return figure.value
        return None

    def beside(self, brought: DatasetFacts, storage: Mapping[str, int]) -> CapacityPlan:
        """Return the same with what a dataset brought and kept, and how long each storage takes that."""
        measured = _measured(brought, self.get("data", "bytes_per_day"), storage)
        return replace(self, figures=(*self.figures, *measured))

    def pod_text(self) -> str:
        """Return the file of the pod that carries the plan, or refuse a chain that does not reach the nodes."""
        return _pod_text(self)

    def as_json(self) -> dict[str, Any]:
        """Return the figures by section, whole numbers where they count things."""
        document: dict[str, Any] = {"name": self.file.name}
        for figure in self.figures:
            number = int(figure.value)
            value = number if figure.value == number else figure.value
            document.setdefault(figure.section, {})[figure.name] = value
        how = {f"{figure.section}.{figure.name}": figure.how for figure in self.figures}
        return {**document, "how": how, "assumptions": list(self.file.assumptions), "origin": {"kind": "modelled"}}


def _measured(brought: DatasetFacts, modelled: float | None, storage: Mapping[str, int]) -> Iterator[CapacityFigure]:
    how = f"median of {brought.days} days on which files of {brought.dataset} were written"
    yield CapacityFigure("dataset", "bytes_per_day", brought.bytes_per_day, "B", how)
    if modelled:
        how = f"of {si(modelled, 'B')} that the file gives"
        yield CapacityFigure("dataset", "share_of_model", brought.bytes_per_day / modelled, "", how)
    kept_per_day = float(brought.bytes_per_day)
    if brought.kept_share is not None:
        kept_per_day *= brought.kept_share
        how = ", ".join(f"{count} {reason}" for reason, count in brought.reasons.items())
        yield CapacityFigure("dataset", "kept_share", brought.kept_share, "", f"by curation: {how}")
        yield CapacityFigure("dataset", "kept_bytes_per_day", kept_per_day, "B", "bytes per day x kept share")
    for name, capacity in storage.items():
        if kept_per_day > 0:
            days = int(max(0, capacity - brought.size_bytes) / kept_per_day)
            how = f"({si(capacity, 'B')} - {si(brought.size_bytes, 'B')} held) / {si(kept_per_day, 'B')} a day"
            yield CapacityFigure("dataset", f"days_until_{name}_is_full", float(days), "", how)


def si(value: float, unit: str) -> str:
    """Return `199 PB`: three figures and a decimal prefix."""
    power = 0
    while abs(value) >= 999.5 and power + 1 < len(_PREFIXES):
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_PREFIXES[power]}{unit}"


def _data(fleet: Fleet) -> Iterator[CapacityFigure]:
    rate = sum(sensor.count * _rate(sensor) for sensor in fleet.sensors)
    frames_s = sum(sensor.count * (sensor.fps or 0.0) for sensor in fleet.sensors)
    seconds = fleet.hours_per_day * 3600
    cars = f"{count(fleet.cars, 'car')} x {fleet.hours_per_day:g} h"
    for sensor in fleet.sensors:
        yield CapacityFigure("sensors", sensor.name, sensor.count * _rate(sensor), "B/s", _how_fast(sensor))
    yield CapacityFigure("data", "car_bytes_s", rate, "B/s", "all sensors of a car")
    yield CapacityFigure("data", "bytes_per_day", rate * seconds * fleet.cars, "B", f"{cars} x {si(rate, 'B/s')}")
    per_year = rate * seconds * fleet.cars * fleet.days_per_year
    yield CapacityFigure("data", "bytes_per_year", per_year, "B", f"{fleet.days_per_year:g} days of recording")
    if frames_s:
        frames = frames_s * seconds * fleet.cars
        yield CapacityFigure("data", "frames_per_day", frames, "", f"{cars} x {frames_s:g} pictures/s")


def _rate(sensor: Sensor) -> float:
    if sensor.rate_bytes_s is not None:
        return sensor.rate_bytes_s
    return (sensor.megapixels or 0.0) * 1e6 * (sensor.fps or 0.0) * sensor.bits / 8


def _how_fast(sensor: Sensor) -> str:
    if sensor.rate_bytes_s is not None:
        return f"{sensor.count} x {si(sensor.rate_bytes_s, 'B/s')}"
    return f"{sensor.count} x {sensor.megapixels:g} MP x {sensor.fps:g}/s x {sensor.bits:g} bit"


def _ingest(file: CapacityFile, per_day: float) -> Iterator[CapacityFigure]:
    ingest = file.ingest
    rate = per_day / ingest.window_s
    yield CapacityFigure("ingest", "bytes_s", rate, "B/s", f"a day's data within {ingest.window_s / 3600:g} h")
    if ingest.link_gbps is not None:
        link_bytes_s = ingest.link_gbps * 1e9 / 8 * ingest.link_share
        how = f"{ingest.link_gbps:g} Gb/s each, {ingest.link_share * 100:g} % of it data"
        yield CapacityFigure("ingest", "links", ceil(rate / link_bytes_s), "links", how)


def _tier(tier: Tier, per_day: float, fleet: Fleet) -> CapacityFigure:
    """Return what the kept days hold; of a long time only the days with recordings count."""
    days = tier.keep_s / DAY_S
    recorded = days
    if days > fleet.days_per_year:
        recorded = days * fleet.days_per_year / 365
    stored = per_day * recorded * tier.share / tier.compression * tier.copies
    how = [f"{days:g} days"]
    if tier.share < 1:
        how.append(f"{tier.share * 100:g} % of it")
    if tier.compression > 1:
        how.append(f"packed {tier.compression:g}:1")
    if tier.copies > 1:
        how.append(f"{tier.copies} copies")
    return CapacityFigure("tiers", tier.name, stored, "B", ", ".join(how))


def _labels(labels: Labels, fleet: Fleet | None, figures: list[CapacityFigure]) -> Iterator[CapacityFigure]:
    if labels.images is not None or fleet is None:
        images, how = labels.images or 0.0, "given"
    else:
        share = labels.share_of_frames or 0.0
        images = _value(figures, "frames_per_day") * fleet.days_per_year * share
        how = f"{share * 100:g} % of a year's pictures"
    yield CapacityFigure("labels", "images", images, "", how)


def _training(training: CapacityTraining, labels: Labels, images: float) -> Iterator[CapacityFigure]:
    trainings = training.networks * training.experiments
    each = images / training.images_per_node_day
    node_days = trainings * each
    within = training.within_s / DAY_S
    nodes = ceil(round(node_days / within / training.utilization, 9))
    how = f"{count(training.networks, 'network')} x {count(training.experiments, 'experiment')}"
    yield CapacityFigure("training", "trainings", trainings, "", how)
    speed = f"{training.images_per_node_day:,.0f} images a node and day"
    yield CapacityFigure("training", "node_days_each", each, "", speed)
    yield CapacityFigure("training", "node_days", node_days, "", "all trainings")
    yield CapacityFigure("training", "gpu_days", node_days * training.gpus_per_node, "", "all GPUs of a node")
    how = f"all within {within:g} days"
    if training.utilization < 1:
        how += f", {training.utilization * 100:g} % used"
    yield CapacityFigure("training", "nodes", nodes, "nodes", how)
    if labels.image_bytes is not None:
        rate = nodes * training.images_per_node_day * labels.image_bytes / DAY_S
        how = f"{count(nodes, 'node')} x {si(labels.image_bytes, 'B')} an image"
        yield CapacityFigure("training", "read_bytes_s", rate, "B/s", how)


def _value(figures: list[CapacityFigure], name: str) -> float:
    return next((figure.value for figure in figures if figure.name == name), 0.0)


def _pod_text(plan: CapacityPlan) -> str:
    """Return the pod's file, or refuse a chain that does not reach the nodes; sizes are rounded up."""
    file, training, nodes = plan.file, plan.file.training, plan.get("training", "nodes")
    if training is None or nodes is None:
        raise refuse(
            "the chain does not reach nodes, which a pod is made of",
            hint="add `labels:` and `training:`",
            field="training",
        )
    model = node_model(training.model)
    gpus = model.gpus.count if model.gpus else 0
    if gpus != training.gpus_per_node:
        raise refuse(
            f"a {training.model} has {gpus} GPUs, and the file computes with {training.gpus_per_node}",
            hint="name another `model`, or the `gpus_per_node` that it has",
            field="training.model",
        )
    width = max(3, len(str(int(nodes))))
    hosts = f"node[{1:0{width}d}-{int(nodes):0{width}d}]"
    if nodes == 1:
        hosts = f"node{1:0{width}d}"
    lines = [
        f"# The pod that carries the capacity plan {file.name}: {int(nodes)} nodes train in time,",
        "# and each tier holds what is kept. Written by podwright capacity; sizes are rounded up.",
        f"name: {file.name}",
        "nodes:",
        f'  - {{hosts: "{hosts}", model: {training.model}}}',
        *_storage(plan),
    ]
    return "\n".join(lines) + "\n"


def _storage(plan: CapacityPlan) -> Iterator[str]:
    """Yield a storage system for each tier; the first takes in what comes, and is what training reads."""
    if not plan.file.tiers:
        return
    yield "storage:"
    per_day = plan.get("data", "bytes_per_day") or 0.0
    for number, tier in enumerate(plan.file.tiers):
        rate = per_day * tier.share / tier.compression * tier.copies / DAY_S
        if number == 0:
            arriving = (plan.get("ingest", "bytes_s") or 0.0) * tier.copies
            rate = max(rate, arriving) + (plan.get("training", "read_bytes_s") or 0.0)
        size = rounded_up(plan.get("tiers", tier.name) or 0.0, "B")
        yield f"  - {{name: {tier.name}, kind: {tier.kind}, capacity: {size}, bandwidth: {rounded_up(rate, 'B/s')}}}"


def rounded_up(value: float, unit: str) -> str:
    """Return `12.2PB`: three figures, never less than the value, in the form that a pod's file has."""
    number, power = Decimal(value), 0
    while number >= 1000 and power + 1 < len(_PREFIXES[:6]):
        number, power = number / 1000, power + 1
    places = Decimal(1).scaleb(max(number.adjusted() - 2, -2))
    if power == 0:
        places = Decimal(1)
    number = number.quantize(places, ROUND_UP)
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text}{_PREFIXES[:6][power]}{unit}"
