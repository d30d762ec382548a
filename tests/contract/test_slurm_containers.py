"""Runs in containers on a real Slurm, over two nodes: Charliecloud, an OCI bundle through runc, and Pyxis' options.

No package brings Pyxis itself: a small plugin of our own takes the same options. What else is not to be had (Apptainer)
is held by golden files of what is rendered.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.slurm.site import CONTROLLER
from podwright.launch import Run, pods
from tests.contract.sites import END_S, SlurmSite, until
from tests.real import images
from tests.real.labs import slurm_lab
from tests.real.serving import serving
from tests.real.test_staging import PROGRAM, expected, make_files, seen, select

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm-containers")]

KINDS = ("pyxis", "charliecloud", "oci")
PLUGIN = Path(__file__).parent.parent / "fakes" / "spank_container.c"
# Ranks say which file system they are in and what data they see, then count.
TELL = 'cat /etc/image 2>/dev/null || echo "none"; cat {data.words}/text; exec python3 count.py %s'
# %u is the user, %n the node, %j the job, %s the step, %t the task, %b the bundle. State goes to the shared memory:
# it is each node's own and goes with it, and all else the nodes of a lab have in common.
OCI = """\
RunTimeQuery="runc --rootless=true --root=/dev/shm/runc-%u state %n.%j.%s.%t"
RunTimeKill="runc --rootless=true --root=/dev/shm/runc-%u kill -a %n.%j.%s.%t KILL"
RunTimeDelete="runc --rootless=true --root=/dev/shm/runc-%u delete --force %n.%j.%s.%t"
RunTimeRun="runc --rootless=true --root=/dev/shm/runc-%u run %n.%j.%s.%t -b %b"
"""


@dataclass(frozen=True)
class Place:
    """A lab whose user has the image at hand, as a folder and as a bundle, and data outside of all it mounts anyway."""

    lab: SlurmLab
    image: dict[str, Path]
    data: Path


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    data = Path(tempfile.mkdtemp(prefix="pwdata-", dir="/var/tmp"))
    try:
        data.chmod(0o755)
        (data / "text").write_text("data from outside\n")
        with slurm_lab(nodes=2, accounting=False) as lab:
            bundle = images.bundle(lab.shared / "bundle", lab.user, [str(data)])
            (lab.folder / "etc" / "oci.conf").write_text(OCI)
            add_plugin(lab)
            lab.machines.run("ctl", ["scontrol", "reconfigure"])
            root = bundle / "rootfs"
            yield Place(lab, {"pyxis": root, "charliecloud": root, "oci": bundle}, data)
    finally:
        shutil.rmtree(data)


def add_plugin(lab: SlurmLab) -> None:
    built = lab.folder / "bin" / "spank_container.so"
    subprocess.run(["gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(built), str(PLUGIN)], check=True)
    (lab.folder / "etc" / "plugstack.conf").write_text(f"required {built}\n")


class ContainerSite(SlurmSite):
    """The lab, with the runtime that its pod file names."""

    def __init__(self, place: Place, kind: str, folder: Path) -> None:
        super().__init__(place.lab, folder)
        self.image, self.data, self.target = place.image[kind], place.data, f"lab-{kind}"
        pod = yaml.safe_load(place.lab.pod_file.read_text())
        pod["name"] = self.target
        pod["schedulers"][0]["container"] = kind
        pod["cache"] = {"path": str(place.lab.shared / f"{kind} of $USER")}
        path = folder / "pod.yaml"
        path.write_text(json.dumps(pod))
        pods.add(self.home, path)

    def count(self, arguments: str, **fields: Any) -> Run:
        """The one workload of these tests: only what is tried is added."""
        command = json.dumps(["sh", "-c", TELL % arguments])
        data = json.dumps({"words": str(self.data)})
        return self.start(command=command, image=self.image, data=data, nodes=2, **fields)

    def said(self, run: Run, text: str) -> set[int | None]:
        """The ranks that said a line."""
        return {line.rank for line in run.logs() if line.text == text}


@pytest.fixture(params=KINDS)
def containers(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[ContainerSite]:
    site = ContainerSite(place, request.param, tmp_path)
    yield site
    site.close()


def test_a_run_in_a_container_sees_its_image_its_data_and_the_other_node(containers: ContainerSite) -> None:
    run = containers.count("--steps 3")
    record = run.wait(END_S)
    assert (record.state, record.world_size, record.results["step"]) == ("succeeded", 2, 3), run.explain()
    assert containers.said(run, images.NAME) == {0, 1}
    assert containers.said(run, "data from outside") == {0, 1}
    assert {event["host"] for event in containers.events(run, "pilot")} == {"n1", "n2"}
    owner = (containers.lab.shared / "runs" / run.id / "checkpoints" / "rank1").stat()
    assert (owner.st_uid, owner.st_gid) == (containers.lab.user.uid, containers.lab.user.gid)


REWRITE = """\
cd "$PODWRIGHT_FOLDER"
for path in job/* token new; do (echo evil >"$path") 2>/dev/null && echo "rewrote $path"; done
for path in results checkpoints record lease; do touch "$path/new" && echo "wrote $path"; done
"""


@pytest.mark.parametrize("containers", ["pyxis"], indirect=True)
def test_what_is_run_outside_can_only_be_read_inside(containers: ContainerSite) -> None:
    run = containers.start(command=json.dumps(["sh", "-c", REWRITE]), image=containers.image)
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert [line.text for line in run.logs()] == ["wrote results", "wrote checkpoints", "wrote record", "wrote lease"]


@pytest.mark.parametrize("containers", ["pyxis", "charliecloud"], indirect=True)
def test_data_that_lies_elsewhere_is_brought_inside(containers: ContainerSite, tmp_path: Path) -> None:
    frames, lab = make_files(tmp_path / "frames"), containers.lab
    code = tmp_path / "look"
    code.mkdir()
    (code / "look.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)
    host = lab.machines.addresses[CONTROLLER].partition("/")[0]
    with serving(lab.machines, CONTROLLER, host, tmp_path / "frames", tmp_path / "counts") as server:
        select(containers.session, server.address, frames)
        data = "{frames: 'selection:far'}"
        command = "python3 look.py {data.frames}"
        run = containers.start(command=command, code=str(code), image=containers.image, data=data, nodes=2)
        assert run.wait(END_S).state == "succeeded", run.explain()
        assert server.sent() == sum(path.stat().st_size for path in frames)
    assert seen(run) == {expected(frames)}


def test_the_same_file_runs_bare(containers: ContainerSite) -> None:
    run = containers.count("--steps 3", runtime="bare")
    record = run.wait(END_S)
    assert (record.state, record.world_size, record.results["step"]) == ("succeeded", 2, 3), run.explain()
    assert containers.said(run, "none") == {0, 1}


def test_a_rank_that_fails_in_a_container_is_told_and_starts_again(containers: ContainerSite) -> None:
    run = containers.count("--steps 4 --fail-at 3 --rank 1", retries=1)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    [failed] = containers.events(run, "failed")
    assert (failed["rank"], failed["code"], failed["tail"][-1]) == (1, 7, "it went wrong here")


def test_a_run_in_a_container_that_is_cancelled_leaves_nothing(containers: ContainerSite) -> None:
    run = containers.count("--steps 2000 --daemon", grace="2s")
    containers.wait_step(run, 2)
    run.cancel()
    assert run.wait(END_S).state == "cancelled", run.explain()
    until(lambda: not containers.processes(run), "all its processes are gone")


def test_a_pilot_that_is_killed_in_a_container_is_replaced(containers: ContainerSite) -> None:
    run = containers.count("--steps 6 --hold-at 3")
    containers.wait_step(run, 3)
    containers.kill_pilot(run, 1)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    told = containers.steps(run, 0)
    assert sorted(set(told)) == list(range(1, 7))
