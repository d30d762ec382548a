"""The racks drawn from the front, a drawing for each row, each device as high as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from podwright.design.domains import NVLINK_SWITCH, PARTS, POWER_SHELF
from podwright.design.exports.svg import Drawing
from podwright.design.floor import CABLE_MANAGER, Device, Rack, devices_of
from podwright.design.plan import Blueprint

UNIT = 14.0
WIDTH = 132.0
GAP = 28.0
LEFT, TOP = 36.0, 104.0
HEAD = 44.0
BAR = 6.0
# What a colour stands for -> the words of the legend.
LEGEND = {
    "node": "node or manager",
    "leaf": "compute leaf",
    "spine": "compute spine",
    "core": "compute core",
    "storage": "storage",
    "management": "management",
    "nvlink": "NVLink switch",
    "shelf": "power shelf",
    "sunk": "cable manager",
}
SWATCH = (16.0, 12.0)
# Racks side by side before a row goes on below: on a page as wide as a longer row letters are too small to read.
PER_LINE = 8


def racks_svg(design: Blueprint, tokens: str) -> dict[str, str]:
    """Return the elevations by the letters of their row, so that each is a page."""
    rows: dict[str, list[Rack]] = defaultdict(list)
    for rack in design.floor.racks:
        rows[rack.name.rstrip("0123456789")].append(rack)
    return {row: _row(design, row, racks, len(rows), tokens) for row, racks in rows.items()}


def rack_svg(design: Blueprint, rack: Rack, tokens: str) -> str:
    """Return the elevation of one rack."""
    drawing = Drawing(f"{design.pod.name}: rack {rack.name}", tokens)
    _rack(drawing, design, rack, LEFT - 12, HEAD)
    return drawing.text()


def _row(design: Blueprint, row: str, racks: list[Rack], rows: int, tokens: str) -> str:
    drawing = Drawing(f"{design.pod.name}: racks of row {row}", tokens)
    floor = design.floor
    columns = [rack.column for rack in racks]
    title = f"{design.pod.name}: row {row}, {len(racks)} racks"
    if max(columns) - min(columns) >= PER_LINE:
        title += f", {PER_LINE} places to a line"
    drawing.words(LEFT, 32, title, 20)
    total = f"all {rows} rows: " if rows > 1 else ""
    limits = sorted({rack.limit_w / 1000 for rack in floor.racks})
    limit = " or ".join(f"{limit_kw:g}" for limit_kw in limits)
    power = f"{total}{len(floor.racks)} racks, {floor.power_text}, at most {limit} kW a rack"
    if floor.unknown_power:
        power += f"; power not known of {', '.join(floor.unknown_power)}"
    drawing.words(LEFT, 52, power, 12, "soft")
    _legend(drawing, {_class(device) for device in devices_of(racks)})
    standing = {rack.column: rack for rack in racks}
    height = design.pod.racks.rack_units * UNIT
    for index, column in enumerate(range(min(standing), max(standing) + 1)):
        line, beside = divmod(index, PER_LINE)
        x, y = LEFT + beside * (WIDTH + GAP), TOP + HEAD + line * (height + HEAD + GAP)
        if column in standing:
            _rack(drawing, design, standing[column], x, y)
        else:
            _kept_free(drawing, f"{row}{column + 1:02d}", x, y, height)
    return drawing.text()


def _kept_free(drawing: Drawing, name: str, x: float, y: float, height: float) -> None:
    """Draw the place of a rack that comes when the pod grows as planned."""
    drawing.words(x, y - 26, name, 14, "soft")
    drawing.words(x, y - 12, "kept free for growth", 10, "soft")
    drawing.box("hair", x, y, WIDTH, height)


def _legend(drawing: Drawing, kinds: set[str]) -> None:
    """Draw what the colours of this page mean."""
    x = LEFT
    for kind, text in LEGEND.items():
        if kind in kinds:
            drawing.box(kind, x, 68, *SWATCH)
            drawing.words(x + SWATCH[0] + 6, 78, text, 11, "soft")
            x += SWATCH[0] + 24 + len(text) * 6.4


def _rack(drawing: Drawing, design: Blueprint, rack: Rack, x: float, y: float) -> None:
    units = design.pod.racks.rack_units
    drawing.words(x, y - 26, rack.name, 14)
    facts = [rack.short_power, f"{rack.used_units} of {units} U"]
    drawing.words(x, y - 12, ", ".join(filter(None, facts)), 10, "soft")
    # How much of what the rack may draw is drawn.
    drawing.box("sunk", x, y - BAR - 2, WIDTH, BAR - 2)
    if rack.power_w:
        drawing.box("full", x, y - BAR - 2, WIDTH * min(rack.power_w / rack.limit_w, 1), BAR - 2)
    drawing.box("frame", x, y, WIDTH, units * UNIT)
    for unit, device, top in _stacked(rack, y, units):
        height = device.rack_units * UNIT
        drawing.box(_class(device), x + 2, top + 1, WIDTH - 4, height - 2, f"{device.name}, {device.model}, U{unit}")
        if device.kind != CABLE_MANAGER:
            drawing.words(x + 8, top + height / 2 + 4, device.name, 10)
            drawing.words(x - 4, top + height / 2 + 3, str(unit), 9, "soft", "end")


def _stacked(rack: Rack, y: float, units: int) -> Iterator[tuple[int, Device, float]]:
    for unit, device in rack.devices:
        yield unit, device, y + (units - unit - device.rack_units + 1) * UNIT


def _class(device: Device) -> str:
    if device.kind in ("node", "manager"):
        return "node"
    if device.kind == CABLE_MANAGER:
        return "sunk"
    if device.kind in PARTS:
        return {NVLINK_SWITCH: "nvlink", POWER_SHELF: "shelf"}[device.kind]
    if device.kind == "storage" or device.kind.startswith("storage "):
        return "storage"
    if device.kind.startswith("management"):
        return "management"
    return device.kind.removeprefix("compute ")
