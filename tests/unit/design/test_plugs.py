"""What is bought fits what is plugged: transceivers, twin cables and splitters, counted port by port in the files."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design import Design
from podwright.design.exports.tables import bill_of_materials, cable_plan, label_list
from podwright.design.sockets import panel_of
from podwright.spec import SwitchModel, library
from tests.unit.design.pods import designed

STORAGE = [{"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "480GB/s"}]
ONE_RACK = {"power": "90kW", "rack_units": 80}
Row = dict[str, str]


def rows(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def bought(design: Design, *words: str) -> int:
    """How many things the bill has whose line holds all these words."""
    bill = rows(bill_of_materials(design))
    return sum(int(row["count"]) for row in bill if all(word in row["item"] for word in words))


def plugged(design: Design, kind: str, medium: str) -> int:
    """Into how many ports all of one kind of a fabric's bill goes."""
    return sum(item.count * item.ends for item in design.bill() if (item.kind, item.name) == (kind, medium))


def cages(design: Design, medium: str) -> Counter[tuple[str, str]]:
    """The cages that cables of a medium end in, read from the plan: of port 3/2 of a panel the cage is 3."""
    used: Counter[tuple[str, str]] = Counter()
    for row in rows(cable_plan(design)):
        for side in "ab":
            if row["medium"] == medium:
                panel = row[f"panel_{side}"]
                cage = panel.partition("/")[0] if "/" in panel else panel
                if panel.startswith("OSFP"):
                    cage = panel[:5]
                used[(row[f"device_{side}"], f"{row['fabric']} {cage}")] += 1
    return used


@pytest.mark.parametrize(
    ("nodes", "model", "more"),
    [
        (31, "dgx-h100", {}),
        (127, "dgx-h100", {}),
        (127, "dgx-b200", {}),
        (72, "dgx-b300", {}),
        (4, "dgx-h100", {"racks": ONE_RACK}),
        (140, "dgx-a100", {}),
    ],
)
def test_a_bill_adds_up_port_by_port(nodes: int, model: str, more: dict[str, Any]) -> None:
    design = designed(nodes, model, storage=STORAGE, **more)
    links = Counter(row["medium"] for row in rows(cable_plan(design)))
    for medium, count in links.items():
        assert plugged(design, "cable", medium) == 2 * count
    used = cages(design, "fibre")
    assert bought(design, " transceiver, ") == len(used)
    assert sum(used.values()) == 2 * links["fibre"]
    # A cage with one port in use has a transceiver for two all the same.
    widths = Counter(_ports(design, device, cage) for device, cage in used)
    halves = sum(_ports(design, device, cage) - count for (device, cage), count in used.items())
    assert sum(width * count for width, count in widths.items()) == 2 * links["fibre"] + halves
    assert plugged(design, "transceiver", "transceiver") == 2 * links["fibre"] + halves


def _ports(design: Design, device: str, cage: str) -> int:
    twins = {switch.name for switch in design.switches if switch.fabric in ("compute", "storage")}
    if device in twins:
        return 2
    on_node = device in design.requirements.hosts and cage.startswith("compute OSFP")
    name = design.requirements.models[design.requirements.hosts[0]].name
    return 2 if on_node and name != "dgx-b300" else 1


def test_the_published_bill_of_127_dgx_h100() -> None:
    """SuperPOD reference architecture RA-11333, table of cables: 508 and 1,536 transceivers, 1,016 and 1,024 cables.

    Read in a note that cites it.
    """
    design = designed(127, "dgx-h100")
    assert bought(design, "compute transceiver", "2x400", "in a node") == 508
    assert bought(design, "compute transceiver", "2x400", "in a switch") == 1536
    assert bought(design, "compute cable, fibre") == 1016 + 1024 + 4
    assert bought(design, "compute transceiver, OSFP, 400 Gb/s") == 4


def test_copper_joins_twin_cages_that_belong_together_and_splits_to_single_ones() -> None:
    design = designed(4, "dgx-h100", racks=ONE_RACK, storage=STORAGE)
    assert len(design.floor.racks) == 1
    # A node's cage has ports of two rails, which end in two leaves: no cable with fixed plugs does that.
    media = {row["kind"]: row["medium"] for row in rows(cable_plan(design)) if row["fabric"] == "compute"}
    assert media["node_leaf"] == "fibre"
    assert bought(design, "storage splitter cable, dac, one to two QSFP112", "(MCP7Y10)") == 2
    twins = designed(31, "dgx-h100")
    spines = [row for row in rows(cable_plan(twins)) if (row["fabric"], row["kind"]) == ("compute", "leaf_spine")]
    assert {row["medium"] for row in spines} == {"dac"}
    assert bought(twins, "compute cable, dac, twin-port", "(MCP4Y10)") == len(spines) // 2 == 128


def test_what_is_plugged_into_quantum_x800_is_named() -> None:
    design = designed(72, "dgx-b300")
    assert bought(design, "compute transceiver, OSFP, 2x800 Gb/s", "in a switch (MMS4A00)") == 12 * 72
    assert bought(design, "compute transceiver, OSFP, 800 Gb/s", "in a node (MMS4A20)") == 8 * 72
    ethernet = {"compute": {"kind": "ethernet", "switch": "sn5600"}}
    assert bought(designed(64, "dgx-b300", fabrics=ethernet), "(MMS4A") == 0


def test_optics_in_the_switch_take_fibre_alone() -> None:
    design = designed(72, "dgx-b300", fabrics={"compute": {"switch": "q3450-ld"}})
    assert bought(design, "compute transceiver", "in a switch") == 0
    assert bought(design, "compute transceiver, OSFP, 800 Gb/s", "in a node (MMS4A20)") == 8 * 72
    assert bought(design, "compute cable, fibre, single-mode", "(MFP7E30)") == 2 * 8 * 72


def test_a_plug_has_one_label_whatever_it_carries() -> None:
    design = designed(4, "dgx-h100", racks=ONE_RACK, storage=STORAGE)
    plan, labels = rows(cable_plan(design)), rows(label_list(design))
    cables = Counter(row["cable"] for row in plan)
    split = next(row["cable"] for row in plan if row["label"] != row["cable"] and row["kind"] == "node_leaf")
    assert cables[split] == 2
    named = [(row["near"], row["far"]) for row in labels if row["cable"] == split]
    assert named == [
        ("st-leaf-u01-1 2 A01 U60", "dgx0003 Slot2 P1 A01 U39 and dgx0004 Slot2 P1 A01 U47"),
        ("dgx0003 Slot2 P1 A01 U39", "st-leaf-u01-1 2 A01 U60"),
        ("dgx0004 Slot2 P1 A01 U47", "st-leaf-u01-1 2 A01 U60"),
    ]
    lengths = {row["length_m"] for row in plan if row["cable"] == split}
    assert len(lengths) == 1
    twin = designed(31, "dgx-h100")
    ends = [row for row in rows(label_list(twin)) if row["cable"] == "leaf-u01-r1:17/1 - spine-01:1/1"]
    assert [row["near"].split()[:2] for row in ends] == [["leaf-u01-r1", "17"], ["spine-01", "1"]]


def test_what_panels_call_ports() -> None:
    plan = rows(cable_plan(designed(31, "dgx-h100")))
    assert plan[0]["label"] == "dgx0001:OSFP4P2 - leaf-u01-r1:1/1"
    assert (plan[0]["port_a"], plan[0]["port_b"]) == ("mlx5_0", "1")
    switch: SwitchModel = library("switches")["qm9700"]
    panels = [panel_of(switch, port)[0] for port in range(1, switch.ports + 1)]
    assert panels == [f"{cage}/{port}" for cage in range(1, 33) for port in (1, 2)]
    assert panel_of(library("switches")["qm8790"], 40) == ("40", "40")


def test_a_price_of_fibre_holds_its_transceivers_until_they_have_their_own() -> None:
    def amounts(**prices: float) -> dict[str, float | None]:
        design = designed(31, "dgx-h100", costs={"cable_prices": prices})
        return {item.kind: item.amount for item in design.bill() if item.fabric == "compute"}

    assert amounts()["transceiver"] is None
    assert amounts(fibre=100)["transceiver"] == 0
    assert amounts(fibre=100, transceiver=1000)["transceiver"] == 4000


@settings(max_examples=15)
@given(st.integers(1, 70), st.sampled_from(["dgx-a100", "dgx-h100", "dgx-b200", "dgx-b300"]), st.booleans())
def test_no_cage_takes_two_plugs(nodes: int, model: str, dense: bool) -> None:
    """A cage that one cable fills is not half full of another; what shares a cage is of one kind."""
    racks: dict[str, Any] = ONE_RACK if dense else {}
    design = designed(nodes, model, storage=STORAGE, racks=racks)
    media: dict[tuple[str, str], set[str]] = {}
    for laid in design.laid:
        for socket in design.sockets.ends(laid.cable):
            media.setdefault((socket.device, f"{laid.cable.fabric} {socket.cage}"), set()).add(laid.medium)
    assert {tuple(found) for found in media.values() if len(found) > 1} == set()
