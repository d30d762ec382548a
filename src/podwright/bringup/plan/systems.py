"""What differs among operating systems of hosts, what ran on which, and packages that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.host import HostPlan
    from podwright.bringup.plan.slurm import Version
    from podwright.spec import Pod


@dataclass(frozen=True)
class HostSystem:
    """One operating system, by its name in a pod's file."""

    release: str
    """As apt's sources call it."""
    slurm: Version
    """The release that it packages."""
    python: str
    headers: str
    """The package of the headers of whatever kernel is the newest."""
    sources: str
    """The file of its own sources of packages, which a site with an archive does without."""
    unchecked: str = ""
    """What of this row, and of names that are Debian 12's, nobody has looked up or run; empty where `up` ran on it."""


_NAMES = "names of packages and services are Debian 12's and were not looked up; `up` never ran on it"
# Slurm: Debian's by its own archive (2026-11), Ubuntu's by what we remember of slurm-wlm in jammy and noble: unchecked.
SYSTEMS: Mapping[str, HostSystem] = {
    "debian-12": HostSystem("bookworm", (22, 5), "3.11", "linux-headers-amd64", "debian.sources"),
    "debian-13": HostSystem(
        "trixie", (24, 11), "3.13", "linux-headers-amd64", "debian.sources", "rendered; `up` never ran on it"
    ),
    "ubuntu-22.04": HostSystem("jammy", (21, 8), "3.10", "linux-headers-generic", "ubuntu.sources", _NAMES),
    "ubuntu-24.04": HostSystem("noble", (23, 11), "3.12", "linux-headers-generic", "ubuntu.sources", _NAMES),
}

# Packages that no system above has, by how their names begin, and who publishes them.
_ELSEWHERE: Mapping[str, str] = {
    "kubeadm": "https://pkgs.k8s.io/core:/stable:/v1.35/deb/, suite /",
    "nvidia-": "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/, suite /",
    "enroot": "NVIDIA's releases of Enroot, in a source of the site's own",
    "lustre-client": "Whamcloud's releases, in a source of the site's own",
}


def check_tested(pod: Pod, accepts_untested: bool) -> None:
    """Refuse a system that `up` never ran on, unless whoever calls knows that."""
    system = SYSTEMS[pod.bringup.os]
    if system.unchecked and not accepts_untested:
        hint = "`podwright pod up POD --untested`, on one host first: `--limit HOST`"
        raise refuse(f"{pod.bringup.os}: {system.unchecked}", hint=hint, field="bringup.os")


def check_origins(pod: Pod, plans: Iterable[HostPlan]) -> None:
    """Refuse packages that can come from nowhere: no system has them, and the file names neither source nor archive."""
    if pod.bringup.sources or pod.bringup.archive:
        return
    wanted: dict[str, None] = {}
    for host in plans:
        wanted |= dict.fromkeys(host.packages())
    for name in wanted:
        for beginning, publisher in _ELSEWHERE.items():
            if name.startswith(beginning):
                hint = f"name one below `bringup.sources`; it is published at {publisher}"
                raise refuse(f"{name} can come from nowhere: {pod.bringup.os} has no such package", hint=hint)
