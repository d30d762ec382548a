"""The racks drawn from the front, row by row, each device as high as it is."""

from __future__ import annotations

from collections.abc import Iterator

from podwright.design.exports.svg import Drawing
from podwright.design.plan import Design
from podwright.design.racks import Device, Rack

UNIT = 12.0
WIDTH = 112.0
GAP = 24.0
LEFT, TOP = 24.0, 72.0
HEAD = 40.0


def racks_svg(design: Design, tokens: str) -> str:
    """Return the elevations of all racks."""
    drawing = Drawing(f"{design.pod.name}: racks", tokens)
    floor = design.floor
    drawing.words(LEFT, 32, f"{design.pod.name}: {len(floor.racks)} racks", 20)
    limit = design.pod.racks.limit_w / 1000
    power = f"{floor.power_text} in all, at most {limit:g} kW a rack"
    if floor.unknown_power:
        power += f"; power not known of {', '.join(floor.unknown_power)}"
    drawing.words(LEFT, 52, power, 12, "soft")
    height = design.pod.racks.rack_units * UNIT
    rows = sorted({rack.row for rack in floor.racks})
    for rack in floor.racks:
        x = LEFT + rack.column * (WIDTH + GAP)
        y = TOP + rows.index(rack.row) * (height + HEAD + 40)
        _rack(drawing, rack, x, y + HEAD, design.pod.racks.rack_units)
    return drawing.text()


def rack_svg(design: Design, rack: Rack, tokens: str) -> str:
    """Return the elevation of one rack."""
    drawing = Drawing(f"{design.pod.name}: rack {rack.name}", tokens)
    _rack(drawing, rack, LEFT, HEAD, design.pod.racks.rack_units)
    return drawing.text()


def _rack(drawing: Drawing, rack: Rack, x: float, y: float, units: int) -> None:
    drawing.words(x, y - 20, rack.name, 14)
    power = f"{rack.power_w / 1000:.1f} kW, " if rack.power_w else ""
    drawing.words(x, y - 6, f"{power}{rack.used_units} of {units} U", 10, "soft")
    drawing.box("frame", x, y, WIDTH, units * UNIT)
    for unit, device, top in _stacked(rack, y, units):
        height = device.rack_units * UNIT
        drawing.box(_class(device), x + 2, top, WIDTH - 4, height - 1, f"{device.name}, {device.model}, U{unit}")
        drawing.words(x + 6, top + height / 2 + 3, device.name, 9)
        drawing.words(x - 3, top + height / 2 + 3, str(unit), 7, "soft", "end")


def _stacked(rack: Rack, y: float, units: int) -> Iterator[tuple[int, Device, float]]:
    for unit, device in rack.devices:
        yield unit, device, y + (units - unit - device.rack_units + 1) * UNIT


def _class(device: Device) -> str:
    if device.kind in ("node", "manager"):
        return "node"
    if device.kind == "storage" or device.kind.startswith("storage "):
        return "storage"
    if device.kind.startswith("management"):
        return "management"
    return device.kind.removeprefix("compute ")
