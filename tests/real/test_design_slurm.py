"""The topology that `podwright design` exports, read back from a real Slurm controller.

A controller without nodes is enough: reading the file is its own work. topology.yaml is tried where Slurm is 25.05 or
later, blocks where it is 23.11 or later, as older ones do not know them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.bringup.plan.slurm import Version, render
from podwright.cli.main import main
from podwright.lab import processes
from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.slurm.site import CONTROLLER, site
from podwright.spec import SlurmScheduler, expand_hosts, load_pod
from tests.real.clients import PATIENCE_S
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("lab")]

POD = """\
name: wired
nodes: [{{hosts: "dgx[001-{nodes:03d}]", model: {model}}}]
schedulers: [{{kind: slurm, folder: /scratch}}]
"""
SWITCH = re.compile(r"SwitchName=(\S+) Level=(\d+) .*?Nodes=(\S+)")
UNIT = 20
BLOCK = re.compile(r"^BlockName=(\S+) .*?Nodes=(\S+)", re.MULTILINE)
YAML_SINCE: Version = (25, 5)
BLOCKS_SINCE: Version = (23, 11)


def installed() -> Version:
    said = subprocess.check_output(["slurmctld", "-V"], text=True) if shutil.which("slurmctld") else "0.0"
    major, minor = said.split()[-1].split(".")[:2]
    return int(major), int(minor)


FORMATS = ["topology.conf", *(["topology.yaml"] if installed() >= YAML_SINCE else [])]


@pytest.fixture(scope="module")
def lab() -> Iterator[SlurmLab]:
    """A small one, for its munge and its controller's machine; the hosts of the designs have addresses there."""
    with slurm_lab(nodes=1) as made:
        with (made.folder / "etc" / "hosts").open("a") as hosts:
            hosts.writelines(f"10.77.200.{number} dgx{number:03d}\n" for number in range(1, 141))
        yield made


class Controller:
    """A second controller on the lab's control machine, with files of its own; it ends with that machine."""

    def __init__(self, lab: SlurmLab, name: str, port: int) -> None:
        self.lab, self.port = lab, port
        self.folder = lab.folder / "etc" / name
        self.seen = f"{INSIDE}/etc/{name}"

    def write(self, pod_file: Path) -> None:
        """Slurm's files of the pod but for the topology, which comes from the design."""
        pod = load_pod(pod_file)
        scheduler = pod.scheduler("slurm")
        assert isinstance(scheduler, SlurmScheduler)
        facts = site(self.lab.shape, installed())
        settings = {**facts.settings, "SlurmctldPort": str(self.port)}
        own = {"config": self.seen, "state": self.seen, "logs": self.seen, "run": self.seen, "lines": ()}
        self.folder.mkdir()
        for name, text in render(pod, scheduler, replace(facts, settings=settings, **own)).items():
            if name != "topology.conf":
                (self.folder / name).write_text(text)

    def start(self) -> None:
        self.lab.machines.start_daemons([CONTROLLER], ["slurmctld", "-f", f"{self.seen}/slurm.conf"])
        assert processes.until(lambda: " is UP" in self.call("scontrol", "ping"), PATIENCE_S), self.log()

    def call(self, *words: str) -> str:
        return self.lab.machines.run(CONTROLLER, ["env", f"SLURM_CONF={self.seen}/slurm.conf", *words]).stdout

    def log(self) -> str:
        return (self.folder / "slurmctld.log").read_text()


@pytest.mark.parametrize("file", FORMATS)
@pytest.mark.parametrize("nodes", [20, 100, 140])
def test_slurm_reads_the_topology_of_a_design(
    nodes: int, file: str, lab: SlurmLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod_file = tmp_path / "pod.yaml"
    pod_file.write_text(POD.format(nodes=nodes, model="dgx-a100"))
    assert main(["design", str(pod_file), "--out", str(tmp_path)]) == 0, capsys.readouterr().err
    controller = Controller(lab, f"design-{nodes}-{file}", 6900 + 2 * nodes + FORMATS.index(file))
    controller.write(pod_file)
    [exported] = tmp_path.rglob(file)
    shutil.copy(exported, controller.folder)
    controller.start()
    told = controller.call("scontrol", "show", "topology")
    found = {name: (int(level), expand_hosts(hosts)) for name, level, hosts in SWITCH.findall(told)}
    hosts = [f"dgx{number:03d}" for number in range(1, nodes + 1)]
    units = [hosts[at : at + UNIT] for at in range(0, nodes, UNIT)]
    leaves = {f"su{number}": (0, unit) for number, unit in enumerate(units, 1)}
    assert found == leaves | ({"spine": (1, hosts)} if len(units) > 1 else {})
    assert not [line for line in controller.log().splitlines() if "error" in line and "switch" in line.lower()]


if installed() >= BLOCKS_SINCE:

    def test_slurm_reads_the_blocks_of_a_design(
        lab: SlurmLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A domain of NVLink is a block; the last one is not full."""
        pod_file = tmp_path / "pod.yaml"
        pod_file.write_text(POD.format(nodes=40, model="dgx-gb200"))
        assert main(["design", str(pod_file), "--out", str(tmp_path)]) == 0, capsys.readouterr().err
        controller = Controller(lab, "design-nvl72", 7400)
        controller.write(pod_file)
        assert "TopologyPlugin=topology/block\n" in (controller.folder / "slurm.conf").read_text()
        shutil.copy(tmp_path / "slurm" / "block" / "topology.conf", controller.folder)
        controller.start()
        told = controller.call("scontrol", "show", "topology")
        found = {name: expand_hosts(hosts) for name, hosts in BLOCK.findall(told)}
        hosts = [f"dgx{number:03d}" for number in range(1, 41)]
        assert found == {"nvl01": hosts[:18], "nvl02": hosts[18:36], "nvl03": hosts[36:]}, told
        assert not [line for line in controller.log().splitlines() if "error" in line and "block" in line.lower()]
