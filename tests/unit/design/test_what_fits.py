"""What does not fit is refused or said, with a number that is true."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.design.discovered import read_discovered
from podwright.design.growth import check_pods
from podwright.design.losses import lose
from podwright.design.predict.placement import place
from podwright.spec import Refusal, library
from podwright.spec.nearest import one_of
from tests.unit.design.pods import designed, group


def refused(*arguments: Any, **more: Any) -> str:
    with pytest.raises(Refusal) as caught:
        designed(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fabric", "field", "switch", "message"),
    [
        ("compute", "switch", "sn3700", "sn3700 is an Ethernet switch, and the compute fabric is InfiniBand"),
        ("management", "switch", "qm8700", "qm8700 is an InfiniBand switch, and the management fabric is Ethernet"),
        (
            "management",
            "aggregation",
            "qm9700",
            "qm9700 is an InfiniBand switch, and the management fabric is Ethernet",
        ),
    ],
)
def test_a_switch_of_the_wrong_kind_is_refused(fabric: str, field: str, switch: str, message: str) -> None:
    assert f"fabrics.{fabric}.{field}: {message}" in refused(20, fabrics={fabric: {field: switch}})


def test_two_generations_on_one_fabric_are_refused() -> None:
    nodes = [group(4), {"hosts": "new[1-4]", "model": "dgx-h100"}]
    message = refused(1, nodes=nodes, fabrics={"compute": {"switch": "qm9700"}})
    assert "nodes: nodes with compute ports of different speeds share one fabric: " in message
    assert "dgx-a100 has 200 Gb/s, dgx-h100 has 400 Gb/s" in message


def test_a_slower_switch_is_said_and_predicted() -> None:
    slow = {"compute": {"switch": "qm8700", "scalable_unit": 20}, "storage": {"switch": "qm8700", "scalable_unit": 20}}
    design, fast = designed(16, "dgx-h100", fabrics=slow), designed(16, "dgx-h100")
    assert design.notes[0] == "compute ports of 400 Gb/s on qm8700 of 200: links run at 200 Gb/s"
    assert fast.notes[:1] == ["management ports of 400 Gb/s on sn3700 of 200: links run at 200 Gb/s"]
    speeds = [place(one.pod, one.requirements.hosts).wires.nic_gb_s for one in (design, fast)]
    assert speeds[0] * 2 == speeds[1]


def test_hints_name_the_least_limit_of_all_fabrics() -> None:
    storage = {"switch": {"ports": 20}, "scalable_unit": 8}
    assert "at most 800 nodes fit the pod's storage fabric, and 2,000 this one" in refused(
        2400, fabrics={"storage": storage}
    )
    assert "at most 2,000 nodes fit" in refused(2400)


def test_storage_has_a_third_tier_where_two_do_not_do() -> None:
    """A row of NVIDIA's table for DGX B200, whose storage has more leaves than a spine has ports."""
    storage = designed(2048, "dgx-b200").storage
    assert storage is not None
    assert (storage.tiers, storage.leaf, storage.spine, storage.core) == (3, 128, 112, 64)


def test_a_pod_with_three_tiers_of_storage_becomes_files() -> None:
    design = designed(40, fabrics={"storage": {"switch": {"ports": 8, "speed": "200Gb/s"}, "scalable_unit": 3}})
    assert design.storage is not None
    assert design.storage.tiers == 3
    files = design.files()
    assert "st-core-1-01" in files["storage.svg"]
    assert len(read_discovered(files["storage.ibnetdiscover"]).ports()) == 2 * len(design.wired["storage"].cables)
    assert lose(design, []).cut_off["storage"] == []


def test_unknown_power_is_at_least() -> None:
    assert designed(20).floor.power_text == "at least 130.6 kW in all"


@pytest.mark.parametrize("model", ["dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300"])
def test_newer_systems_have_all_fabrics(model: str) -> None:
    design = designed(31, model)
    assert list(design.wired) == ["compute", "storage"]
    assert design.management is not None


def test_four_units_of_dgx_b200_have_the_published_storage_switches() -> None:
    """SuperPOD reference architecture RA-11334, management racks: 8 storage leaves, 4 storage spines."""
    storage = designed(127, "dgx-b200").storage
    assert storage is not None
    assert (storage.leaf, storage.spine) == (8, 4)


def test_known_power_heat_and_weight_are_sums() -> None:
    switches = {"compute": {"switch": "qm9700"}, "management": {"switch": {"ports": 48}}}
    design = designed(32, "dgx-b200", fabrics=switches)
    assert design.floor.unknown_power == ("48-port switch", "sn3700")
    rack = next(rack for rack in design.floor.racks if [device.model for _, device in rack.devices] == ["dgx-b200"] * 2)
    assert rack.facts == "28.6 kW (97,583 BTU/h), 285 kg"
    # The user guide of DGX H100 gives 38,557 BTU/h, more than its 10.2 kW make.
    assert "30.6 kW (115,671 BTU/h)" in designed(31, "dgx-h100").floor.racks[0].facts
    assert design.floor.weight_kg == pytest.approx(32 * 142.4 + (8 + 4 + 2 + 1) * 14.8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ((31, "dgx-h100"), (140, "dgx-a100"), "this is another pod: dgx0001 is of another model"),
        ((40, "dgx-a100"), (20, "dgx-a100"), "the pod shrinks from 40 to 20 nodes"),
    ],
)
def test_growth_knows_another_pod_and_a_shrink(old: tuple[int, str], new: tuple[int, str], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        check_pods(designed(*old), designed(*new))
    check_pods(designed(20), designed(40))
    with pytest.raises(Refusal, match="this is another pod: dgx0001 of the old one is not in it"):
        check_pods(designed(20), designed(40, nodes=[{"hosts": "n[01-40]", "model": "dgx-a100"}]))


def test_swapped_digits_name_the_right_switch() -> None:
    assert one_of("qm8970", "switch", library("switches")).endswith("did you mean `qm8790`?")
