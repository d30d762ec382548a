"""A fabric drawn by tier and plane.

Rows are scalable units and columns are planes, so that a leaf is a cell where the two meet; spines stand above their
plane, cores above all. Cables are drawn as bands with their number: two thousand lines would be a grey surface.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from podwright.design.exports.svg import Drawing
from podwright.design.plan import Design
from podwright.design.wiring import Switch
from podwright.spec.hostlist import fold_hosts

LEFT, TOP = 24.0, 72.0
HOSTS_WIDTH = 208.0
CELL = (104.0, 24.0)
GAP = 16.0
BAND = 72.0
SMALL = (48.0, 20.0)
PER_ROW = 2


def fabric_svg(design: Design, fabric: str, tokens: str) -> str:
    """Gives the drawing of one fabric."""
    return _Picture(design, fabric, tokens).text()


class _Picture:
    """Places the tiers from the top down; the columns decide the width."""

    def __init__(self, design: Design, fabric: str, tokens: str) -> None:
        self.design, self.fabric = design, fabric
        self.wired = design.wired[fabric]
        self.drawing = Drawing(f"{design.pod.name}: {fabric} fabric", tokens)
        self.tiers: dict[str, list[Switch]] = defaultdict(list)
        for switch in self.wired.switches:
            self.tiers[switch.tier].append(switch)
        self.columns = max((switch.plane for switch in self.tiers["leaf"]), default=1)
        self.pairs = Counter((cable.a, cable.b) for cable in self.wired.cables)
        self.cables = Counter(cable.kind for cable in self.wired.cables)
        unit_of = {switch.name: switch.unit for switch in self.tiers["leaf"]}
        self.hosts: dict[int, list[str]] = defaultdict(list)
        for cable in self.wired.cables:
            if cable.kind == "node_leaf" and cable.a_port == 1:
                self.hosts[unit_of[cable.b]].append(cable.a)

    def text(self) -> str:
        self._head()
        y = TOP
        if self.tiers["core"]:
            y = self._cores(y)
        spines = self._spines(y)
        y = self._leaves(spines)
        self._foot(y)
        return self.drawing.text()

    def column_x(self, column: int) -> float:
        """Where a column begins; columns count from 0."""
        return LEFT + HOSTS_WIDTH + GAP + column * (CELL[0] + GAP)

    @property
    def span(self) -> tuple[float, float]:
        return self.column_x(0), self.column_x(self.columns) - GAP

    def _head(self) -> None:
        hosts = len(self.design.asked.hosts)
        self.drawing.words(LEFT, 32, f"{self.design.pod.name}: {self.fabric} fabric", 20)
        told = ", ".join(f"{len(self.tiers[tier])} {tier}" for tier in ("leaf", "spine", "core") if self.tiers[tier])
        self.drawing.words(LEFT, 52, f"{hosts} nodes; switches: {told}; {len(self.wired.cables):,} cables", 12, "soft")

    def _cores(self, y: float) -> float:
        groups: dict[int, list[Switch]] = defaultdict(list)
        for switch in self.tiers["core"]:
            groups[switch.plane].append(switch)
        left, right = self.span
        width = (right - left - GAP * (len(groups) - 1)) / len(groups)
        self.drawing.words(LEFT, y + 16, "core", 12)
        self.drawing.words(LEFT, y + 32, f"{len(self.tiers['core'])} switches in {len(groups)} groups", 11, "soft")
        self.core_x: dict[int, tuple[float, float]] = {}
        for number, (group, switches) in enumerate(sorted(groups.items())):
            x = left + number * (width + GAP)
            self.core_x[group] = (x, x + width)
            self.drawing.box("core", x, y, width, 40, ", ".join(switch.name for switch in switches))
            self.drawing.words(x + width / 2, y + 17, f"group {group}", 12, "text", "middle")
            self.drawing.words(x + width / 2, y + 32, f"{len(switches)} switches", 11, "soft", "middle")
        self.core_y = y + 40
        return y + 40 + BAND

    def _spines(self, y: float) -> float:
        """Draws spines above their plane, or in one row where all leaves share them; gives the lower edge."""
        spines = self.tiers["spine"]
        self.drawing.words(LEFT, y + 16, "spine", 12)
        self.drawing.words(LEFT, y + 32, f"{len(spines)} switches", 11, "soft")
        size = self.design.compute if self.fabric == "compute" else None
        if size is not None and size.groups:
            self.spine_box: list[tuple[float, float]] = []
            low = y
            for column in range(self.columns):
                own = [s for s in spines if (s.plane - 1) // size.groups == column]
                low = max(low, self._spine_column(column, own, y))
            self._core_bands(y)
            return low
        left, right = self.span
        fits = max(int((right - left + 4) // (SMALL[0] + 4)), 1)
        per_row = -(-len(spines) // -(-len(spines) // fits))
        for number, switch in enumerate(spines):
            row, column = divmod(number, per_row)
            self._small("spine", left + column * (SMALL[0] + 4), y + row * (SMALL[1] + 4), switch)
        return y + -(-len(spines) // per_row) * (SMALL[1] + 4)

    def _spine_column(self, column: int, spines: Sequence[Switch], y: float) -> float:
        x = self.column_x(column)
        rows = -(-len(spines) // PER_ROW)
        height = rows * (SMALL[1] + 4) + 4
        self.drawing.box("sunk", x - 2, y, CELL[0] + 4, height)
        for number, switch in enumerate(spines):
            row, place = divmod(number, PER_ROW)
            self._small("spine", x + 2 + place * (SMALL[0] + 4), y + 4 + row * (SMALL[1] + 4), switch)
        return y + height

    def _small(self, kind: str, x: float, y: float, switch: Switch) -> None:
        self.drawing.box(kind, x, y, *SMALL, switch.name)
        short = switch.name.removeprefix("st-").removeprefix("spine-")
        self.drawing.words(x + SMALL[0] / 2, y + 14, short, 10, "text", "middle")

    def _core_bands(self, y: float) -> None:
        """One band from each plane to each group of cores, as wide as its share of the cables."""
        group_of = {switch.name: switch.plane for switch in self.tiers["core"]}
        plane_of = {s.name: s.plane for s in self.tiers["spine"]}
        size = self.design.compute
        counts: Counter[tuple[int, int]] = Counter()
        for (a, b), number in self.pairs.items():
            if b in group_of and size is not None:
                counts[((plane_of[a] - 1) // size.groups, group_of[b])] += number
        total = sum(counts.values()) or 1
        used: dict[tuple[str, int], float] = defaultdict(float)
        for (column, group), number in sorted(counts.items()):
            x, (left, right) = self.column_x(column), self.core_x[group]
            own = sum(n for (c, _), n in counts.items() if c == column)
            theirs = sum(n for (_, g), n in counts.items() if g == group)
            low = x + used[("plane", column)], x + used[("plane", column)] + CELL[0] * number / own
            high = left + used[("core", group)], left + used[("core", group)] + (right - left) * number / theirs
            used[("plane", column)] += CELL[0] * number / own
            used[("core", group)] += (right - left) * number / theirs
            self.drawing.band(
                "band-spine", (high[0] + 0.5, high[1] - 0.5), (low[0] + 0.5, low[1] - 0.5), (self.core_y, y)
            )
        self.drawing.words(LEFT, y - BAND / 2 + 4, f"{total:,} cables", 12)

    def _leaves(self, y: float) -> float:
        """Draws the cells of all units, and the bands above each column."""
        first = y + BAND
        by_cell = {(switch.unit, switch.plane): switch for switch in self.tiers["leaf"]}
        if not any(switch.unit for switch in self.tiers["leaf"]):
            return self._classic(first)
        plane_of = {switch.name: switch.plane for switch in self.tiers["leaf"]}
        plane_cables = Counter(plane_of[cable.a] for cable in self.wired.cables if cable.kind == "leaf_spine")
        for column in range(self.columns):
            x = self.column_x(column)
            top = (x, x + CELL[0]) if self.tiers["core"] else self._share(column)
            self.drawing.band("band-leaf", top, (x, x + CELL[0]), (y + 2, first - 18))
            self.drawing.words(x + CELL[0] / 2, first - 6, f"{self._plane} {column + 1}", 11, "soft", "middle")
            count = f"{plane_cables[column + 1]:,} cables"
            self.drawing.words(x + CELL[0] / 2, first - 28, count, 10, "soft", "middle")
        self.drawing.words(LEFT, y + BAND / 2 - 4, f"{self.cables['leaf_spine']:,} cables", 12)
        for number in range(1, max(switch.unit for switch in self.tiers["leaf"]) + 1):
            top_y = first + (number - 1) * (CELL[1] + 4)
            hosts = self.hosts[number]
            self.drawing.box("node", LEFT, top_y, HOSTS_WIDTH, CELL[1], fold_hosts(hosts))
            label = f"unit {number}: {_short(fold_hosts(hosts))}"
            self.drawing.words(LEFT + 8, top_y + 16, label, 11)
            for column in range(self.columns):
                switch = by_cell.get((number, column + 1))
                if switch is not None:
                    self._cell(self.column_x(column), top_y, switch)
        return first + max(switch.unit for switch in self.tiers["leaf"]) * (CELL[1] + 4)

    @property
    def _plane(self) -> str:
        return "rail" if self.fabric == "compute" else "port"

    def _share(self, column: int) -> tuple[float, float]:
        left, right = self.span
        width = (right - left) / self.columns
        return left + column * width, left + (column + 1) * width

    def _classic(self, y: float) -> float:
        """Without rails the leaves are a plain list, ten to a row."""
        for number, switch in enumerate(self.tiers["leaf"]):
            row, column = divmod(number, 10)
            self._cell(LEFT + column * (CELL[0] + 4), y + row * (CELL[1] + 4), switch)
        return y + -(-len(self.tiers["leaf"]) // 10) * (CELL[1] + 4)

    def _cell(self, x: float, y: float, switch: Switch) -> None:
        self.drawing.box("leaf", x, y, *CELL, switch.name)
        self.drawing.words(x + CELL[0] / 2, y + 16, switch.name, 11, "text", "middle")

    def _foot(self, y: float) -> None:
        nodes = self.cables["node_leaf"]
        rest = [f"{self.cables[kind]:,} {words}" for kind, words in _REST.items() if self.cables[kind]]
        each = nodes // max(len(self.design.asked.hosts), 1)
        told = f"{nodes:,} cables from nodes to leaves, {each} from each node; {', '.join(rest)}".rstrip("; ")
        self.drawing.words(LEFT, y + 20, told, 12)


_REST = {"fabric_manager": "from fabric managers", "storage": "from the storage system"}


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:21] + "..."
