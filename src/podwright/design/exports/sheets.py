"""Sheets for the people who build it: one page for each rack and one for each switch, to be printed and ticked off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from html import escape

from podwright.design.exports.port_names import PortNames
from podwright.design.exports.rack_drawing import rack_svg
from podwright.design.lengths import Laid
from podwright.design.plan import Design
from podwright.design.racks import Rack
from podwright.spec.hostlist import natural_key

STYLE = """\
body { font: var(--text-s)/1.4 var(--font-text); color: var(--ink); background: var(--paper); margin: var(--space-6); }
h1 { font-size: var(--text-xl); font-weight: 600; margin: 0 0 var(--space-1); }
h2 { font-size: var(--text-l); font-weight: 600; margin: 0 0 var(--space-1); }
p { color: var(--ink-soft); margin: 0 0 var(--space-4); }
nav { columns: 8; margin-bottom: var(--space-8); }
nav a { display: block; color: var(--accent); }
section { margin: 0 0 var(--space-12); break-after: page; display: flex; gap: var(--space-6); flex-wrap: wrap; }
section > div { flex: 1 1 480px; }
section > div.elevation { flex: 0 0 auto; }
table + h3 { font-size: var(--text-m); font-weight: 600; margin: var(--space-6) 0 var(--space-1); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid var(--line-strong); padding: 2px var(--space-2); }
td { border-bottom: 1px solid var(--line); padding: 2px var(--space-2); }
td.tick { width: 16px; }
td.tick::before { content: ""; display: inline-block; width: 9px; height: 9px; border: 1px solid var(--line-strong); }
@media print { nav { display: none; } body { margin: 0; } tr { break-inside: avoid; } }
"""


def rack_sheets(design: Design, tokens: str) -> str:
    """Return a page for each rack: its elevation, and what stands in it."""
    title = f"{design.pod.name}: racks"
    cables = _cables_of_racks(design)
    parts = [_rack(design, rack, cables.get(rack.name, []), tokens) for rack in design.floor.racks]
    return _page(title, f"{len(design.floor.racks)} racks", [rack.name for rack in design.floor.racks], parts, tokens)


def switch_sheets(design: Design, tokens: str) -> str:
    """Return a page for each switch: every port with what it leads to."""
    ports: dict[str, list[tuple[str, Laid, str, str]]] = defaultdict(list)
    names = PortNames(design)
    for laid in design.laid:
        cable = laid.cable
        a, b = names.ends(cable)
        ports[cable.b].append((b, laid, cable.a, a))
        ports[cable.a].append((a, laid, cable.b, b))
    switches = [switch.name for switch in design.switches]
    parts = [_switch(design, name, sorted(ports[name], key=lambda row: natural_key(row[0]))) for name in switches]
    return _page(f"{design.pod.name}: switches", f"{len(switches)} switches", switches, parts, tokens)


def _cables_of_racks(design: Design) -> dict[str, list[tuple[str, ...]]]:
    """Return the cables of what is no switch by its rack; those of switches are on the switches' own sheets."""
    names, places = PortNames(design), design.floor.places
    by_rack: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for cable, length, medium in design.laid:
        here, there = places.get(cable.a), places.get(cable.b)
        if here is not None and there is not None and not names.is_switch(cable.a):
            a, b = names.ends(cable)
            far = f"{there.rack} U{there.unit}"
            by_rack[here.rack].append((cable.a, a, cable.b, b, far, f"{length:g} m", medium))
    for rows in by_rack.values():
        rows.sort(key=lambda row: (natural_key(row[0]), natural_key(row[1])))
    return by_rack


def _rack(design: Design, rack: Rack, cables: list[tuple[str, ...]], tokens: str) -> str:
    rows = []
    for unit, device in reversed(rack.devices):
        power = "" if device.power_w is None else f"{device.power_w:,.0f} W"
        rows.append((f"U{unit}", device.name, device.model, device.kind, power))
    used = f"{rack.used_units} of {design.pod.racks.rack_units} units, {rack.power_w / 1000:.1f} kW known"
    table = _table(("unit", "device", "model", "what", "power"), rows)
    if cables:
        head = ("device", "port", "to", "its port", "where", "length", "made of")
        table += f"<h3>Cables</h3>{_table(head, cables)}"
    drawing = f'<div class="elevation">{rack_svg(design, rack, tokens)}</div>'
    return f'<section id="{escape(rack.name)}">{drawing}' + _block(f"Rack {rack.name}", used, table)


def _switch(design: Design, name: str, ports: Iterable[tuple[str, Laid, str, str]]) -> str:
    places = design.floor.places
    where = ""
    if name in places:
        where = f"rack {places[name].rack}, unit {places[name].unit}"
    rows = []
    for port, laid, device, far in ports:
        end, length = "", ""
        if device in places:
            end = f"{places[device].rack} U{places[device].unit}"
        if laid.length_m is not None:
            length = f"{laid.length_m:g} m"
        rows.append((port, device, far, end, length, laid.medium))
    table = _table(("port", "to", "its port", "where", "length", "made of"), rows)
    return f'<section id="{escape(name)}">' + _block(name, where, table)


def _block(title: str, note: str, table: str) -> str:
    return f"<div><h2>{escape(title)}</h2><p>{escape(note)}</p>{table}</div></section>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join(_table_row(row) for row in rows)
    return f"<table><thead><tr><th></th>{top}</tr></thead>\n<tbody>{body}</tbody></table>"


def _table_row(row: Iterable[str]) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
    return f'<tr><td class="tick"></td>{cells}</tr>'


def _page(title: str, note: str, names: Iterable[str], parts: Iterable[str], tokens: str) -> str:
    links = "".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{tokens}{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(note)}</p>
<nav aria-label="Sheets">{links}</nav>
{body}
</body>
</html>
"""
