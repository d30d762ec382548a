"""A design as a person reads it in the terminal: a few tables, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.design.growth import Growth
    from podwright.design.plan import Design


def design_tables(design: Design, gpu_read_bytes_s: int, width: int | None) -> list[str]:
    """Lays out the whole design, verdict first."""
    from podwright.spec import fold_hosts

    hosts = design.requirements.hosts
    names = {design.requirements.models[host].name or "node" for host in hosts}
    nodes = f"{_count(len(hosts), 'node')} {' and '.join(sorted(names))}"
    lines = [f"{design.pod.name}: {nodes}, {output.clip(fold_hosts(hosts), 40)}"]
    parts = [part(design) for part in (_compute, _storage, _management, _racks, _bill)]
    for told in (*map(list, parts), list(_feeds(design, gpu_read_bytes_s)), list(_notes(design))):
        lines += ["", *told] if told else []
    return [output.clip(line, width) for line in lines]


def cable_table(design: Design, width: int | None) -> list[str]:
    """Lists every cable."""
    rows = [
        (
            cable.fabric,
            cable.kind,
            f"{cable.a} {cable.a_port}",
            f"{cable.b} {cable.b_port}",
            "-" if length is None else f"{length:g} m",
            medium,
        )
        for cable, length, medium in design.laid
    ]
    return output.table(("fabric", "kind", "from", "to", "length", "made of"), rows, width)


def _compute(design: Design) -> Iterator[str]:
    size = design.compute
    if size is None:
        return
    tiers = "two" if size.tiers == 2 else "three"
    yield f"compute     {tiers} tiers, {_count(size.units, 'scalable unit')}, {_switch(design, 'compute')}"
    rows = [("leaf", size.leaf, size.node_leaf, "to nodes"), ("spine", size.spine, size.leaf_spine, "to leaves")]
    if size.core:
        rows.append(("core", size.core, size.spine_core, "to spines"))
    if size.fabric_manager:
        rows.append(("manager", 0, size.fabric_manager, "to leaves"))
    yield from _tiers(rows)
    yield f"            same-rail traffic {_below_core(design)}"


def _below_core(design: Design) -> str:
    size, ask = design.compute, design.requirements.compute
    if ask is None or size is None or ask.layout == "classic":
        return "is as any other: the layout has no rails"
    if size.groups > 1:
        return f"crosses the core: each rail is in {size.groups} groups"
    return "stays below the core" if size.core else "stays within leaf and spine"


def _storage(design: Design) -> Iterator[str]:
    size = design.storage
    if size is None:
        return
    where = "spines" if size.on_spines else "leaves"
    yield f"storage     two tiers, {_count(size.ports, 'storage port')} on {where}, {_switch(design, 'storage')}"
    yield from _tiers(
        [("leaf", size.leaf, size.node_leaf, "to nodes"), ("spine", size.spine, size.leaf_spine, "to leaves")]
    )
    yield (
        f"            subscription {size.subscription}"
        f" (nodes alone {size.subscription_nodes}, nodes and storage {size.subscription_all})"
    )


def _management(design: Design) -> Iterator[str]:
    made = design.management
    if made is None:
        return
    above = made.count("aggregation")
    joined = f", {_count(above, 'switch', 'switches')} above" if above else ""
    yield f"management  {_count(made.count('leaf'), 'switch', 'switches')}{joined}, {len(made.cables)} cables"
    for one in made.networks:
        vlan = f"VLAN {one.vlan}" if one.vlan else "no VLAN"
        yield f"            {one.name:<12}{vlan:<10}{one.subnet!s:<18}{one.purpose}"


def _racks(design: Design) -> Iterator[str]:
    floor, given = design.floor, design.pod.racks
    yield (
        f"racks       {_count(len(floor.racks), 'rack')} of {given.rack_units} units and {given.limit_w / 1000:g} kW,"
        f" {floor.power_w / 1000:,.1f} kW in all"
    )
    fullest = max(floor.racks, key=lambda rack: rack.power_w)
    yield f"            the fullest is {fullest.name}: {fullest.power_w / 1000:.1f} kW, {fullest.used_units} units"
    if floor.unknown_power:
        yield f"            power not known of {', '.join(floor.unknown_power)}"


def _bill(design: Design) -> Iterator[str]:
    from podwright.design.bom import total

    items = design.bill()
    rows = [(str(one.count), one.kind, one.name, _money(one.amount)) for one in items if one.kind != "cable"]
    lengths: dict[tuple[str, str], int] = {}
    for one in design.laid:
        key = (one.cable.fabric, one.medium)
        lengths[key] = lengths.get(key, 0) + 1
    prices = design.pod.costs.cable_prices
    for (fabric, medium), count in sorted(lengths.items()):
        price = getattr(prices, medium, None)
        rows.append((str(count), "cable", f"{fabric}, {medium}", _money(None if price is None else price * count)))
    yield from output.table(("count", "what", "item", design.pod.costs.currency), rows)
    amount, without = total(items)
    if amount:
        missing = f", without {len(without)} items that have no price" if without else ""
        yield f"total       {_money(amount)} {design.pod.costs.currency}{missing}"


def _feeds(design: Design, gpu_read_bytes_s: int) -> Iterator[str]:
    for one in design.feeds(gpu_read_bytes_s):
        if one.per_gpu_bytes_s is None:
            yield f"feed        {one.name}: its bandwidth is not known"
            continue
        verdict = "feeds the GPUs" if one.feeds else "starves the GPUs"
        needed = one.needed_bytes_s / 1e9
        yield f"feed        {one.name} {verdict}: {one.per_gpu_bytes_s / 1e9:.2f} GB/s each, {needed:g} wanted"


def _notes(design: Design) -> Iterator[str]:
    for note in design.management.notes if design.management else ():
        yield f"note        {note}"


def _switch(design: Design, fabric: str) -> str:
    from podwright.design.racks import model_name

    model = design.requirements.compute_switch if fabric == "compute" else design.requirements.storage_switch
    return f"{model_name(model)}, {model.ports} ports" if model else ""


def _tiers(rows: list[tuple[str, int, int, str]]) -> Iterator[str]:
    for name, switches, cables, to in rows:
        shown = f"{switches:>6} {'switch  ' if switches == 1 else 'switches'}" if switches else " " * 15
        yield f"            {name:<8}{shown}  {cables:>7,} cables {to}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _money(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:,.0f}"


def growth_tables(growth: Growth, cables: bool, width: int | None) -> list[str]:
    """Lists what growth adds and what it moves, apart; every added cable only when all cables are asked for."""
    moved = [
        (old.fabric, f"{old.a} {old.a_port} - {old.b} {old.b_port}", f"{new.a} {new.a_port} - {new.b} {new.b_port}")
        for old, new in growth.moved
    ]
    gone = [(one.fabric, f"{one.a} {one.a_port} - {one.b} {one.b_port}", "taken out") for one in growth.removed]
    lines = [
        f"added       {len(growth.added):,} cables, {len(growth.switches_added):,} switches",
        f"moved       {len(growth.moved):,} cables; taken out {len(growth.removed):,} cables",
    ]
    if moved or gone:
        lines += ["", *output.table(("fabric", "from", "to"), [*moved, *gone], width)]
    if cables:
        rows = [(one.fabric, f"{one.a} {one.a_port}", f"{one.b} {one.b_port}") for one in growth.added]
        lines += ["", *output.table(("added", "from", "to"), rows, width)]
    return lines
