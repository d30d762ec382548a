"""Storage is joined: a cable to every block, ports by need, and what reaches a GPU by the narrowest place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design import Design
from podwright.design.exports.netbox import netbox_files
from podwright.spec import Refusal
from tests.unit.design.pods import designed

HOME = {"name": "home", "kind": "netapp", "model": "netapp-aff-a800"}
PAIRED = {"name": "fast", "kind": "lustre", "model": "ddn-a3i-1-to-1"}


def fast(bandwidth: str) -> dict[str, Any]:
    return {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": bandwidth}


def cables(design: Design) -> Counter[str]:
    """Counts the storage cables of each block."""
    return Counter(cable.a for cable in design.cables if cable.kind == "storage")


def blocks(design: Design) -> list[str]:
    return [name for system in design.requirements.systems for name in system.names]


@pytest.mark.parametrize(
    ("nodes", "model", "systems"),
    [
        (40, "dgx-a100", [fast("960GB/s")]),
        (40, "dgx-a100", [fast("960GB/s"), {**HOME, "bandwidth": "25GB/s"}]),
        (256, "dgx-h100", [fast("2TB/s"), HOME]),
        (21, "dgx-a100", [PAIRED]),
        (4, "dgx-a100", [fast("480GB/s")]),
    ],
)
def test_every_block_has_a_cable(nodes: int, model: str, systems: list[dict[str, Any]]) -> None:
    design = designed(nodes, model, storage=systems)
    assert set(blocks(design)) == set(cables(design))


def test_blocks_are_counted_on_nodes() -> None:
    assert len(blocks(designed(21, storage=[PAIRED]))) == 21
    pure = {"name": "fast", "kind": "flashblade", "model": "pure-airi"}
    assert len(blocks(designed(4, "dgx-1", storage=[pure]))) == 1


def test_blocks_without_a_fabric_are_said() -> None:
    pure = {"name": "fast", "kind": "flashblade", "model": "pure-airi"}
    (note,) = (note for note in designed(4, "dgx-1", storage=[pure]).notes if note.startswith("storage: "))
    assert note == "storage: 1 block of fast without a fabric: `fabrics: {storage: {switch: qm8700}}`"


def test_blocks_that_wait_for_planned_nodes_are_bought_with_them() -> None:
    plan = {"compute": {"nodes_planned": 140}}
    small, large = (designed(nodes, fabrics=plan, storage=[fast("480GB/s")]) for nodes in (20, 140))
    assert (len(blocks(small)), len(blocks(large))) == (8, 10)
    assert set(cables(small)) == set(blocks(small))
    assert small.feeds()[0].per_gpu_bytes_s == pytest.approx(200e9 / 160)
    assert any(note.startswith("storage: 2 blocks of fast get ports with the planned nodes") for note in small.notes)
    growth = large.growth_from(small)
    assert {"fast-09", "fast-10"} <= {cable.a for cable in growth.added}


def test_several_systems_share_the_ports_by_their_bandwidth() -> None:
    counted = cables(designed(256, "dgx-h100", storage=[fast("2TB/s"), {**HOME, "bandwidth": "25GB/s"}]))
    of_home = counted.pop("home-01")
    assert of_home <= 9
    assert counted.total() >= 63


def test_ports_that_the_pod_gives_are_kept_or_refused() -> None:
    given_ports = {"storage": {"ports_per_unit": 8}}
    with pytest.raises(Refusal) as refused:
        designed(40, storage=[fast("960GB/s")], fabrics=given_ports)
    (problem,) = refused.value.problems
    assert problem.field == "fabrics.storage.ports_per_unit"
    assert problem.message == "16 storage ports are too few: 4 blocks have no cable, the first is fast-17"
    assert problem.hint == "write `ports_per_unit: 10`"
    mended = designed(40, storage=[fast("960GB/s")], fabrics={"storage": {"ports_per_unit": 10}})
    assert mended.storage is not None
    assert mended.storage.ports == 20
    (feed,) = mended.feeds()
    assert (feed.limit, feed.per_gpu_bytes_s) == ("cables", 20 * 25e9 / 320)


def test_a_feed_names_what_holds_it_back() -> None:
    limits = {nodes: designed(nodes, storage=[PAIRED]).feeds()[0].limit for nodes in (2, 20)}
    assert limits == {2: "media", 20: "leaf up-links"}


def test_a_system_of_unknown_bandwidth_stands_in_a_rack_and_in_netbox() -> None:
    design = designed(40, storage=[HOME])
    assert design.floor.spot("home")
    files = netbox_files(design)
    to_site = sum(cable.kind == "site" for cable in design.cables)
    assert len(files["08-cables.csv"].splitlines()) == 1 + len(design.cables) - to_site


@settings(max_examples=25)
@given(st.integers(1, 150), st.sampled_from(["dgx-a100", "dgx-h100"]), st.integers(1, 60), st.booleans())
def test_a_pod_is_fed_by_cables_or_refused_by_name(nodes: int, model: str, bandwidth: int, two: bool) -> None:
    systems = [fast(f"{bandwidth * 20}GB/s"), *[HOME] * two]
    design = designed(nodes, model, storage=systems)
    counted = cables(design)
    assert set(counted) == set(blocks(design))
    (feed, *_) = design.feeds()
    own = sum(count for name, count in counted.items() if name.startswith("fast"))
    speed = {"dgx-a100": 25e9, "dgx-h100": 50e9}[model]
    assert feed.per_gpu_bytes_s is not None
    assert feed.per_gpu_bytes_s * nodes * 8 <= min(own * speed, bandwidth * 20e9) * 1.000001
