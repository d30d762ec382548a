"""The management network: every port once, every address once."""

from __future__ import annotations

import csv
from collections import Counter
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design.losses import leaf_losses, lose
from podwright.spec import Refusal
from podwright.spec.hostlist import expand_hosts
from tests.paths import CASES
from tests.unit.design.pods import designed, group

ROWS = list(csv.DictReader((CASES / "design" / "addresses_0_2.csv").read_text().splitlines()))
HOSTS = {"hosts": "mgmt[1-3]", "model": "cpu-server", "roles": ["management"]}


@settings(max_examples=30)
@given(st.integers(1, 400), st.sampled_from(["dgx-a100", "dgx-h100"]))
def test_no_port_and_no_address_twice(nodes: int, model: str) -> None:
    design = designed(nodes, nodes=[group(nodes, model), HOSTS], storage=[{"name": "home", "kind": "nfs"}])
    made = design.management
    assert made is not None
    ports = [(c.a, c.a_port) for c in made.cables] + [(c.b, c.b_port) for c in made.cables]
    assert len(ports) == len(set(ports))
    limits = {"leaf": 48 + 2, "aggregation": 32, "core": 32}
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
    later = ["provision", "power", "backbone"]
    assert list(by_name) == ["bmc", "management", "switches", "storage1", "storage2", *later]
    assert set(by_name["bmc"].addresses) == set(design.pod.hosts())
    joined = {*by_name["switches"].addresses, *by_name["backbone"].addresses}
    assert joined == {switch.name for switch in design.switches}
    assert set(by_name["power"].addresses) == set(design.floor.pdus) <= ends
    assert set(by_name["provision"].addresses) == set(design.pod.hosts())
    assert str(by_name["bmc"].addresses["dgx0001"]) == "10.0.0.16"
    assert [network.vlan for network in by_name.values()] == [101, 102, 103, 0, 0, 104, 105, 106]


def test_a_wrong_network_is_refused() -> None:
    with pytest.raises(Refusal, match="is not an IPv4 network"):
        designed(4, fabrics={"management": {"network": "10.0.0.0/33"}})
    assert designed(4, fabrics={"management": {"network": "192.168.0.0/16"}}).management is not None


def test_fast_ports_without_a_switch_for_them_are_told() -> None:
    design = designed(4, "dgx-h100", fabrics={"management": {"aggregation": {"ports": 32, "speed": "400Gb/s"}}})
    assert design.management is not None
    assert sum(c.b.startswith("mg-agg") and c.kind == "node" for c in design.management.cables) == 8


def test_every_network_has_an_ipv6_network_beside_it() -> None:
    networks = designed(31, "dgx-h100").networks
    assert len({network.subnet6 for network in networks}) == len(networks)
    assert all(network.subnet6.prefixlen == 64 and network.subnet6.is_private for network in networks)
    (bmc, *_) = networks
    assert (str(bmc.addresses["dgx0001"]), str(bmc.address6("dgx0001"))[-4:]) == ("10.0.0.16", "::10")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['nodes']}")
def test_no_address_of_version_0_2_has_changed(row: dict[str, str]) -> None:
    """The networks of that version, member by member, of pods that were designed with it."""
    hosts = [group(int(row["nodes"]), row["model"]), HOSTS]
    fabrics = {"compute": {"nodes_planned": int(row["planned"])}}
    fast = {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "60GB/s"}
    storage = [fast, {"name": "home", "kind": "nfs"}]
    lines = []
    for network in designed(1, nodes=hosts, fabrics=fabrics, storage=storage).networks:
        if network.name not in ("provision", "power", "backbone"):
            length = network.subnet.prefixlen
            lines += [f"{network.name},{name},{address}/{length}" for name, address in network.addresses.items()]
    assert sha256("\n".join(lines).encode()).hexdigest() == row["sha256"]


@pytest.mark.parametrize("nodes", [4, 64])
def test_each_controller_of_storage_has_a_port_and_an_address(nodes: int) -> None:
    netapp = {"name": "home", "kind": "netapp", "model": "netapp-aff-a800", "bandwidth": "100GB/s"}
    design = designed(nodes, "dgx-h100", storage=[netapp])
    made = design.management
    assert made is not None
    cables = [cable for cable in made.cables if cable.kind == "controller"]
    assert [(cable.a, cable.a_port) for cable in cables] == [(f"home-{block:02d}", 2) for block in range(1, 5)]
    network = made.networks[-1]
    assert (network.name, list(network.addresses)) == ("controllers", [f"home-{block:02d}-c2" for block in range(1, 5)])
    said = leaf_losses(made.cables)
    firsts = {cable.b for cable in made.cables if cable.a.startswith("home-") and cable.kind == "node"}
    if nodes == 64:
        # The two controllers of a block hang on two switches: neither takes the block with it.
        assert firsts.isdisjoint({cable.b for cable in cables})
        assert not any("home" in text for name in firsts for text in said[name].values())


def test_controllers_of_blocks_that_come_later_keep_their_places() -> None:
    storage = [{"name": "home", "kind": "netapp", "model": "netapp-ontap-ai"}]
    ib = {"storage": {"switch": "qm8700"}, "compute": {"nodes_planned": 80}}
    old, new = (designed(nodes, "dgx-a100", storage=storage, fabrics=ib) for nodes in (20, 80))
    growth = new.growth_from(old)
    assert not growth.moved
    assert not growth.removed
    assert sum(cable.kind == "controller" for cable in growth.added) == 15


@settings(max_examples=15)
@given(
    st.integers(1, 200),
    st.sampled_from(["dgx-a100", "dgx-h100", "dgx-b300"]),
    st.sampled_from([{}, {"switch": {"ports": 24}}, {"aggregation": {"ports": 8, "speed": "100Gb/s"}}]),
)
def test_it_is_one_network(nodes: int, model: str, management: dict[str, Any]) -> None:
    """The site's network reaches every device, and so it does when any switch that joins others is lost."""
    design = designed(nodes, model, nodes=[group(nodes, model), HOSTS], fabrics={"management": management})
    assert not any(lose(design, []).cut_off.values())
    made = design.management
    assert made is not None
    said = leaf_losses(made.cables)
    joining = [switch.name for switch in made.switches if switch.tier != "leaf"]
    for name in [*said, *joining[:2], *joining[-2:]]:
        cut_off = lose(design, [name]).cut_off
        found = {network: set(cut_off[network]) for network in ("management", "bmc")}
        assert found == {network: set(expand(said.get(name, {}).get(network, ""))) for network in found}


def expand(text: str) -> list[str]:
    return expand_hosts(text) if text else []


def test_a_large_pod_has_three_tiers_of_management_switches() -> None:
    design = designed(1000, "dgx-h100")
    assert design.management is not None
    count = {tier: design.management.count(tier) for tier in ("leaf", "aggregation", "core")}
    assert count == {"leaf": 55, "aggregation": 72, "core": 6}
    assert Counter(cable.kind for cable in design.management.cables)["site"] == 2
    assert lose(design, ["mg-core-1-01"]).cut_off["management"] == []


def test_switches_with_too_few_ports_are_refused() -> None:
    with pytest.raises(Refusal, match="a node has 2 management ports, and a switch of 3 has 1 for it"):
        designed(2, fabrics={"management": {"switch": {"ports": 3}}})
    with pytest.raises(Refusal, match="a switch of 3 ports cannot join others"):
        designed(2, fabrics={"management": {"aggregation": {"ports": 3}}})


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
