"""Every port of every cable: the wiring that was worked out by hand, and laws for any size."""

from __future__ import annotations

from collections import Counter, defaultdict

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design.sizing import ComputeParameters, divided, size_compute
from podwright.design.sizing_storage import StorageParameters, size_storage
from podwright.design.systems import storage_ends
from podwright.design.topology import topology_of
from podwright.design.wiring import Cable, Wired, wire_compute, wire_storage
from podwright.spec import Pod, Refusal
from tests.unit.design.pods import group


def hosts(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def compute(ask: ComputeParameters) -> Wired:
    return wire_compute(ask, size_compute(ask), hosts(ask.nodes))


def a100(nodes: int, planned: int = 0) -> ComputeParameters:
    return ComputeParameters(nodes, 8, 40, 8, 20, taper=2, pods_planned=2, nodes_planned=planned)


def test_twenty_nodes_port_by_port() -> None:
    cables = set(compute(a100(20)).cables)
    for n in range(1, 21):
        for r in range(1, 9):
            assert Cable("compute", "node_leaf", f"n{n}", r, f"leaf-u01-r{r}", n) in cables
    for r in range(1, 9):
        for s in range(1, 5):
            for j in range(1, 6):
                port = 20 + 5 * (s - 1) + j
                spine_port = 5 * (r - 1) + j
                assert Cable("compute", "leaf_spine", f"leaf-u01-r{r}", port, f"spine-{s:02d}", spine_port) in cables
    assert len(cables) == 320


def test_a_hundred_nodes_port_by_port() -> None:
    cables = set(compute(a100(100)).cables)
    for unit in range(1, 6):
        for r in range(1, 9):
            leaf = 8 * (unit - 1) + r
            for s in range(1, 21):
                name = f"leaf-u{unit:02d}-r{r}"
                assert Cable("compute", "leaf_spine", name, 20 + s, f"spine-{s:02d}", leaf) in cables


def test_a_hundred_and_forty_nodes_port_by_port() -> None:
    made = compute(a100(140))
    cables = set(made.cables)
    for i in range(1, 8):
        for r in range(1, 9):
            for s in range(1, 11):
                for j in (1, 2):
                    a, b = (f"leaf-u{i:02d}-r{r}", 20 + 2 * (s - 1) + j), (f"spine-r{r}-{s:02d}", 2 * (i - 1) + j)
                    assert Cable("compute", "leaf_spine", *a, *b) in cables
    for r in range(1, 9):
        for s in range(1, 11):
            group = (10 * (r - 1) + s - 1) % 4
            up = {(c.a_port, c.b) for c in cables if c.a == f"spine-r{r}-{s:02d}"}
            assert up == {(20 + j, f"core-{group + 1}-{j:02d}") for j in range(1, 8)}
    planes = defaultdict(Counter)  # type: ignore[var-annotated]
    for cable in made.cables:
        if cable.kind == "spine_core":
            planes[cable.b][cable.a.split("-")[1]] += 1
    assert len(planes) == 28
    assert all(sum(found.values()) == 20 and set(found.values()) == {2, 3} for found in planes.values())


asks = st.builds(
    ComputeParameters,
    nodes=st.integers(1, 600),
    node_ports=st.sampled_from([1, 2, 4, 8]),
    switch_ports=st.sampled_from([8, 12, 16, 36, 40, 64]),
    rails=st.sampled_from([1, 2, 4, 8]),
    unit=st.integers(1, 24),
    layout=st.sampled_from(["rail", "rail", "classic"]),
    oversubscription=st.sampled_from([1, 1.5, 2]),
    taper=st.sampled_from([1, 1.5, 2]),
    pods_planned=st.integers(1, 2),
    nodes_planned=st.integers(0, 600),
    reserved_slots=st.integers(0, 1),
)


def laws(ask: ComputeParameters, made: Wired) -> None:
    size = size_compute(ask)
    ports = [(c.a, c.a_port) for c in made.cables] + [(c.b, c.b_port) for c in made.cables]
    assert len(ports) == len(set(ports)), "a port is used twice"
    names = {switch.name for switch in made.switches}
    assert len(names) == len(made.switches) == size.leaf + size.spine + size.core
    assert all(1 <= port <= ask.switch_ports for name, port in ports if name in names)
    kinds = Counter(cable.kind for cable in made.cables)
    assert kinds["node_leaf"] == size.node_leaf
    assert kinds["leaf_spine"] == size.leaf_spine
    assert kinds["spine_core"] == size.spine_core
    assert kinds["fabric_manager"] == size.fabric_manager
    pairs = Counter((c.a, c.b) for c in made.cables if c.kind == "leaf_spine")
    assert set(pairs.values()) == {size.links}, "up-links of a leaf are not spread evenly"
    up = Counter((c.a, c.b) for c in made.cables if c.kind == "spine_core")
    assert set(up.values()) <= {1}, "a spine has two cables to one core"


def reachable(made: Wired) -> bool:
    """Says whether every leaf reaches every other by going up and then down."""
    above: dict[str, set[str]] = defaultdict(set)
    for cable in made.cables:
        if cable.kind in ("leaf_spine", "spine_core"):
            above[cable.a].add(cable.b)
    leaves = [switch.name for switch in made.switches if switch.tier == "leaf"]
    spines = {frozenset(above[leaf]) for leaf in leaves}
    ups = [spine | {core for one in spine for core in above[one]} for spine in spines]
    return all(a & b for a in ups for b in ups)


@settings(max_examples=150)
@given(asks)
def test_laws_at_any_size(ask: ComputeParameters) -> None:
    try:
        made = compute(ask)
    except Refusal:
        return
    laws(ask, made)
    assert reachable(made)
    assert made == compute(ask)


@settings(max_examples=100)
@given(asks, st.integers(1, 600))
def test_planned_growth_adds_cables_and_moves_none(ask: ComputeParameters, more: int) -> None:
    size = min(ask.nodes, more), max(ask.nodes, more, ask.nodes_planned)
    fields = {name: getattr(ask, name) for name in ask.__slots__}
    try:
        small = compute(ComputeParameters(**{**fields, "nodes": size[0], "nodes_planned": size[1]}))
        large = compute(ComputeParameters(**{**fields, "nodes": size[1], "nodes_planned": size[1]}))
    except Refusal:
        return
    assert set(small.cables) <= set(large.cables)


@settings(max_examples=100)
@given(st.integers(1, 400), st.sampled_from([16, 40, 64]), st.integers(1, 24), st.integers(1, 3), st.integers(1, 12))
def test_laws_of_storage(nodes: int, radix: int, unit: int, node_ports: int, ports: int) -> None:
    ask = StorageParameters(nodes, radix, unit, node_ports, ports)
    try:
        size = size_storage(ask)
    except Refusal:
        return
    made = wire_storage(ask, size, hosts(nodes), storage_ends([], size.ports, ports))
    used = [(c.a, c.a_port) for c in made.cables] + [(c.b, c.b_port) for c in made.cables]
    assert len(used) == len(set(used))
    names = {switch.name for switch in made.switches}
    assert all(1 <= port <= radix for name, port in used if name in names)
    kinds = {"node_leaf": size.node_leaf, "leaf_spine": size.leaf_spine, "storage": size.ports}
    kinds |= {"spine_core": size.spine_core} if size.core else {}
    assert Counter(c.kind for c in made.cables) == kinds
    assert len(made.switches) == size.leaf + size.spine + size.core
    on = {c.b for c in made.cables if c.kind == "storage"}
    assert all(name.startswith("st-spine" if size.on_spines else "st-leaf") for name in on)


def cut_between(made: Wired, left: set[str], right: set[str]) -> int:
    """Links that carry traffic between two sets of leaves at once: the maximum flow."""
    graph = nx.DiGraph()
    for cable in made.cables:
        if cable.kind not in ("leaf_spine", "spine_core"):
            continue
        for a, b in ((cable.a, cable.b), (cable.b, cable.a)):
            known = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
            graph.add_edge(a, b, capacity=known + 1)
    for leaf in left:
        graph.add_edge("source", leaf)
    for leaf in right:
        graph.add_edge(leaf, "sink")
    return int(nx.maximum_flow_value(graph, "source", "sink"))


@pytest.mark.parametrize(
    ("nodes", "over", "taper"), [(20, 1, 1), (100, 1, 1), (140, 1, 1), (140, 1, 2), (80, 2, 1), (140, 2, 2)]
)
def test_bisection_is_what_the_taper_claims(nodes: int, over: float, taper: float) -> None:
    """Half of the planes against the other half goes through the core; units against units need not."""
    ask = ComputeParameters(nodes, 8, 40, 8, 20, oversubscription=over, taper=taper)
    size, made = size_compute(ask), compute(ask)
    leaves = [switch for switch in made.switches if switch.tier == "leaf"]
    by_rail = ({s.name for s in leaves if s.plane <= 4}, {s.name for s in leaves if s.plane > 4})
    below = 8 * nodes // 2
    per_spine = size.plane_leaves * size.links
    claimed = size.spine // 2 * divided(per_spine, taper) if size.tiers == 3 else divided(below, over)
    assert cut_between(made, *by_rail) == claimed
    half = size.units // 2
    if half:
        first = {s.name for s in leaves if s.unit <= half}
        rest = {s.name for s in leaves if s.unit > half}
        assert cut_between(made, first, rest) == min(len(first), len(rest)) * size.leaf_up


def test_units_follow_the_cables() -> None:
    ask = ComputeParameters(63, 8, 64, 8, 32, reserved_slots=1)
    fabric = {"switch": {"ports": 64}, "rails": 8, "scalable_unit": 32, "reserved_slots": 1}
    units = topology_of(Pod.model_validate({"name": "p", "nodes": [group(63)], "fabrics": {"compute": fabric}})).units
    assert [len(unit.hosts) for unit in units] == [31, 32]
    made = wire_compute(ask, size_compute(ask), [*units[0].hosts, *units[1].hosts])
    assert {c.a for c in made.cables if c.b == "leaf-u02-r1" and c.kind == "node_leaf"} == set(units[1].hosts)
    managers = [c for c in made.cables if c.kind == "fabric_manager"]
    assert [(c.a, c.a_port, c.b, c.b_port) for c in managers] == [
        ("ufm1", 1, "leaf-u01-r1", 32),
        ("ufm1", 2, "leaf-u01-r2", 32),
        ("ufm2", 1, "leaf-u01-r3", 32),
        ("ufm2", 2, "leaf-u01-r4", 32),
    ]
