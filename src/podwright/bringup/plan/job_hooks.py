"""Prolog and epilog that a site can install: which job has which GPU, and no job on a node that is not well.

The scripts are the same everywhere, POSIX sh with coreutils and scontrol; what differs between nodes is in hooks.conf.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from podwright.bringup.plan.slurm import kinds_of

if TYPE_CHECKING:
    from podwright.spec import Pod, SlurmScheduler

SCRIPTS = {
    name: (files("podwright.bringup.plan") / "hooks" / name).read_text()
    for name in ("prolog.sh", "epilog.sh", "gpus.sh", "health.sh")
}
CONFIG = "hooks.conf"


@dataclass(frozen=True)
class Hooks:
    """What the hooks of one kind of node look at, and where they write."""

    folder: str = "/etc/slurm/podwright"
    """Where the scripts and their configuration lie on a node, owned and written by root alone."""
    gpus: int = 0
    devices: str = "/dev/nvidia"
    nvidia_smi: str = "/usr/bin/nvidia-smi"
    """Asked for the GPUs too where it is there; empty: never."""
    memory_mib: int = 0
    mounts: tuple[str, ...] = ()
    """File systems without which a node takes no job."""
    free_mib: Mapping[str, int] = field(default_factory=lambda: {"/tmp": 1024})
    """The least free space of folders."""
    dcgm_folder: str = "/run/podwright/gpu-jobs"
    """For dcgm-exporter's --hpc-job-mapping-dir; empty: not written."""
    jobstats_folder: str = "/run/gpustat"
    """Where jobstats looks; empty: not written."""
    scontrol: str = "scontrol"
    """Slurm's command, with its path where it is in none of the usual folders."""
    proc: str = "/proc"


def hooks_of(pod: Pod, scheduler: SlurmScheduler) -> list[tuple[list[str], Hooks]]:
    """Return the hosts of each kind with their hooks: its GPUs, the memory that slurm.conf says, the pod's mounts."""
    mounts = tuple(storage.mount for storage in pod.storage if storage.mount)
    return [
        (kind.hosts, Hooks(gpus=kind.gpu_count, memory_mib=kind.memory_mib, mounts=mounts))
        for kind in kinds_of(pod, scheduler)
    ]


def render(hooks: Hooks) -> dict[str, str]:
    """Return every file by its name in the folder; all are to be root's, the two hooks and health.sh executable."""
    return {**SCRIPTS, CONFIG: _config(hooks)}


def settings(hooks: Hooks) -> dict[str, str]:
    """Return what slurm.conf must say.

    Alloc: the hooks run on every node of a job before it starts, not with its first step there. Without the scheduler's
    parameter a job that met a bad node would be held instead of going to another one; where SchedulerParameters is set
    already, it is to be added there.
    """
    return {
        "Prolog": f"{hooks.folder}/prolog.sh",
        "Epilog": f"{hooks.folder}/epilog.sh",
        "PrologFlags": "Alloc",
        "HealthCheckProgram": f"{hooks.folder}/health.sh",
        "HealthCheckInterval": "300",
        "HealthCheckNodeState": "IDLE",
        "SchedulerParameters": "nohold_on_prolog_fail",
    }


def _config(hooks: Hooks) -> str:
    space = " ".join(f"{folder}={least}" for folder, least in hooks.free_mib.items())
    rows = (
        ("GPUS", hooks.gpus, "GPUs that must be there; 0: none is looked for"),
        ("GPU_DEVICES", hooks.devices, "their device files, without the number"),
        ("NVIDIA_SMI", hooks.nvidia_smi, "asked for the GPUs too where it is there; empty: never"),
        ("MEMORY_MIB", hooks.memory_mib, "the least memory"),
        ("MOUNTS", " ".join(hooks.mounts), "file systems that must be mounted, with blanks between"),
        ("FREE_MIB", space, "the least free space: FOLDER=MIB, with blanks between"),
        ("DCGM_FOLDER", hooks.dcgm_folder, "for dcgm-exporter --hpc-job-mapping-dir; empty: not written"),
        ("JOBSTATS_FOLDER", hooks.jobstats_folder, "for jobstats; empty: not written"),
        ("SCONTROL", hooks.scontrol, "with its path where it is in none of the usual folders"),
        ("PROC", hooks.proc, "where the kernel reports GPUs, memory and mounts"),
    )
    head = "# What the hooks of Podwright look at on this node, and where they write. Read by /bin/sh.\n"
    return head + "".join(f"# {meaning}\n{name}={shlex.quote(str(value))}\n" for name, value, meaning in rows)
