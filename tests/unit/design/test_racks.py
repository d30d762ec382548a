"""Racks: nothing over its limits, nothing in the same place, and lengths that follow from the places."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design.floor import RackPlace
from podwright.design.lengths import distance_m, reach_of, sold
from podwright.spec import Racks, Refusal, SwitchModel
from tests.unit.design.pods import designed

MODELS = ["dgx-1", "dgx-a100", "dgx-h100", "dgx-b200"]


@settings(max_examples=40)
@given(st.integers(1, 300), st.sampled_from(MODELS), st.sampled_from([15, 20, 35, 60]), st.sampled_from([24, 42, 48]))
def test_every_device_has_a_place_of_its_own_within_the_limits(nodes: int, model: str, kw: int, height: int) -> None:
    design = designed(nodes, model, racks={"power": f"{kw}kW", "rack_units": height})
    floor = design.floor
    for rack in floor.racks:
        assert rack.power_w <= kw * 1000
        used = [unit + offset for unit, device in rack.devices for offset in range(device.rack_units)]
        assert len(used) == len(set(used))
        assert min(used) >= 1
        assert max(used) <= height
    placed = [device.name for rack in floor.racks for _, device in rack.devices]
    assert len(placed) == len(set(placed)) == len(floor.places) - len(floor.pdus)
    assert {*design.requirements.hosts, *(switch.name for switch in design.switches)} <= set(placed)
    assert len({rack.name for rack in floor.racks}) == len(floor.racks)


def test_two_switches_share_a_cable_manager_between_them() -> None:
    def stack(**limits: Any) -> list[tuple[int, str]]:
        rack = next(rack for rack in designed(40, racks=limits).floor.racks if "leaf-u01-r1" in str(rack.devices))
        return [(unit, device.name) for unit, device in reversed(rack.devices)][:5]

    assert stack() == [
        *((42, "leaf-u01-r1"), (41, "A03-cm01"), (40, "leaf-u01-r2")),
        *((39, "leaf-u01-r3"), (38, "A03-cm02")),
    ]
    assert [name for _, name in stack(switches_per_manager=0)] == [f"leaf-u01-r{rail}" for rail in range(1, 6)]
    assert [name for _, name in stack(switches_per_manager=1)][:3] == ["leaf-u01-r1", "A03-cm01", "leaf-u01-r2"]


def test_a_manager_stands_where_its_planned_switches_will() -> None:
    now, later = (designed(nodes, fabrics={"compute": {"nodes_planned": 140}}).floor for nodes in (20, 140))
    assert now.places.items() <= later.places.items()
    assert now.cable_managers < later.cable_managers


def test_a_small_pod_is_one_rack() -> None:
    assert len(designed(2).floor.racks) == 1


def test_power_and_cooling_spread_the_racks() -> None:
    def racks(**limits: Any) -> int:
        return len(designed(20, racks=limits).floor.racks)

    assert racks(power="35kW") == 5
    assert racks(power="13kW") == 11
    assert racks(power="35kW", cooling="13kW") == 11


def test_less_power_makes_longer_cables() -> None:
    def longest(power: str) -> float:
        return max(one.length_m or 0 for one in designed(40, racks={"power": power}).laid)

    assert longest("7kW") > longest("35kW")


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"power": "5kW"}, "racks.power: one dgx-a100 draws 6,500 W, and a rack takes 5,000 W"),
        ({"cooling": "5kW"}, "racks.power: one dgx-a100 draws 6,500 W, and a rack takes 5,000 W"),
        ({"rack_units": 5}, "racks.rack_units: dgx-a100 is 6 rack units high, and a rack has 5"),
        ({"count": 3}, "racks.count: the pod takes 5 racks of 35 kW and 42 units, and there are 3"),
    ],
)
def test_what_does_not_fit_is_refused(limits: dict[str, Any], text: str) -> None:
    with pytest.raises(Refusal) as caught:
        designed(20, racks=limits).floor  # noqa: B018 - the floor is laid out when it is asked for
    assert str(caught.value).startswith(f"pod.yaml: {text}")
    assert caught.value.problems[0].hint


def test_lengths() -> None:
    racks = Racks()
    here, above, there = RackPlace("A01", 1, 0, 0), RackPlace("A01", 42, 0, 0), RackPlace("B03", 42, 1, 2)
    assert distance_m(here, above, racks) == pytest.approx(41 * 0.0445 + 0.5)
    assert distance_m(here, there, racks) == distance_m(there, here, racks)
    assert distance_m(here, there, racks) == pytest.approx(41 * 0.0445 + 2 * 0.6 + 2.4 + 1.5)
    assert [sold(length) for length in (0.2, 0.5, 2.3, 61, 100.5)] == [0.5, 0.5, 2.5, 70, 110]


def test_what_a_cable_is_made_of_follows_from_its_length() -> None:
    assert reach_of(SwitchModel(ports=40, speed="200Gb/s")) == (2.0, 100.0)  # type: ignore[call-arg]
    assert reach_of(SwitchModel(ports=64, speed="400Gb/s", active_m=30)) == (2.0, 30)  # type: ignore[call-arg]
    for one in designed(140).laid:
        if one.cable.fabric == "compute":
            assert one.medium == ("dac" if (one.length_m or 0) <= 2 else "aoc")
    assert {one.medium for one in designed(127, "dgx-h100").laid} == {"fibre", "cat6", "aoc", "dac", "unknown"}
