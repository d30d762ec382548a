"""A design as a person reads it in the terminal: a few tables, 80 columns wide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

from podwright import design as designs
from podwright.cli.terminal import figures, output
from podwright.spec.hostlist import fold_hosts
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.design import Cable, ComputeSize, Design, Growth, GrowthStep, Item, StorageSize, Sweep
    from podwright.spec import SwitchModel


NOTE_WIDTH, SWEEP_BAR = 68, 14
TIERS = {1: "one switch", 2: "two tiers", 3: "three tiers"}


def design_tables(design: Design, gpu_read_bytes_s: int, width: int | None) -> list[str]:
    """Lay out the whole design, verdict first."""
    hosts = design.requirements.hosts
    names = {design.requirements.models[host].name or "node" for host in hosts}
    lines = [f"{design.pod.name}: no node is on a fabric"]
    if hosts:
        nodes = f"{figures.count(len(hosts), 'node')} {' and '.join(sorted(names))}"
        lines = [f"{design.pod.name}: {nodes}, {output.clip(fold_hosts(hosts), 40)}"]
    sections = [section(design) for section in (_compute, _storage, _management, _racks, _bill)]
    for section in (*sections, _feeds(design, gpu_read_bytes_s), _notes(design)):
        section_lines = list(section)
        if section_lines:
            lines += ["", *section_lines]
    return [output.clip(line, width) for line in lines]


def sweep_table(sweep: Sweep, width: int | None) -> list[str]:
    """List what each size takes; the bar is its switches for each node, against the most of all."""
    most = max((size.switches_per_node or 0.0 for size in sweep.sizes), default=0.0)
    rows = []
    for size in sweep.sizes:
        if size.switches is None:
            rows.append((f"{size.nodes:,}", *[figures.NONE] * 5, f"refused: {size.refused}"))
            continue
        power = figures.NONE if size.power_w is None else f"{size.power_w / 1000:,.0f} kW"
        share = size.switches_per_node or 0.0
        price, (filled, _) = _money(size.price_per_gpu), figures.bar(share / (most or 1.0), SWEEP_BAR)
        row = f"{size.nodes:,}", f"{size.switches:,}", f"{size.cables:,}", power, price, f"{share:.2f}", filled
        rows.append(row)
    head = ("nodes", "switches", "cables", "power", f"{sweep.currency} a GPU", "switches a node", "")
    return output.table(head, rows, width)


def step_table(steps: Sequence[GrowthStep], width: int | None) -> list[str]:
    """List the work at each leaf, what the worst pair of nodes has of its ports after it, and who must be drained."""
    rows = []
    fabrics = list(dict.fromkeys(chain.from_iterable(step.bandwidth_left for step in steps)))
    for step in steps:
        drained = fold_hosts(dict.fromkeys(chain.from_iterable(step.cut_off.values())))
        work = [str(len(cables)) for cables in (step.add, step.move, step.remove)]
        left = [words.percent(step.bandwidth_left.get(fabric)) for fabric in fabrics]
        rows.append((step.leaf or "above the leaves", *work, *left, drained or figures.NONE))
    head = ("leaf", "add", "move", "remove", *(f"{fabric} left" for fabric in fabrics), "drain")
    return output.table(head, rows, width)


def cable_table(design: Design, width: int | None) -> list[str]:
    """List every cable."""
    rows = []
    for cable, length, medium in design.laid:
        metres = "-" if length is None else f"{length:g} m"
        ends = (f"{cable.a} {cable.a_port}", f"{cable.b} {cable.b_port}")
        rows.append((cable.fabric, cable.kind, *ends, metres, medium))
    return output.table(("fabric", "kind", "from", "to", "length", "made of"), rows, width)


def _compute(design: Design) -> Iterator[str]:
    size = design.compute
    if size is None:
        return
    switch = _switch_text(design.requirements.compute_switch)
    yield f"compute     {TIERS[size.tiers]}, {figures.count(size.units, 'scalable unit')}, {switch}"
    rows = _tree(size)
    if size.fabric_manager:
        rows.append(("manager", 0, size.fabric_manager, "to leaves"))
    yield from _tiers(rows)
    yield f"            same-rail traffic {_below_core(design)}"
    if design.underlay is not None:
        asns = sorted(router.asn for router in design.underlay.routers if router.block)
        yield f"            BGP unnumbered, leaves are AS {asns[0]} to {asns[-1]}, RoCE without loss"


def _tree(size: ComputeSize | StorageSize) -> list[tuple[str, int, int, str]]:
    """Return the tiers that there are, each with its switches and their cables downwards."""
    rows = [
        ("leaf", size.leaf, size.node_leaf, "to nodes"),
        ("spine", size.spine, size.leaf_spine, "to leaves"),
        ("core", size.core, size.spine_core, "to spines"),
    ]
    return [row for row in rows if row[1]]


def _below_core(design: Design) -> str:
    size, ask = design.compute, design.requirements.compute
    if size is not None and size.tiers == 1:
        return "and all other stays within one switch"
    if ask is None or size is None or ask.layout == "classic":
        return "is as any other: the layout has no rails"
    if size.groups > 1:
        return f"crosses the core: each rail is in {size.groups} groups"
    if size.core:
        return "stays below the core"
    return "stays within leaf and spine"


def _storage(design: Design) -> Iterator[str]:
    size = design.storage
    if size is None:
        return
    where = "spines" if size.on_spines else "leaves"
    switch = _switch_text(design.requirements.storage_switch)
    yield f"storage     {TIERS[size.tiers]}, {figures.count(size.ports, 'storage port')} on {where}, {switch}"
    yield from _tiers(_tree(size))
    yield (
        f"            subscription {size.subscription}"
        f" (nodes alone {size.subscription_nodes}, nodes and storage {size.subscription_all})"
    )


def _management(design: Design) -> Iterator[str]:
    management = design.management
    if management is None:
        return
    switches = figures.count(management.count("leaf"), "switch", "switches")
    above = management.count("aggregation") + management.count("core")
    if above:
        switches += f", {figures.count(above, 'switch', 'switches')} above"
    feeds = figures.count(len(management.pdus), "power feed")
    yield f"management  {switches}, {len(management.cables)} cables, {feeds}"
    for network in management.networks:
        vlan = f"VLAN {network.vlan}" if network.vlan else "no VLAN"
        yield f"            {network.name:<12}{vlan:<10}{network.subnet!s:<18}{network.purpose}"


def _racks(design: Design) -> Iterator[str]:
    floor, allowed = design.floor, design.pod.racks
    racks = figures.count(len(floor.racks), "rack")
    domain, domains = design.requirements.domain, len(design.requirements.domains_there)
    limits = f"{allowed.rack_units} units and {allowed.limit_w / 1000:g} kW"
    yield f"racks       {racks} of {limits}, {floor.power_text}"
    if domain is not None:
        count = figures.count(domains, "NVLink domain")
        yield f"            {count} of {domain.nodes} nodes, a rack each, cooled by {domain.cooling}"
    if floor.power_w:
        yield f"            heat {floor.heat_text}"
        fullest = max(floor.racks, key=lambda rack: rack.power_w)
        drawn, left = fullest.power_w / 1000, fullest.headroom_w / 1000
        facts = f"{drawn:.1f} kW, {left:.1f} left on each feed, {fullest.used_units} units"
        yield f"            the fullest is {fullest.name}: {facts}"
    if floor.weight_kg:
        yield f"            weight of devices {floor.weight_text}"
    if floor.unknown_power:
        yield f"            power not known of {', '.join(floor.unknown_power)}"
    if floor.unknown_weight:
        yield f"            weight not known of {', '.join(floor.unknown_weight)}"


def _bill(design: Design) -> Iterator[str]:
    items = design.bill()
    rows = [(str(item.count), item.kind, item.name, _money(item.amount)) for item in items if not item.fabric]
    # The bill has a line for each length; here cables are summed up by fabric and by what they are made of.
    summed: dict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for item in items:
        if item.fabric:
            summed[(item.kind, item.fabric, item.name)].append(item)
    for (kind, fabric, name), lines in summed.items():
        amounts = [item.amount for item in lines if item.amount is not None]
        amount = sum(amounts) if amounts else None
        what = fabric if kind == name else f"{fabric}, {name}"
        rows.append((str(sum(item.count for item in lines)), kind, what, _money(amount)))
    yield from output.table(("count", "what", "item", design.pod.costs.currency), rows)
    bought, without = design.total()
    if bought:
        missing = f", without {len(without)} items that have no price" if without else ""
        yield f"total       {_money(bought)} {design.pod.costs.currency}{missing}"
    yield from _owned(design, bought)


def _owned(design: Design, bought: float) -> Iterator[str]:
    """Say what the years cost in electricity, and what that makes with what was bought."""
    costs = design.pod.costs
    power = design.electricity()
    if power is None:
        return
    years = f"{power.years:g} years"
    if costs.years is None:
        years += " (assumed)"
    rate = f"{power.power_w / 1000:,.1f} kW, {power.price_kwh:g} a kWh"
    if design.floor.unknown_power:
        rate = f"at least {rate}"
    if power.pue is not None:
        rate += f", PUE {power.pue:g}"
    yield f"power       {_money(power.amount)} {costs.currency} in {years}: {rate}"
    yield f"owned       {_money(bought + power.amount)} {costs.currency} with power"


def _feeds(design: Design, gpu_read_bytes_s: int) -> Iterator[str]:
    for feed in design.feeds(gpu_read_bytes_s):
        if feed.per_gpu_bytes_s is None:
            yield f"feed        {feed.name}: its bandwidth is not known"
            continue
        verdict = "feeds the GPUs" if feed.feeds else "starves the GPUs"
        needed = feed.needed_bytes_s / 1e9
        text = f"{feed.per_gpu_bytes_s / 1e9:.2f} GB/s each, {needed:g} wanted"
        held = "" if feed.limit == "media" else f"; its {feed.limit} let no more through"
        yield f"feed        {feed.name} {verdict}: {text}{held}"


def _notes(design: Design) -> Iterator[str]:
    for note in design.notes:
        first, *rest = wrap(note, NOTE_WIDTH, break_on_hyphens=False, break_long_words=False)
        yield f"note        {first}"
        yield from (f"            {line}" for line in rest)


def _switch_text(model: SwitchModel | None) -> str:
    if model is None:
        return ""
    return f"{designs.model_name(model)}, {model.ports} ports"


def _tiers(rows: list[tuple[str, int, int, str]]) -> Iterator[str]:
    """Yield a line for each tier; a tier of no switches of its own has only cables."""
    for name, switches, cables, to in rows:
        count = ""
        if switches:
            noun = "switch" if switches == 1 else "switches"
            count = f"{switches:>6} {noun}"
        yield f"            {name:<8}{count:<15}  {cables:>7,} cables {to}"


def _money(amount: float | None) -> str:
    if amount is None:
        return figures.NONE
    return f"{amount:,.0f}"


def growth_tables(growth: Growth, cables: bool, width: int | None) -> list[str]:
    """List what growth adds and what it moves, apart; every added cable only when all cables are asked for."""
    changed = [(old.fabric, _path_of(old), _path_of(new)) for old, new in growth.moved]
    changed += [(cable.fabric, _path_of(cable), "taken out") for cable in growth.removed]
    lines = [
        f"added       {len(growth.added):,} cables, {len(growth.switches_added):,} switches",
        f"moved       {len(growth.moved):,} cables; taken out {len(growth.removed):,} cables",
    ]
    if changed:
        lines += ["", *output.table(("fabric", "from", "to"), changed, width)]
    if cables:
        rows = [(cable.fabric, f"{cable.a} {cable.a_port}", f"{cable.b} {cable.b_port}") for cable in growth.added]
        lines += ["", *output.table(("added", "from", "to"), rows, width)]
    return lines


def _path_of(cable: Cable) -> str:
    return f"{cable.a} {cable.a_port} - {cable.b} {cable.b_port}"
