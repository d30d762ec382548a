"""The images on this machine: which program keeps them, and what it knows of one."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Workload

PROGRAMS = ("podman", "buildah")
_PATH = f"{os.defpath}:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin"
CGROUPS_V2 = Path("/sys/fs/cgroup/cgroup.controllers")


@dataclass(frozen=True)
class Found:
    """An image as this machine has it. `id` names its content here, `digest` its manifest."""

    name: str
    id: str
    digest: str
    created_at: str
    size_bytes: int | None
    user: str
    labels: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """What a run's record says of it."""
        return {"name": self.name, "digest": self.digest, "id": self.id}


def program() -> str:
    """The program that builds and keeps images here; refuses, with the packages, where there is none."""
    found = next((name for name in PROGRAMS if shutil.which(name)), None)
    if found is None:
        raise refuse(
            "images are built with podman or buildah, and neither is on this machine",
            hint="apt-get install podman buildah runc",
        )
    return found


def runtime_options() -> list[str]:
    """Options of podman itself: crun cannot work with control groups of version 1, runc can with both."""
    has_crun, has_runc = (
        shutil.which("crun"),
        shutil.which("runc", path="/usr/sbin:/usr/bin:/usr/local/sbin:/sbin:/bin"),
    )
    return ["--runtime=runc"] if has_runc and not (has_crun and CGROUPS_V2.exists()) else []


def own_limits() -> dict[str, tuple[int, int]]:
    """What a container may be given, by podman's names: its defaults may be more than this user has.

    Podman lowers its own number of processes to the most there can be, and cannot give back what it gave up.
    """
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    return {
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "nproc": (most if soft < 0 else min(soft, most), most if hard < 0 else min(hard, most)),
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK),
    }


def limit_options(limits: Mapping[str, Sequence[int]]) -> list[str]:
    """These limits as options of `podman run` and `build`."""
    return [f"--ulimit={name}={soft}:{hard}" for name, (soft, hard) in limits.items()]


def image_name(workload: Workload) -> str:
    """The image a workload runs in: the one it names, else the one its `build:` makes."""
    if workload.image:
        return workload.image.removeprefix("docker://")
    from podwright.images.builder import read_recipe

    return read_recipe(workload).name


def find_image(name: str) -> Found | None:
    """What this machine knows of an image; None when it is not here, or nothing here keeps images."""
    kept_by = next((one for one in PROGRAMS if shutil.which(one)), None)
    if kept_by is None:
        return None
    words = ["image", "inspect"] if kept_by == "podman" else ["inspect", "--type", "image"]
    done = subprocess.run([kept_by, *words, name], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return _READERS[kept_by](name, json.loads(done.stdout))


def _from_podman(name: str, rows: Any) -> Found:
    row = rows[0]
    config = row.get("Config") or {}
    return Found(
        name=name,
        id=_prefixed(row["Id"]),
        digest=row.get("Digest") or "",
        created_at=row.get("Created") or "",
        size_bytes=row.get("Size"),
        user=config.get("User") or "",
        labels=config.get("Labels") or {},
    )


def _from_buildah(name: str, row: Any) -> Found:
    config = (row.get("OCIv1") or {}).get("config") or {}
    return Found(
        name=name,
        id=_prefixed(row["FromImageID"]),
        digest=row.get("FromImageDigest") or "",
        created_at=(row.get("OCIv1") or {}).get("created") or "",
        size_bytes=None,
        user=config.get("User") or "",
        labels=config.get("Labels") or {},
    )


_READERS = {"podman": _from_podman, "buildah": _from_buildah}


def _prefixed(digest: str) -> str:
    return digest if digest.startswith("sha256:") else f"sha256:{digest}"
