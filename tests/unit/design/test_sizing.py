"""The rules against the published tables, every cell, and the laws that hold at any size."""

from __future__ import annotations

import csv
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design import sizing
from podwright.design.requirements import requirements_of
from podwright.design.sizing import ComputeParameters, size_compute
from podwright.design.sizing_storage import StorageParameters, size_storage
from podwright.spec import Pod, Refusal
from tests.paths import CASES as ALL_CASES
from tests.unit.design.pods import group

CASES = ALL_CASES / "design"


def rows(name: str) -> list[dict[str, str]]:
    """Reads a published table, whose first lines name its source."""
    with (CASES / name).open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def a100(nodes: int, **changes: float) -> ComputeParameters:
    """The parameters of the published tables."""
    given = {"taper": 2, "pods_planned": 2, **changes}
    return ComputeParameters(nodes, 8, 40, 8, 20, **given)  # type: ignore[arg-type]


def compute_row(nodes: str, size: sizing.ComputeSize) -> dict[str, str]:
    """A size as a row of the published tables."""
    made = {
        "nodes": nodes,
        "leaf": size.leaf,
        "spine": size.spine,
        "core": size.core,
        "node_leaf_cables": size.node_leaf,
        "leaf_spine_cables": size.leaf_spine,
        "spine_core_cables": size.spine_core,
    }
    return {key: str(value) for key, value in made.items()}


@pytest.mark.parametrize("row", rows("published_compute.csv"), ids=lambda row: row["nodes"])
def test_every_cell_of_the_compute_table(row: dict[str, str]) -> None:
    assert compute_row(row["nodes"], size_compute(a100(int(row["nodes"])))) == row


@pytest.mark.parametrize("row", rows("published_b200.csv"), ids=lambda row: row["nodes"])
def test_every_cell_of_the_table_for_dgx_b200(row: dict[str, str]) -> None:
    """SuperPOD reference architecture for DGX B200, larger component counts: three tiers without taper."""
    assert compute_row(row["nodes"], size_compute(ComputeParameters(int(row["nodes"]), 8, 64, 8, 32))) == row


@pytest.mark.parametrize("row", rows("published_b300_xdr.csv"), ids=lambda row: row["nodes"])
def test_every_cell_of_the_table_for_dgx_b300_with_xdr(row: dict[str, str]) -> None:
    """SuperPOD reference architecture for DGX B300 with XDR: switches of 144 ports, units of 72 nodes."""
    assert compute_row(row["nodes"], size_compute(ComputeParameters(int(row["nodes"]), 8, 144, 8, 72))) == row


@pytest.mark.parametrize("row", rows("published_storage.csv"), ids=lambda row: row["nodes"])
def test_every_cell_of_the_storage_table(row: dict[str, str]) -> None:
    size = size_storage(StorageParameters(int(row["nodes"]), 40, 20))
    made = {
        "nodes": row["nodes"],
        "storage_ports": size.ports,
        "leaf": size.leaf,
        "spine": size.spine,
        "node_leaf_cables": size.node_leaf,
        "leaf_spine_cables": size.leaf_spine,
        "storage_cables": size.ports,
        "subscription": size.subscription,
    }
    assert {key: str(value) for key, value in made.items()} == row


def test_plain_storage_ratios() -> None:
    sizes = [size_storage(StorageParameters(nodes, 40, 20)) for nodes in (10, 20, 40, 80, 100, 140)]
    assert [size.subscription_all for size in sizes] == ["6:5", *["3:2"] * 5]
    assert [size.subscription_nodes for size in sizes] == ["1:1", *["5:4"] * 5]


@pytest.mark.parametrize("row", rows("published_h100.csv"), ids=lambda row: row["nodes"])
def test_every_cell_of_the_table_for_dgx_h100(row: dict[str, str]) -> None:
    """SuperPOD reference architecture RA-11333, component count: one slot of the set is the manager's."""
    size = size_compute(ComputeParameters(int(row["nodes"]), 8, 64, 8, 32, reserved_slots=1))
    made = {
        "nodes": row["nodes"],
        "leaf": size.leaf,
        "spine": size.spine,
        "node_and_manager_cables": size.node_leaf + size.fabric_manager,
        "leaf_spine_cables": size.leaf_spine,
    }
    assert {key: str(value) for key, value in made.items()} == row


PUBLISHED = {
    "dgx-h100": "published_h100.csv",
    "dgx-h200": "published_h100.csv",
    "dgx-b200": "published_b200.csv",
    "dgx-b300": "published_b300_xdr.csv",
}
PAIRS = [(model, int(row["nodes"])) for model, name in PUBLISHED.items() for row in rows(name)]


@pytest.mark.parametrize(("model", "nodes"), PAIRS, ids=[f"{model}-{nodes}" for model, nodes in PAIRS])
def test_a_model_alone_gives_the_published_row(model: str, nodes: int) -> None:
    """The library's entry has the parameters of its table: `--nodes N --model M` is that row."""
    (row,) = [row for row in rows(PUBLISHED[model]) if int(row["nodes"]) == nodes]
    requirements = requirements_of(pod_of(nodes, model))
    assert requirements.compute is not None
    size = size_compute(requirements.compute)
    assert (str(size.leaf), str(size.spine)) == (row["leaf"], row["spine"])
    assert str(size.leaf_spine) == row["leaf_spine_cables"]


def pod_of(nodes: int, model: str) -> Pod:
    return Pod.model_validate({"name": "pod", "nodes": [group(nodes, model)]})


def test_one_large_pod_needs_twice_the_cores_of_two() -> None:
    assert size_compute(a100(140)).core == 28
    assert size_compute(a100(280)).core == 56


def test_planned_nodes_size_what_is_above_and_only_nodes_are_cabled() -> None:
    size = size_compute(a100(100, nodes_planned=140))
    assert (size.tiers, size.leaf, size.spine, size.core) == (3, 40, 80, 28)
    assert (size.node_leaf, size.leaf_spine, size.spine_core) == (800, 800, 400)


def check_hint(refusal: Refusal) -> None:
    """A refusal says what would work."""
    assert all(problem.hint and problem.field for problem in refusal.problems)


asks = st.builds(
    ComputeParameters,
    nodes=st.integers(1, 2048),
    node_ports=st.sampled_from([1, 2, 4, 8]),
    switch_ports=st.sampled_from([32, 36, 40, 64, 128]),
    rails=st.sampled_from([1, 2, 4, 8]),
    unit=st.integers(1, 40),
    layout=st.sampled_from(["rail", "rail", "classic"]),
    oversubscription=st.sampled_from([1, 1.5, 2, 3]),
    taper=st.sampled_from([1, 1.5, 2, 4]),
    pods_planned=st.integers(1, 3),
    nodes_planned=st.integers(0, 2048),
    reserved_slots=st.integers(0, 1),
)


@settings(max_examples=300)
@given(asks)
def test_laws_of_compute(ask: ComputeParameters) -> None:
    try:
        size = size_compute(ask)
    except Refusal as refusal:
        check_hint(refusal)
        return
    radix = ask.switch_ports
    assert size == size_compute(ask)
    assert size.leaf_down + size.leaf_up <= radix
    assert size.leaf_up % size.spines_per_plane == 0
    budget = radix if size.tiers == 2 else radix // 2
    assert size.plane_leaves * size.links <= budget
    smaller = [s for s in range(1, size.spines_per_plane) if size.leaf_up % s == 0]
    assert all(size.plane_leaves * size.leaf_up > budget * s for s in smaller)
    if size.tiers == 3:
        assert sizing.spread(size.leaf if ask.planned == ask.nodes else 10**9, size.leaf_up, radix) is None
        assert size.spine_up <= radix // 2
        assert size.core % size.spine_up == 0
        assert size.spine * ask.pods_planned <= size.core_groups * radix


@settings(max_examples=200)
@given(
    st.integers(1, 2048), st.sampled_from([32, 40, 64, 128]), st.integers(1, 40), st.integers(1, 4), st.integers(1, 16)
)
def test_laws_of_storage(nodes: int, radix: int, unit: int, node_ports: int, ports: int) -> None:
    try:
        size = size_storage(StorageParameters(nodes, radix, unit, node_ports, ports))
    except Refusal as refusal:
        check_hint(refusal)
        return
    assert size.slots + size.leaf_ports + size.leaf_up <= radix
    assert size.leaf_up % size.spines_per_group == 0
    if size.tiers == 2:
        assert size.leaf * size.leaf_up // size.spine <= radix
        return
    assert size.group_leaves * size.links == size.spine_up <= radix // 2
    assert size.spine == ceil(size.leaf / size.group_leaves) * size.spines_per_group <= size.core_groups * radix
    assert size.core_groups <= size.spines_per_group, "every leaf reaches every core"
    assert size.spine_core == size.leaf_spine


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            ComputeParameters(140, 8, 40, 5, 20),
            "fabrics.compute.rails: 5 rails do not divide the 8 compute ports of a node\n\n"
            "hint: rails is one of 1, 2, 4, 8; the nearest is 4",
        ),
        (
            ComputeParameters(140, 8, 40, 8, 24),
            "fabrics.compute.scalable_unit: a unit of 24 nodes needs 48 ports of each leaf, and a switch has 40\n\n"
            "hint: units of at most 20 nodes fit; a switch with 48 ports would do",
        ),
        (
            ComputeParameters(2001, 8, 40, 8, 20),
            "nodes: 2,001 nodes with 8 compute ports are more than any tree of 40-port switches can hold\n\n"
            "hint: at most 2,000 nodes fit; 2,001 need switches with 42 ports",
        ),
        (
            ComputeParameters(140, 8, 41, 8, 20),
            "fabrics.compute.switch: a switch of 41 ports has no two halves\n\nhint: use one with 40 or 42 ports",
        ),
    ],
)
def test_refusals_name_the_nearest_thing_that_works(ask: ComputeParameters, text: str) -> None:
    with pytest.raises(Refusal) as caught:
        size_compute(ask)
    assert str(caught.value) == text


def test_what_a_refusal_proposes_works() -> None:
    assert size_compute(ComputeParameters(140, 8, 40, 4, 10)).tiers == 3
    assert size_compute(ComputeParameters(2000, 8, 40, 8, 20)).tiers == 3
    assert size_compute(ComputeParameters(2001, 8, 42, 8, 20)).tiers == 3


def test_a_fourth_tier_of_storage_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        size_storage(StorageParameters(8001, 40, 20))
    assert str(caught.value) == (
        "fabrics.storage.switch: 8,001 nodes need a fourth tier of storage switches, which is not designed: "
        "three tiers of 40-port switches hold 8,000\n\n"
        "hint: storage switches with 42 ports would do, or several pods of at most 8,000 nodes, "
        "each with storage of its own"
    )
    assert size_storage(StorageParameters(8000, 40, 20)).tiers == 3
    assert size_storage(StorageParameters(402, 40, 20)).tiers == 3
    assert size_storage(StorageParameters(400, 40, 20)).leaf == 40
    assert size_storage(StorageParameters(402, 42, 20)).leaf == 42


def test_pods_that_would_not_meet_in_the_core_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        size_compute(a100(140, pods_planned=40))
    assert str(caught.value) == (
        "fabrics.compute.pods_planned: 40 planned pods of 140 nodes do not all meet in the core: "
        "a leaf reaches 10 of 80 groups of cores\n\nhint: plan at most 9 pods"
    )
    assert size_compute(a100(140, pods_planned=9)).core == 126
