"""The pod that carries a capacity plan, as a file that can be designed: nodes, and storage for each tier."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

from podwright.design.predict.capacity import DAY_S, CapacityPlan
from podwright.spec import node_model
from podwright.spec.problems import refuse

_PREFIXES = ("", "k", "M", "G", "T", "P")


def pod_text(plan: CapacityPlan) -> str:
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
    while number >= 1000 and power + 1 < len(_PREFIXES):
        number, power = number / 1000, power + 1
    places = Decimal(1).scaleb(max(number.adjusted() - 2, -2))
    if power == 0:
        places = Decimal(1)
    number = number.quantize(places, ROUND_UP)
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text}{_PREFIXES[power]}{unit}"
