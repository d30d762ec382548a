"""Whose readings these are: nodes on one machine share its disks, its network and its power."""

import json
import re
from array import array
from collections.abc import Mapping
from typing import Any

from podwright.analysis.data import ReportData, Track
from podwright.analysis.ranks import story_of
from podwright.report import render_run
from podwright.report.charts import charts_of
from podwright.report.verdict import figures_of
from tests.unit.report.made import made

NOTE = "of the machine: other programs may count too"
TIMES = array("d", [0.0, 1.0, 2.0])
OWN, OF_MACHINE = ("cpu_percent", "memory_used_bytes"), ("disk_written_bytes_total", "net_sent_bytes_total")


def readings(nodes: int, *names: str) -> Mapping[tuple[int, str], Track]:
    track = Track(TIMES, array("d", [0.0, 1800.0, 3600.0]))
    return {(node, name): track for name in names for node in range(nodes)}


def run(hosts: list[str], *names: str, engine: str = "local") -> ReportData:
    record = {"id": "x", "state": "succeeded", "hosts": hosts, "nodes": len(hosts)}
    return made(record, {"engine": engine}, 2.0, readings=readings(len(hosts), *names))


def lines_of(data: ReportData) -> dict[str, list[str]]:
    drawn, _ = charts_of(story_of(data))
    return {chart.kind.key: [line.label for line in chart.lines] for chart in drawn}


def notes_of(data: ReportData) -> dict[str, str]:
    drawn, _ = charts_of(story_of(data))
    return {chart.kind.key: chart.note for chart in drawn}


def payload_of(page: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    return payload


def test_disk_and_network_of_nodes_on_one_machine_are_one_line_that_says_so() -> None:
    data = run(["station", "station"], *OWN, *OF_MACHINE)
    machine = ["station, whole machine"]
    own = ["node0", "node1"]
    assert lines_of(data) == {"cpu-use": own, "memory": own, "net-sent": machine, "disk-written": machine}
    assert notes_of(data) == {"cpu-use": "", "memory": "", "net-sent": NOTE, "disk-written": NOTE}


def test_nodes_on_machines_of_their_own_keep_their_names() -> None:
    data = run(["a", "b"], *OWN, *OF_MACHINE, engine="slurm")
    assert set(map(tuple, lines_of(data).values())) == {("a", "b")}
    assert set(notes_of(data).values()) == {""}


def test_one_node_on_this_machine_is_not_alone_on_it() -> None:
    data = run(["station"], *OWN, *OF_MACHINE)
    assert set(notes_of(data).values()) == {NOTE}
    assert set(notes_of(run(["station"], *OWN, *OF_MACHINE, engine="slurm")).values()) == {""}


def test_the_page_shows_the_line_once_with_its_note() -> None:
    page = render_run(run(["station", "station"], *OF_MACHINE))
    assert [len(chart["lines"]) for chart in payload_of(page)["charts"]] == [1, 1]
    assert page.count(f'<span class="unit">{NOTE}</span>') == 2
    assert page.count('<th scope="row">station, whole machine</th>') == 2


def test_energy_of_one_machine_is_counted_once() -> None:
    counters = ("cpu_energy_joules_total", "gpu.0.energy_joules_total")
    energy = {}
    for hosts in (["station", "station"], ["a", "b"]):
        figures = figures_of(story_of(run(hosts, *counters)))
        energy[hosts[0]] = next(figure.value for figure in figures if figure.label == "Energy")
    assert energy == {"station": "2 Wh", "a": "4 Wh"}
