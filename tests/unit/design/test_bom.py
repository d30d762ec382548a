"""The bill of materials counts what is drawn, and storage is judged by what a GPU gets."""

from __future__ import annotations

from collections import Counter

import pytest

from podwright.design.bom import total
from tests.unit.design.pods import designed


def test_it_counts_every_cable_and_every_switch() -> None:
    design = designed(140)
    items = design.bill()
    kinds: Counter[str] = Counter()
    for item in items:
        kinds[item.kind.rpartition(" ")[2]] += item.count
    assert kinds["cable"] == len(design.cables)
    assert kinds["switch"] == len(design.switches)
    assert kinds["node"] == 140
    assert kinds["rack"] == len(design.floor.racks)


def test_prices_where_they_are_given() -> None:
    prices = {"dac": 100, "aoc": 500, "fibre": 900, "cat6": 10}
    costs = {"node_price": 1000, "switch_price": 50, "cable_prices": prices}
    design = designed(20, costs=costs)
    amount, without = total(design.bill())
    media = Counter(one.medium for one in design.laid)
    known = sum(prices[medium] * count for medium, count in media.items() if medium in prices)
    assert amount == 20 * 1000 + 50 * len(design.switches) + known
    unknown = ["management cable, length not known", "storage cable, length not known"]
    assert without == ["rack, 42 units", "cable manager, 1 unit", "power distribution unit, one feed", *unknown]


@pytest.mark.parametrize(
    ("model", "nodes", "blocks", "per_gpu", "limit"),
    [
        ("ddn-a3i-1-to-1", 20, 20, 3.125, "leaf up-links"),
        ("ddn-a3i-1-to-1", 2, 2, 6.0, "media"),
        ("ddn-a3i-4-to-1", 20, 5, 1.5, "media"),
        ("ddn-a3i-9-to-1", 20, 3, 0.9, "media"),
        ("netapp-ontap-ai", 20, 5, 0.78125, "media"),
        ("spectrum-scale-ess", 20, 5, 1.25, "media"),
    ],
)
def test_reference_architectures(model: str, nodes: int, blocks: int, per_gpu: float, limit: str) -> None:
    kind = {"ddn": "lustre", "netapp": "netapp", "spectrum": "spectrum-scale"}[model.split("-")[0]]
    (feed,) = designed(nodes, storage=[{"name": "fast", "kind": kind, "model": model}]).feeds()
    assert feed.blocks == blocks
    assert feed.per_gpu_bytes_s == pytest.approx(per_gpu * 1e9)
    assert (feed.feeds, feed.limit) == (per_gpu >= 1, limit)


def test_an_unknown_bandwidth_is_not_guessed() -> None:
    (feed,) = designed(20, storage=[{"name": "fast", "kind": "flashblade", "model": "pure-airi"}]).feeds()
    assert (feed.bandwidth_bytes_s, feed.feeds) == (None, None)


def test_a_given_bandwidth_decides() -> None:
    system = {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "160GB/s"}
    (feed,) = designed(20, storage=[system]).feeds(2 * 10**9)
    assert (feed.blocks, feed.per_gpu_bytes_s, feed.feeds) == (4, 1e9, False)


def test_fabric_managers_are_bought_where_they_stand_in_a_rack() -> None:
    design = designed(31, "dgx-h100")
    bought = sum(item.count for item in design.bill() if item.kind == "manager")
    assert bought == sum(name.startswith("ufm") for name in design.floor.places) == 2
