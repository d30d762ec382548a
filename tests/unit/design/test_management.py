"""The management network: every port once, every address once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.spec import Refusal
from tests.unit.design.pods import designed, group

HOSTS = {"hosts": "mgmt[1-3]", "model": "cpu-server", "roles": ["management"]}


@settings(max_examples=30)
@given(st.integers(1, 400), st.sampled_from(["dgx-a100", "dgx-h100"]))
def test_no_port_and_no_address_twice(nodes: int, model: str) -> None:
    design = designed(nodes, nodes=[group(nodes, model), HOSTS], storage=[{"name": "home", "kind": "nfs"}])
    made = design.management
    assert made is not None
    ports = [(c.a, c.a_port) for c in made.cables] + [(c.b, c.b_port) for c in made.cables]
    assert len(ports) == len(set(ports))
    limits = {"leaf": 48 + 2, "aggregation": 32}
    tiers = {switch.name: switch.tier for switch in made.switches}
    assert all(1 <= port <= limits[tiers[name]] for name, port in ports if name in tiers)
    assert Counter(c.kind for c in made.cables)["bmc"] == made.bmc_ports
    addresses = [address for network in made.networks for address in network.addresses.values()]
    assert len(addresses) == len(set(addresses))
    for network in made.networks:
        assert all(address in network.subnet for address in network.addresses.values())
        assert network.subnet.broadcast_address not in network.addresses.values()


def test_every_host_and_switch_is_on_it() -> None:
    inside = {"switch": "qm8700"}
    design = designed(140, nodes=[group(140), HOSTS], fabrics={"compute": inside, "storage": inside})
    assert design.management is not None
    ends = {cable.a for cable in design.management.cables}
    switches = {switch.name for one in design.wired.values() for switch in one.switches}
    assert {*design.pod.hosts(), *switches} <= ends
    by_name = {network.name: network for network in design.management.networks}
    assert list(by_name) == ["bmc", "management", "switches", "storage1", "storage2"]
    assert set(by_name["bmc"].addresses) == set(design.pod.hosts())
    assert set(by_name["switches"].addresses) == {switch.name for switch in design.switches}
    assert str(by_name["bmc"].addresses["dgx0001"]) == "10.0.0.16"
    assert [network.vlan for network in by_name.values()] == [101, 102, 103, 0, 0]


def test_a_wrong_network_is_refused() -> None:
    with pytest.raises(Refusal, match="is not an IPv4 network"):
        designed(4, fabrics={"management": {"network": "10.0.0.0/33"}})
    assert designed(4, fabrics={"management": {"network": "192.168.0.0/16"}}).management is not None


def test_fast_ports_without_a_switch_for_them_are_told() -> None:
    design = designed(4, "dgx-h100", fabrics={"management": {"aggregation": {"ports": 32, "speed": "400Gb/s"}}})
    assert design.management is not None
    assert sum(c.b.startswith("mg-agg") and c.kind == "node" for c in design.management.cables) == 8


def test_aggregation_switches_that_only_the_site_joins_are_said() -> None:
    design = designed(31, "dgx-h100")
    assert design.management is not None
    above = design.management.count("aggregation")
    (note,) = (note for note in design.notes if "aggregation" in note)
    assert note.startswith(f"{above} aggregation switches are not joined to each other: 2 ports of each are kept")
    assert not any("aggregation" in note for note in designed(140).notes)


def test_a_switch_managed_from_outside_has_no_cable_and_its_fabric_a_subnet_manager() -> None:
    design = designed(140)
    assert design.management is not None
    outside = {switch.name for switch in design.switches if switch.fabric != "management"}
    assert not outside & {cable.a for cable in design.management.cables}
    assert not outside & {name for network in design.networks for name in network.addresses}
    assert design.notes == [
        "compute: subnet manager (OpenSM or UFM) on dgx0001 and dgx0002",
        "storage: subnet manager (OpenSM or UFM) on dgx0001 and dgx0002",
    ]
    assert not any("subnet manager" in note for note in designed(31, "dgx-h100").notes)
    managed = designed(19, fabrics={"compute": {"reserved_slots": 1}})
    assert managed.requirements.subnet_managers("compute") == ("ufm1", "ufm2")
