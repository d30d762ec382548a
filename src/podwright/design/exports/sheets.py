"""Sheets for the people who build it: racks, switches and bundles, a page or more for each, to print and tick off.

Paper gets loose: every page names the pod and its subject, in the head of a table, which browsers repeat on each page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from podwright.design.exports.rack_drawing import rack_svg
from podwright.design.exports.tables import bundle_of
from podwright.design.floor import Rack, feed_names
from podwright.design.lengths import Laid
from podwright.design.plan import Blueprint
from podwright.spec.hostlist import natural_key

STYLE = """\
body { font: var(--text-s)/1.4 var(--font-text); color: var(--ink); background: var(--paper); margin: var(--space-6); }
h1 { font-size: var(--text-xl); font-weight: 600; margin: 0 0 var(--space-1); }
h2 { font-size: var(--text-l); font-weight: 600; margin: 0 0 var(--space-1); }
p { color: var(--ink-soft); margin: 0 0 var(--space-4); }
nav { columns: 8; margin-bottom: var(--space-8); }
nav a { display: block; color: var(--accent); }
section { margin: 0 0 var(--space-12); break-before: page; overflow: hidden; }
.elevation { float: right; margin-left: var(--space-6); }
.elevation svg { display: block; height: 460px; width: auto; }
table.cables { clear: both; margin-top: var(--space-6); width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid var(--line-strong); padding: 2px var(--space-2); }
th.where { border-bottom: 0; color: var(--ink-soft); font-weight: 400; padding-left: 0; }
td { border-bottom: 1px solid var(--line); padding: 2px var(--space-2); white-space: nowrap; }
td.tick { width: 16px; }
td.tick::before { content: ""; display: inline-block; width: 9px; height: 9px; border: 1px solid var(--line-strong); }
@page { margin: 12mm; }
@media print {
  nav, body > h1, body > p { display: none; }
  body { margin: 0; }
  section { overflow: visible; }
  tr { break-inside: avoid; }
}
"""
CABLE_HEAD = ("cable", "port", "far end", "bundle", "length", "made of")


class _End(NamedTuple):
    """One end of a cable as a row of a sheet, and what rows are sorted by: fabric, port, label."""

    order: tuple[str, int, str]
    cells: tuple[str, ...]


def rack_sheets(design: Blueprint, tokens: str) -> str:
    """Return a page for each rack: its elevation, what stands in it, and the cables of devices and power feeds."""
    racks = design.floor.racks
    ends = _ends(design)
    parts = []
    for rack in racks:
        rows: list[_End] = []
        for _, device in rack.devices:
            if not device.is_switch:
                rows += ends[device.name]
        for feed in feed_names(rack.name):
            rows += ends[feed]
        parts.append(_rack(design, rack, [end.cells for end in rows], tokens))
    return _page(design, "racks", f"{len(racks)} racks", [rack.name for rack in racks], parts, tokens)


def switch_sheets(design: Blueprint, tokens: str) -> str:
    """Return a page for each switch: every port with the cable in it."""
    ends = _ends(design)
    names = [switch.name for switch in design.switches]
    parts = []
    for name in names:
        rows = sorted(ends[name])
        parts.append(_section(design, name, _place(design, name), _cables(design, name, [end.cells for end in rows])))
    return _page(design, "switches", f"{len(names)} switches", names, parts, tokens)


def bundle_sheets(design: Blueprint, tokens: str) -> str:
    """Return a page for each pair of racks: the cables that run between them, which are laid together."""
    bundles: dict[str, list[Laid]] = defaultdict(list)
    for laid in design.laid:
        bundles[bundle_of(design.floor, laid.cable)].append(laid)
    ordered = sorted((name for name in bundles if name), key=lambda name: (-len(bundles[name]), natural_key(name)))
    parts = []
    for name in ordered:
        rows = [_bundle_row(design, laid) for laid in bundles[name]]
        head = ("cable", "from", "to", "length", "made of")
        table = _table(f"{design.pod.name}, bundle {name}", head, rows, "cables")
        inside = "inside the rack" if "-" not in name else "between two racks"
        parts.append(_section(design, f"bundle {name}", f"{len(rows)} cables {inside}", table, name))
    return _page(design, "bundles", f"{len(ordered)} bundles, the largest first", ordered, parts, tokens)


def _bundle_row(design: Blueprint, laid: Laid) -> tuple[str, ...]:
    spots = [design.floor.spot(device) for device in (laid.cable.a, laid.cable.b)]
    return design.sockets.label(laid.cable), *spots, laid.metres, laid.medium


def _ends(design: Blueprint) -> dict[str, list[_End]]:
    """Return the ends of all cables by the device they are plugged into, in the order of its ports."""
    ends: dict[str, list[_End]] = defaultdict(list)
    for laid in design.laid:
        cable = laid.cable
        label, bundle = design.sockets.label(cable), bundle_of(design.floor, cable)
        a, b = design.sockets.ends(cable)
        for near, number, far in ((a, cable.a_port, b), (b, cable.b_port, a)):
            port = near.panel if near.name == near.panel else f"{near.panel} ({near.name})"
            cells = (label, port, design.floor.spot(far.device), bundle, laid.metres, laid.medium)
            ends[near.device].append(_End((cable.fabric, number, label), cells))
    return ends


def _place(design: Blueprint, device: str) -> str:
    rack, unit = design.floor.rack_and_unit(device)
    return f"rack {rack}, unit {unit}" if rack else ""


def _rack(design: Blueprint, rack: Rack, cables: Sequence[tuple[str, ...]], tokens: str) -> str:
    rows = []
    for unit, device in reversed(rack.devices):
        power = "" if device.power_w is None else f"{device.power_w:,.0f} W"
        rows.append((f"U{unit}", device.name, device.model, device.kind, power))
    where = f"{design.pod.name}, rack {rack.name}"
    drawing = f'<div class="elevation">{rack_svg(design, rack, tokens)}</div>'
    body = drawing + _table(where, ("unit", "device", "model", "what", "power"), rows)
    if cables:
        body += _table(where, CABLE_HEAD, cables, "cables")
    used = f"{rack.used_units} of {design.pod.racks.rack_units} units, {rack.facts}"
    return _section(design, f"rack {rack.name}", used, body, rack.name)


def _cables(design: Blueprint, name: str, rows: Sequence[tuple[str, ...]]) -> str:
    where = ", ".join(text for text in (design.pod.name, name, _place(design, name)) if text)
    return _table(where, CABLE_HEAD, rows, "cables")


def _section(design: Blueprint, title: str, note: str, body: str, anchor: str = "") -> str:
    head = f"<h2>{escape(design.pod.name)}: {escape(title)}</h2><p>{escape(note)}</p>"
    return f'<section id="{escape(anchor or title)}">{head}{body}</section>'


def _table(where: str, head: Sequence[str], rows: Iterable[Iterable[str]], kind: str = "devices") -> str:
    """Return a table whose head begins with where its page belongs."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join(_table_row(row) for row in rows)
    first = f'<tr><th class="where" colspan="{len(head) + 1}">{escape(where)}</th></tr>'
    return f'<table class="{kind}"><thead>{first}<tr><th></th>{top}</tr></thead>\n<tbody>{body}</tbody></table>'


def _table_row(row: Iterable[str]) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
    return f'<tr><td class="tick"></td>{cells}</tr>'


def _page(design: Blueprint, what: str, note: str, names: Iterable[str], parts: Iterable[str], tokens: str) -> str:
    title = f"{design.pod.name}: {what}"
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
