"""Growth: planned, it adds cables; unplanned, the moved ones are listed apart and refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design.growth import grow, refuse_moves
from tests.unit.design.pods import designed

SYSTEMS = [
    {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "400GB/s"},
    {"name": "home", "kind": "netapp", "model": "netapp-ontap-ai"},
    {"name": "wide", "kind": "lustre", "model": "ddn-a3i-9-to-1"},
    {"name": "cold", "kind": "nfs"},
]


@settings(max_examples=30)
@given(
    st.integers(1, 150),
    st.integers(1, 150),
    st.sampled_from(["dgx-a100", "dgx-h100"]),
    st.sets(st.sampled_from(range(4))),
)
def test_planned_growth_moves_nothing(one: int, other: int, model: str, systems: set[int]) -> None:
    """No cable of any fabric, no switch, no device in a rack, no address."""
    plan = {"compute": {"nodes_planned": max(one, other)}}
    storage = [SYSTEMS[index] for index in sorted(systems)]
    small, large = (designed(n, model, fabrics=plan, storage=storage) for n in (min(one, other), max(one, other)))
    growth = grow(small, large)
    assert (growth.moved, growth.removed, growth.switches_removed) == ([], [], [])
    assert small.management is not None
    assert large.management is not None
    for old, new in zip(small.management.networks, large.management.networks, strict=True):
        assert old.subnet == new.subnet
        assert old.addresses.items() <= new.addresses.items()
    after = large.floor.places
    assert {name: after[name] for name in small.floor.places} == small.floor.places


def test_unplanned_growth_turns_five_links_of_a_pair_into_two() -> None:
    old, new = designed(20), designed(40)
    growth = grow(old, new)
    leaf_spine = [(a, b) for a, b in growth.moved if a.kind == "leaf_spine"]
    kept = {(c.a, c.b) for c in old.cables} & {(c.a, c.b) for c in new.cables if c.kind == "leaf_spine"}
    assert leaf_spine
    assert kept
    pair = ("leaf-u01-r1", "spine-01")
    assert [sum((c.a, c.b) == pair for c in design.cables) for design in (old, new)] == [5, 2]
    assert str(refuse_moves(growth)).startswith(
        f"fabrics.compute.nodes_planned: growing from 20 to 40 nodes moves {growth.disturbs} cables that are in use, "
        "the first at leaf-u01-r1 port "
    )


def test_a_new_tier_moves_every_link_above_the_leaves() -> None:
    growth = grow(designed(100), designed(140))
    touched = [a for a, _ in growth.moved] + growth.removed
    assert sum(cable.kind == "leaf_spine" and cable.fabric == "compute" for cable in touched) == 800
    assert not any(cable.kind == "node_leaf" for cable in touched)


@pytest.mark.parametrize("nodes", [10, 20, 140])
def test_nothing_grows_out_of_the_same_pod(nodes: int) -> None:
    growth = grow(designed(nodes), designed(nodes))
    assert (growth.added, growth.disturbs, growth.switches_added) == ([], 0, [])


@pytest.mark.parametrize("fabrics", [{}, {"compute": {"kind": "ethernet", "switch": "sn5600"}}])
def test_the_hint_of_unplanned_growth_is_true(fabrics: dict[str, dict[str, object]]) -> None:
    old, new = (designed(nodes, "dgx-h100", fabrics=fabrics) for nodes in (20, 80))
    hint = refuse_moves(grow(old, new)).problems[0].hint
    assert hint == "`nodes_planned: 80` in the old file would have moved none; `--allow-moves` lists them"
    planned = {"compute": {**fabrics.get("compute", {}), "nodes_planned": 80}}
    assert grow(designed(20, "dgx-h100", fabrics=planned), new).disturbs == 0


def test_a_change_of_the_fabric_is_not_called_growth_that_nobody_planned() -> None:
    old, new = designed(20), designed(40, fabrics={"compute": {"oversubscription": 2}})
    refusal = refuse_moves(grow(old, new))
    assert (
        refusal.problems[0].hint == "the files differ in more than their nodes; `--allow-moves` lists what that moves"
    )
