"""The hooks as files, and what they do when a shell runs them beside a made-up kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import spec
from podwright.bringup.plan.job_hooks import SCRIPTS, Hooks, hooks_of, render, settings
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "jobhooks"
POD = """\
name: adas
nodes:
  - {hosts: "dgx[001-140]", model: dgx-a100}
  - {hosts: "cpu[1-2]", model: {title: a server, sockets: 2, cores: 64, threads: 128, memory: 512GiB}}
storage: [{name: fast, kind: lustre, mount: /scratch}, {name: home, kind: nfs}]
schedulers: [{kind: slurm}]
"""
SHELLS = ["dash", "bash --posix"]
Golden = Callable[[Path, str], None]


def adas(folder: Path) -> list[tuple[list[str], Hooks]]:
    (folder / "pod.yaml").write_text(POD)
    pod = spec.load_pod(folder / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.SlurmScheduler)
    return hooks_of(pod, scheduler)


def test_files_of_a_pod(tmp_path: Path, golden: Golden) -> None:
    for hosts, hooks in adas(tmp_path):
        written = render(hooks)
        golden(CASES / hosts[0] / "hooks.conf", written.pop("hooks.conf"))
    for name, text in written.items():
        golden(CASES / name, text)
    keys = "".join(f"{key}={value}\n" for key, value in settings(hooks).items())
    golden(CASES / "slurm.conf", keys)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_posix_shell_reads_them(name: str, shell: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SCRIPTS[name])
    done = subprocess.run([shell, "-n", str(tmp_path / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Node:
    """A folder that the hooks take for a node of two GPUs; their device files and PCI addresses differ in order."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, ""
        for address, minor in (("0000:07:00.0", 1), ("0000:0b:00.0", 0)):
            self.write(f"proc/driver/nvidia/gpus/{address}/information", f"Model: \t A100\nDevice Minor: \t {minor}\n")
        self.write("proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 3 kB\n")
        self.write("proc/mounts", "proc /proc proc rw 0 0\nnas:/s /scratch nfs4 rw 0 0\n")
        (folder / "dev").mkdir()
        for number in (0, 1):
            (folder / "dev" / f"nvidia{number}").symlink_to("/dev/null")
        self.write("bin/scontrol", '#!/bin/sh\nprintf "%s\\n" "$@" >"${0%/*}/../told"\n', 0o755)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def call(self, script: str, shell: str = "dash", *words: str, **given: object) -> int:
        """Runs a hook as slurmd would: with nothing on its PATH, and Slurm's variables."""
        wanted = {
            "gpus": 2,
            "devices": f"{self.folder}/dev/nvidia",
            "nvidia_smi": "",
            "memory_mib": 1024,
            "mounts": ("/scratch",),
            "free_mib": {str(self.folder): 0},
            "dcgm_folder": f"{self.folder}/dcgm",
            "jobstats_folder": f"{self.folder}/jobstats",
            "scontrol": f"{self.folder}/bin/scontrol",
            "proc": f"{self.folder}/proc",
        }
        for name, text in render(Hooks(**{**wanted, **given.pop("hooks", {})})).items():  # type: ignore[dict-item]
            self.write(f"hooks/{name}", text)
        environ = {"SLURM_JOB_ID": "42", "SLURM_JOB_UID": "1000", "SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0,1"}
        command = [*shell.split(), str(self.folder / "hooks" / script), *words]
        chosen = {**environ, **{name: str(value) for name, value in given.items()}}
        done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        self.said = done.stdout
        return done.returncode

    def found(self, folder: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted((self.folder / folder).glob("*"))}

    @property
    def told(self) -> list[str]:
        path = self.folder / "told"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_maps_are_written_and_removed(node: Node, shell: str) -> None:
    assert node.call("prolog.sh", shell, SLURM_JOB_GPUS="1") == 0
    # Device file 1 is the GPU with the lowest PCI address, which the exporters call 0.
    assert node.found("dcgm") == {"0": "42\n"}
    assert node.found("jobstats") == {"0": "42 1000\n"}
    assert node.call("prolog.sh", shell, SLURM_JOB_GPUS="0", SLURM_JOB_ID="43") == 0
    assert node.found("dcgm") == {"0": "42\n", "1": "43\n"}
    assert node.call("epilog.sh", shell, SLURM_JOB_GPUS="1") == 0
    assert (node.found("dcgm"), node.found("jobstats")) == ({"1": "43\n"}, {"1": "43 1000\n"})
    assert node.told == []


def test_a_late_epilog_leaves_the_next_job_alone(node: Node) -> None:
    assert node.call("prolog.sh", SLURM_JOB_ID="50") == 0
    assert node.call("epilog.sh", SLURM_JOB_ID="42") == 0
    assert node.found("dcgm") == {"0": "50\n", "1": "50\n"}


def test_jobs_without_gpus_write_nothing(node: Node) -> None:
    assert node.call("prolog.sh", SLURM_JOB_GPUS="") == 0
    assert not (node.folder / "dcgm").exists()


def test_a_mig_device_is_named_for_jobstats(node: Node) -> None:
    assert node.call("prolog.sh", CUDA_VISIBLE_DEVICES="MIG-265a219d-a49f,MIG-11") == 0
    assert node.found("jobstats") == {"MIG-11": "42 1000\n", "MIG-265a219d-a49f": "42 1000\n"}
    assert not (node.folder / "dcgm").exists()


def test_a_folder_that_is_left_empty_is_not_written(node: Node) -> None:
    assert node.call("prolog.sh", hooks={"dcgm_folder": "", "jobstats_folder": ""}) == 0
    assert {path.name for path in node.folder.iterdir()} == {"bin", "dev", "hooks", "proc"}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("hooks", "reason"),
    [
        ({"gpus": 3}, "GPU 2 is gone: there is no {}/dev/nvidia2"),
        ({"memory_mib": 2048}, "memory is 1024 MiB, less than 2048"),
        ({"mounts": ("/scratch", "/data")}, "/data is not mounted"),
        ({"free_mib": {"/nowhere": 5}}, "/nowhere has no MiB free, less than 5"),
        ({"memory_mib": 2048, "mounts": ("/data",)}, "memory is 1024 MiB, less than 2048;/data is not mounted"),
    ],
)
def test_a_node_that_is_not_well_is_drained(node: Node, shell: str, hooks: dict[str, object], reason: str) -> None:
    assert node.call("prolog.sh", shell, hooks=hooks) == 1
    words = f"podwright: {reason.format(node.folder)}"
    assert node.told == ["update", "NodeName=n1", "State=DRAIN", f"Reason={words}"]
    assert not (node.folder / "dcgm").exists()
    assert node.call("epilog.sh", shell, hooks=hooks) == 0
    assert node.call("health.sh", shell, hooks=hooks) == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_who_only_looks_drains_nothing_and_reads_the_reason(node: Node, shell: str) -> None:
    assert node.call("health.sh", shell, "look", hooks={"memory_mib": 2048}) == 1
    assert (node.said, node.told) == ("memory is 1024 MiB, less than 2048\n", [])


@pytest.mark.parametrize(("listed", "code"), [(2, 0), (1, 1)])
def test_the_driver_is_asked_for_its_gpus(node: Node, listed: int, code: int) -> None:
    lines = "".join(f"echo 'GPU {number}: A100'; echo '  MIG 1g.5gb'\n" for number in range(listed))
    node.write("bin/nvidia-smi", f"#!/bin/sh\n{lines}", 0o755)
    assert node.call("health.sh", hooks={"nvidia_smi": f"{node.folder}/bin/nvidia-smi"}) == code
    reason = ["Reason=podwright: the driver shows 1 of 2 GPUs"]
    assert node.told[3:] == (reason if code else [])
