"""A fabric drawn by tier and plane.

Rows are scalable units and columns are planes, so that a leaf is a cell where the two meet; spines stand above their
plane, cores above all. Cables are drawn as bands with their number: two thousand lines would be a grey surface.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from podwright.design.exports.svg import Drawing
from podwright.design.plan import Blueprint
from podwright.design.racks import model_name
from podwright.design.wiring import Switch
from podwright.spec.hostlist import fold_hosts

LEFT, TOP = 24.0, 72.0
HOSTS_WIDTH = 208.0
CELL = (104.0, 24.0)
GAP = 16.0
BAND = 72.0
SMALL = (48.0, 20.0)
NARROWEST = 24.0
PER_ROW = 2
# Leaves of a layout without rails in a row.
PLAIN_ROW = 10
# What a letter of words in a box is taken to be wide, of their height.
LETTER = 0.6

Span = tuple[float, float]


def fabric_svg(design: Blueprint, fabric: str, tokens: str) -> str:
    """Return the drawing of one fabric."""
    return _Picture(design, fabric, tokens).text()


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where things stand across the page: units at the left, then a column for each plane; `plain_leaves` have none."""

    columns: int
    plain_leaves: int = 0

    def x(self, column: int) -> float:
        """Return where a column begins; columns count from 0."""
        return LEFT + HOSTS_WIDTH + GAP + column * (CELL[0] + GAP)

    @property
    def span(self) -> Span:
        """Return where the columns begin and end."""
        if self.plain_leaves:
            return self.x(0), max(self.plain_right, self.x(PER_ROW) - GAP)
        return self.x(0), self.x(self.columns) - GAP

    @property
    def plain_right(self) -> float:
        """Return where a row of leaves without planes ends."""
        return LEFT + min(self.plain_leaves, PLAIN_ROW) * (CELL[0] + 4) - 4

    def band_tops(self, are_own: bool) -> dict[int, Span]:
        """Return where the band of each column ends above: at spines of its own, or at its share of the whole span."""
        left, right = self.span
        step = width = (right - left) / self.columns
        if are_own:
            step, width = CELL[0] + GAP, CELL[0]
        return {column: (left + column * step, left + column * step + width) for column in range(self.columns)}


class _Picture:
    """Places the tiers from the top down; the columns decide the width."""

    def __init__(self, design: Blueprint, fabric: str, tokens: str) -> None:
        self.design, self.fabric = design, fabric
        self.wired = design.wired[fabric]
        self.drawing = Drawing(f"{design.pod.name}: {fabric} fabric", tokens)
        self.tiers: dict[str, list[Switch]] = defaultdict(list)
        for switch in self.wired.switches:
            self.tiers[switch.tier].append(switch)
        leaves = self.tiers["leaf"]
        self.columns = max((switch.plane for switch in leaves), default=1)
        self.is_plain = not any(switch.unit for switch in leaves)
        self.grid = _Grid(self.columns, len(leaves) if self.is_plain else 0)
        self.pairs = Counter((cable.a, cable.b) for cable in self.wired.cables)
        self.cables = Counter(cable.kind for cable in self.wired.cables)
        self.spine_x: dict[int, Span] = {}
        self.core_x: dict[int, Span] = {}
        unit_of = {switch.name: switch.unit for switch in self.tiers["leaf"]}
        self.hosts: dict[int, list[str]] = defaultdict(list)
        for cable in self.wired.cables:
            if cable.kind == "node_leaf" and cable.a_port == 1:
                self.hosts[unit_of[cable.b]].append(cable.a)

    def text(self) -> str:
        self._head()
        y = TOP
        if self._on_spines:
            y = self._storage(y, "spines") + 12
        if self.tiers["core"]:
            y = self._cores(y)
        spines = self._spines(y) if self.tiers["spine"] else y
        y = self._leaves(spines)
        if self.cables["storage"] and not self._on_spines:
            y = self._storage(y + 12, "leaves") + 4
        self.drawing.words(LEFT, y + 20, _foot(self.cables, len(self.design.requirements.hosts)), 12)
        drawn = {*(tier for tier in self.tiers if self.tiers[tier]), *self.cables}
        _legend(self.drawing, drawn, self.is_plain, y + 36)
        return self.drawing.text()

    @property
    def _on_spines(self) -> bool:
        size = self.design.storage
        return self.fabric == "storage" and size is not None and size.on_spines

    def _storage(self, y: float, where: str) -> float:
        """Draw the storage systems, above the spines or below the leaves, wherever they are attached."""
        left, right = self.grid.span
        names = list(dict.fromkeys(cable.a for cable in self.wired.cables if cable.kind == "storage"))
        self.drawing.words(LEFT, y + 16, "storage", 12)
        self.drawing.box("storage", left, y, right - left, CELL[1], ", ".join(names))
        text = f"{_from_to(names)}: {self.cables['storage']:,} cables to {where}"
        self.drawing.words((left + right) / 2, y + 16, text, 11, "text", "middle")
        return y + CELL[1]

    def _head(self) -> None:
        hosts = len(self.design.requirements.hosts)
        self.drawing.words(LEFT, 32, f"{self.design.pod.name}: {self.fabric} fabric", 20)
        counts = [f"{len(self.tiers[tier])} {tier}" for tier in ("leaf", "spine", "core") if self.tiers[tier]]
        line = f"{hosts:,} nodes; switches: {', '.join(counts)}; {len(self.wired.cables):,} cables"
        model = self.design.requirements.switch_of(self.fabric)
        if model is not None and model.speed_gbps:
            line += f" of {model.speed_gbps:g} Gb/s; {model_name(model)}"
        self.drawing.words(LEFT, 52, line, 12, "soft")

    def _cores(self, y: float) -> float:
        groups: dict[int, list[Switch]] = defaultdict(list)
        for switch in self.tiers["core"]:
            groups[switch.plane].append(switch)
        left, right = self.grid.span
        width = (right - left - GAP * (len(groups) - 1)) / len(groups)
        self.drawing.words(LEFT, y + 16, "core", 12)
        self.drawing.words(LEFT, y + 32, f"{len(self.tiers['core'])} switches in {len(groups)} groups", 11, "soft")
        for number, (group, switches) in enumerate(sorted(groups.items())):
            x = left + number * (width + GAP)
            self.core_x[group] = (x, x + width)
            self.drawing.box("core", x, y, width, 40, ", ".join(switch.name for switch in switches))
            title = f"group {group}"
            if len(title) * 12 * LETTER > width:
                title = str(group)
            self.drawing.words(x + width / 2, y + 17, title, 12, "text", "middle")
            names = _fitting([switch.name for switch in switches], width, 11)
            self.drawing.words(x + width / 2, y + 32, names, 11, "soft", "middle")
        self.core_y = y + 40
        return y + 40 + BAND

    def _spines(self, y: float) -> float:
        """Draw spines above their plane, or in one row where all leaves share them, and return the lower edge."""
        spines = self.tiers["spine"]
        self.drawing.words(LEFT, y + 16, "spine", 12)
        count = "1 switch" if len(spines) == 1 else f"{len(spines)} switches"
        self.drawing.words(LEFT, y + 32, count, 11, "soft")
        size = self.design.compute if self.fabric == "compute" else None
        if size is not None and size.groups:
            low = y
            for column in range(self.columns):
                own = [s for s in spines if (s.plane - 1) // size.groups == column]
                low = max(low, self._spine_column(column, own, y))
            self._core_bands(y)
            return low
        planes: dict[int, list[Switch]] = defaultdict(list)
        for switch in spines:
            planes[switch.plane].append(switch)
        if len(planes) == 1:
            return self._shared_spines(spines, y)
        # Planes, and groups of a storage fabric, share no switch.
        word = "plane" if self.fabric == "compute" else "group"
        for number, own in sorted(planes.items()):
            self.drawing.words(self.grid.span[0] - GAP, y + 14, f"{word} {number}", 11, "soft", "end")
            y = self._rows_of_spines(own, y) + GAP
        return y - GAP

    def _shared_spines(self, spines: Sequence[Switch], y: float) -> float:
        """Draw spines that all leaves share: in one row over the columns, or in several where that is too narrow."""
        left, right = self.grid.span
        width = (right - left + 4) / len(spines) - 4
        longest = max(len(_spine_name(switch)) for switch in spines)
        if width >= max(NARROWEST, longest * 10 * LETTER):
            for number, switch in enumerate(spines):
                x = left + number * (width + 4)
                self.spine_x[switch.number] = (x, x + width)
                self._small("spine", x, y, switch, width)
            return y + SMALL[1]
        return self._rows_of_spines(spines, y)

    def _rows_of_spines(self, spines: Sequence[Switch], y: float) -> float:
        left, right = self.grid.span
        fits = max(int((right - left + 4) // (SMALL[0] + 4)), 1)
        per_row = -(-len(spines) // -(-len(spines) // fits))
        for number, switch in enumerate(spines):
            row, column = divmod(number, per_row)
            self._small("spine", left + column * (SMALL[0] + 4), y + row * (SMALL[1] + 4), switch)
        return y + -(-len(spines) // per_row) * (SMALL[1] + 4)

    def _spine_column(self, column: int, spines: Sequence[Switch], y: float) -> float:
        x = self.grid.x(column)
        rows = -(-len(spines) // PER_ROW)
        height = rows * (SMALL[1] + 4) + 4
        self.drawing.box("sunk", x - 2, y, CELL[0] + 4, height)
        for number, switch in enumerate(spines):
            row, index = divmod(number, PER_ROW)
            self._small("spine", x + 2 + index * (SMALL[0] + 4), y + 4 + row * (SMALL[1] + 4), switch)
        return y + height

    def _small(self, kind: str, x: float, y: float, switch: Switch, width: float = SMALL[0]) -> None:
        self.drawing.box(kind, x, y, width, SMALL[1], switch.name)
        self.drawing.words(x + width / 2, y + 14, _spine_name(switch), 10, "text", "middle")

    def _core_bands(self, y: float) -> None:
        """Draw one band from each plane to each group of cores."""
        group_of = {switch.name: switch.plane for switch in self.tiers["core"]}
        groups = 1
        if self.design.compute:
            groups = self.design.compute.groups
        column_of = {switch.name: (switch.plane - 1) // groups for switch in self.tiers["spine"]}
        counts: Counter[tuple[int, int]] = Counter()
        for (a, b), number in self.pairs.items():
            if b in group_of:
                counts[(column_of[a], group_of[b])] += number
        self._bands("band-spine", counts, self.core_x, (self.core_y, y))
        self.drawing.words(LEFT, y - BAND / 2 + 4, f"{counts.total():,} cables", 12)

    def _bands(
        self, kind: str, counts: Mapping[tuple[int, int], int], tops: Mapping[int, Span], y: tuple[float, float]
    ) -> None:
        """Draw a band for each (column, top), as wide at both ends as its share of the cables there."""
        below: Counter[int] = Counter()
        above: Counter[int] = Counter()
        for (column, top), number in counts.items():
            below[column] += number
            above[top] += number
        lows = {column: self.grid.x(column) for column in below}
        highs = {top: tops[top][0] for top in above}
        for (column, top), number in sorted(counts.items()):
            low, high = lows[column], highs[top]
            lows[column] += CELL[0] * number / below[column]
            highs[top] += (tops[top][1] - tops[top][0]) * number / above[top]
            gap = min(0.5, (lows[column] - low) / 4)
            self.drawing.band(kind, (high + gap, highs[top] - gap), (low + gap, lows[column] - gap), y)

    def _leaves(self, y: float) -> float:
        """Draw the cells of all units, and the bands above each column."""
        first = y + BAND
        by_cell = {(switch.unit, switch.plane): switch for switch in self.tiers["leaf"]}
        if self.is_plain:
            return self._classic(y, first)
        if self.tiers["spine"]:
            self._leaf_bands(y + 2, first - 18)
            self._leaf_links(y)
        for column in range(self.columns):
            middle = self.grid.x(column) + CELL[0] / 2
            self.drawing.words(middle, first - 6, _column_name(self.design, self.fabric, column), 11, "soft", "middle")
        for number in range(1, max(switch.unit for switch in self.tiers["leaf"]) + 1):
            top_y = first + (number - 1) * (CELL[1] + 4)
            hosts = self.hosts[number]
            self.drawing.box("node", LEFT, top_y, HOSTS_WIDTH, CELL[1], fold_hosts(hosts))
            label = f"unit {number}: {_short(fold_hosts(hosts))}"
            self.drawing.words(LEFT + 8, top_y + 16, label, 11)
            for column in range(self.columns):
                switch = by_cell.get((number, column + 1))
                if switch is not None:
                    self._cell(self.grid.x(column), top_y, switch)
        return first + max(switch.unit for switch in self.tiers["leaf"]) * (CELL[1] + 4)

    def _leaf_links(self, y: float) -> None:
        """Say how many cables the bands stand for."""
        self.drawing.words(LEFT, y + BAND / 2 - 4, f"{self.cables['leaf_spine']:,} cables", 12)
        links = max(number for (_, above), number in self.pairs.items() if above.startswith(("spine", "st-spine")))
        self.drawing.words(LEFT, y + BAND / 2 + 12, f"{links} from a leaf to each of its spines", 11, "soft")

    def _leaf_bands(self, top: float, bottom: float) -> None:
        """Draw the bands above the leaves: to each spine where they stand in one row, else to all of them at once."""
        column_of = {switch.name: switch.plane - 1 for switch in self.tiers["leaf"]}
        number_of = {switch.name: switch.number for switch in self.tiers["spine"]}
        counts: Counter[tuple[int, int]] = Counter()
        for (a, b), number in self.pairs.items():
            if a in column_of:
                above = number_of[b] if self.spine_x else column_of[a]
                counts[(column_of[a], above)] += number
        tops = self.spine_x or self.grid.band_tops(bool(self.tiers["core"]))
        self._bands("band-leaf", counts, tops, (top, bottom))
        if not self.spine_x:
            for column in range(self.columns):
                label = f"{counts[(column, column)]:,} cables"
                self.drawing.words(self.grid.x(column) + CELL[0] / 2, bottom - 10, label, 10, "soft", "middle")

    def _classic(self, top: float, y: float) -> float:
        """Draw the leaves of a layout without rails: a plain list, and all cables above them as one band."""
        left, right = self.grid.span
        if self.tiers["spine"]:
            self.drawing.band("band-leaf", (left, right), (LEFT, self.grid.plain_right), (top + 2, y - 4))
            each = sorted(number for (_, above), number in self.pairs.items() if above.startswith("spine"))
            text = f"{self.cables['leaf_spine']:,} cables, {_span(each)} from a leaf to each spine"
            self.drawing.words((left + right) / 2, (top + y) / 2 + 4, text, 12, "text", "middle")
        for number, switch in enumerate(self.tiers["leaf"]):
            row, column = divmod(number, PLAIN_ROW)
            self._cell(LEFT + column * (CELL[0] + 4), y + row * (CELL[1] + 4), switch)
        return y + -(-len(self.tiers["leaf"]) // PLAIN_ROW) * (CELL[1] + 4)

    def _cell(self, x: float, y: float, switch: Switch) -> None:
        self.drawing.box("leaf", x, y, *CELL, switch.name)
        self.drawing.words(x + CELL[0] / 2, y + 16, switch.name, 11, "text", "middle")


LEGEND = {
    "node": "nodes of a unit",
    "leaf": "leaf switch",
    "spine": "spine switch",
    "core": "core switches",
    "storage": "storage",
}


def _foot(cables: Mapping[str, int], hosts: int) -> str:
    """Return how many cables the nodes have."""
    nodes, managers = cables["node_leaf"], cables["fabric_manager"]
    line = f"{nodes:,} cables from nodes to leaves, {nodes // max(hosts, 1)} from each node"
    return f"{line}; {managers:,} from fabric managers" if managers else line


def _legend(drawing: Drawing, drawn: Container[str], is_plain: bool, y: float) -> None:
    """Draw what boxes and bands mean."""
    x = LEFT
    kinds = [kind for kind in ("leaf", "spine", "core", "storage") if kind in drawn]
    for kind in kinds if is_plain else ["node", *kinds]:
        drawing.box(kind, x, y, 16, 12)
        drawing.words(x + 22, y + 10, LEGEND[kind], 11, "soft")
        x += 36 + len(LEGEND[kind]) * 6.4
    if not is_plain:
        drawing.words(x, y + 10, "a band is as wide as its share of the cables", 11, "soft")


def _column_name(design: Blueprint, fabric: str, column: int) -> str:
    """Return what a column of leaves is called; the planes of a rail stand side by side."""
    if fabric != "compute":
        return f"port {column + 1}"
    parameters = design.requirements.compute
    if parameters is None or parameters.planes == 1:
        return f"rail {column + 1}"
    rail, plane = divmod(column, parameters.planes)
    return f"rail {rail + 1}, plane {plane + 1}"


def _spine_name(switch: Switch) -> str:
    """Return what a small box calls a spine: its tier stands beside the row."""
    return switch.name.removeprefix("st-").removeprefix("spine-")


def _from_to(names: Sequence[str]) -> str:
    if len(names) <= 1:
        return "".join(names)
    return f"{names[0]} to {names[-1]}"


def _fitting(names: Sequence[str], width: float, size: int) -> str:
    """Return the first and the last name, without what they have in common where a box is too narrow for more."""
    text = _from_to(names)
    if len(text) * size * LETTER <= width:
        return text
    short = _from_to([name.rpartition("-")[2] for name in names])
    if len(short) * size * LETTER <= width:
        return short
    return ""


def _span(numbers: Sequence[int]) -> str:
    """Return `2`, or `2 to 3`."""
    return _from_to([str(number) for number in sorted(set(numbers))])


def _short(text: str) -> str:
    if len(text) <= 24:
        return text
    return text[:21] + "..."
