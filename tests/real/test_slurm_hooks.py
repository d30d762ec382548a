"""Our prolog and epilog under a real slurmd: GPU maps come and go with jobs, and a bad node takes none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podwright.bringup.plan.job_hooks import Hooks, render, settings
from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.slurm.site import CONTROLLER
from tests.contract.sites import until
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm-hooks")]

# The machines of a lab share their files, and have mounts of their own.
MOUNT = "/mnt"
HOOKS = Hooks(
    folder=f"{INSIDE}/etc/hooks",
    gpus=8,
    devices=f"{INSIDE}/dev/nvidia",
    nvidia_smi="",
    memory_mib=64,
    mounts=(MOUNT,),
    free_mib={"/tmp": 1},
    dcgm_folder=f"{INSIDE}/run/gpu-jobs",
    jobstats_folder=f"{INSIDE}/run/gpustat",
)


def install(lab: SlurmLab) -> None:
    """Does what the guide tells a site to do."""
    folder = lab.folder / "etc" / "hooks"
    folder.mkdir(mode=0o755)
    for name, text in render(HOOKS).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    wanted = settings(HOOKS)
    conf = lab.folder / "etc" / "slurm.conf"
    parameters = f"SchedulerParameters={wanted.pop('SchedulerParameters')},"
    text = conf.read_text().replace("SchedulerParameters=", parameters)
    conf.write_text(text + "".join(f"{key}={value}\n" for key, value in wanted.items()))
    lab.restart_controller()
    assert lab.machines.run(CONTROLLER, ["scontrol", "reconfigure"]).returncode == 0


@pytest.fixture(scope="module")
def lab() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=2, accounting=False) as made:
        for node in made.shape.hosts():
            assert made.machines.run(node, ["mount", "-n", "-t", "tmpfs", "hooks", MOUNT]).returncode == 0
        install(made)
        yield made


@pytest.fixture(autouse=True)
def _all_well(lab: SlurmLab) -> Iterator[None]:
    yield
    lab.run(["scancel", "--me"])
    until(lambda: not lab.run(["squeue", "--noheader"]).stdout, "the queue is empty")
    names = ",".join(lab.shape.hosts())
    lab.machines.run(CONTROLLER, ["scontrol", "update", f"NodeName={names}", "State=RESUME"])
    until(lambda: set(lab.node_states().values()) == {"idle"}, "all nodes are back")


def submit(lab: SlurmLab, *options: str) -> str:
    done = lab.run(["sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600", *options])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def job_state(lab: SlurmLab, job: str) -> str:
    return lab.run(["squeue", "--noheader", f"--jobs={job}", "--format=%T %N"]).stdout.strip()


def maps(lab: SlurmLab, name: str) -> dict[str, str]:
    """What lies there now; a file may go, or get its name, while one looks."""
    texts = {}
    for path in sorted((lab.folder / "run" / name).glob("*")):
        with suppress(FileNotFoundError):
            texts[path.name] = path.read_text()
    return texts


def reason(lab: SlurmLab, node: str) -> str:
    return lab.run(["sinfo", "--noheader", f"--nodes={node}", "--partition=gpu", "--format=%t %E"]).stdout.strip()


def test_gpu_maps_come_and_go_with_jobs(lab: SlurmLab) -> None:
    first = submit(lab, "--nodelist=n1", "--gpus-per-node=2")
    second = submit(lab, "--nodelist=n1", "--gpus-per-node=1")
    expected = sorted([f"{first}\n", f"{first}\n", f"{second}\n"])
    # DCGM's file of a GPU comes a moment before that of jobstats.
    until(lambda: sorted(maps(lab, "gpu-jobs").values()) == expected, "three GPUs have files for DCGM")

    def owned() -> dict[str, str]:
        return {gpu: f"{job.strip()} {lab.user.uid}\n" for gpu, job in maps(lab, "gpu-jobs").items()}

    until(lambda: maps(lab, "gpustat") == owned(), "and for jobstats")
    lab.run(["scancel", first])
    until(lambda: set(maps(lab, "gpu-jobs").values()) == {f"{second}\n"}, "the files of the first job are gone")
    lab.run(["scancel", second])
    until(lambda: maps(lab, "gpu-jobs") == maps(lab, "gpustat") == {}, "no file is left")


def test_a_job_goes_elsewhere_when_a_mount_is_missing(lab: SlurmLab) -> None:
    assert lab.machines.run("n1", ["umount", MOUNT]).returncode == 0
    try:
        job = submit(lab, "--gpus-per-node=1")
        until(lambda: job_state(lab, job) == "RUNNING n2", "the job runs on the other node")
        assert reason(lab, "n1") == f"drain podwright: {MOUNT} is not mounted"
        assert reason(lab, "n2").endswith(" none")
    finally:
        assert lab.machines.run("n1", ["mount", "-n", "-t", "tmpfs", "hooks", MOUNT]).returncode == 0


def test_a_node_without_one_of_its_gpus_is_drained(lab: SlurmLab) -> None:
    gpu = Path(lab.folder, "dev", "nvidia7")
    gpu.unlink()
    try:
        submit(lab, "--nodelist=n2", "--gpus-per-node=1")
        until(lambda: reason(lab, "n2").startswith("drain"), "the node is drained")
        assert reason(lab, "n2") == f"drain podwright: GPU 7 is gone: there is no {INSIDE}/dev/nvidia7"
        assert maps(lab, "gpu-jobs") == {}
    finally:
        gpu.symlink_to("/dev/null")
