"""NVIDIA's part of a GPU node: driver, Fabric Manager, container toolkit with CDI, DCGM, SELinux, how GPUs are cut.

Rendered and compared with golden files; no machine with GPUs has run it yet.
"""

from __future__ import annotations

import json

from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.systems import SYSTEMS
from podwright.bringup.plan.template import unit_of
from podwright.spec.provisioning import NvidiaSettings

_HEAD = "# Written by `podwright pod up`.\n"
# The free driver of the kernel would hold the GPUs; and device files belong to everybody, since Slurm and Kubernetes
# decide by control groups who may use which.
_MODPROBE = """\
blacklist nouveau
options nouveau modeset=0
options nvidia NVreg_ModifyDeviceFiles=1 NVreg_DeviceFileMode=0666
"""
_CDI, _MIG = "podwright-cdi", "podwright-mig"
_LAYOUT = "/etc/nvidia-mig-manager/podwright.yaml"
# The policy of containers has a switch for GPUs, whose device files it knows by the name of the X server's. A host on
# which SELinux is not in force, or that has none, is as it should be.
_SWITCH = "container_use_xserver_devices"
_SELINUX = HostCommand(
    "SELinux lets containers use GPUs",
    check=("/bin/sh", "-c", f"{{ ! selinuxenabled || getsebool {_SWITCH} | grep -q 'on$'; }} 2>/dev/null && echo done"),
    sees="done",
    run=("setsebool", "-P", _SWITCH, "on"),
    tries=1,
)
# A module that was built just now is loaded; where the free driver of the kernel still holds the GPUs, the host must
# start again, and what loads it says so.
_LOADED = HostCommand(
    "NVIDIA's driver",
    check=("/bin/sh", "-c", "test -e /proc/driver/nvidia/version && echo loaded"),
    sees="loaded",
    run=(
        "/bin/sh",
        "-c",
        "modprobe nvidia || { dkms status; echo 'start the host again: its kernel holds the GPUs' >&2; exit 1; }",
    ),
    tries=1,
)
# How many parts of a size a GPU gives, by the slices that each takes.
_PARTS = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1}
# GPUs that talk through NVSwitch do not work without Fabric Manager; all boards with eight SXM GPUs have it.
_SWITCHED = 8


def why_not(site: Site, host: str) -> str:
    """Return why a host gets nothing of this stage; empty where it does."""
    return "" if site.pod.model_of(host).gpus else "it has no GPUs"


def headers(site: Site, host: str) -> Step | None:
    """Return what the driver's module is built with: it must be there before the driver, and before a new kernel."""
    if site.pod.bringup.nvidia is None or site.pod.model_of(host).gpus is None:
        return None
    return Step(packages=(SYSTEMS[site.pod.bringup.os].headers, "dkms"))


def driver(site: Site, host: str) -> Step | None:
    """Return the driver and what keeps it ready."""
    settings = site.pod.bringup.nvidia
    gpus = site.pod.model_of(host).gpus
    if settings is None or gpus is None:
        return None
    packages = [f"nvidia-driver-pinning-{settings.driver}", "nvidia-open", "nvidia-persistenced"]
    services = ["nvidia-persistenced"]
    if gpus.count >= _SWITCHED and "SXM" in gpus.model:
        packages.append("nvidia-fabricmanager")
        services.append("nvidia-fabricmanager")
    files = [HostFile("/etc/modprobe.d/podwright-nvidia.conf", _HEAD + _MODPROBE)]
    if any(nic.kind == "compute" for nic in site.pod.model_of(host).nics):
        # Cards of the fabric read and write the memory of GPUs by it.
        files.append(HostFile("/etc/modules-load.d/podwright-nvidia.conf", "nvidia_peermem\n"))
    return Step(tuple(packages), files=tuple(files), services=tuple(services), commands=(_LOADED,))


def tools(site: Site, host: str) -> Step | None:
    """Return what containers and monitoring need of the GPUs, and how they are cut."""
    settings = site.pod.bringup.nvidia
    if settings is None or site.pod.model_of(host).gpus is None:
        return None
    folders, files, services = [HostFolder("/etc/cdi")], [], []
    packages = ["nvidia-container-toolkit", "datacenter-gpu-manager-4-core"]
    if settings.mig:
        packages.append("nvidia-mig-manager")
        folders.append(HostFolder("/etc/nvidia-mig-manager"))
        files.append(HostFile(_LAYOUT, mig_text(settings), restarts=(_MIG,)))
        files.append(unit_of(_MIG, layout=_LAYOUT))
        services.append(_MIG)
    files.append(unit_of(_CDI))
    return Step(
        tuple(packages),
        folders=tuple(folders),
        files=tuple(files),
        services=(*services, _CDI, "nvidia-dcgm"),
        commands=(_SELINUX,),
    )


def mig_text(settings: NvidiaSettings) -> str:
    """Return the layout as nvidia-mig-parted reads it: every GPU gives as many parts of the size as it can."""
    size = settings.mig or ""
    parts = {size: _PARTS[int(size.partition("g")[0])]}
    layout = [{"devices": "all", "mig-enabled": True, "mig-devices": parts}]
    return _HEAD + f"version: v1\nmig-configs: {json.dumps({'podwright': layout})}\n"
