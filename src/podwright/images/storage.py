"""The images on this machine: which program keeps them, and what it knows of one."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.spec.problems import refuse

PROGRAMS = ("podman", "buildah")
CGROUPS_V2 = Path("/sys/fs/cgroup/cgroup.controllers")


@dataclass(frozen=True)
class StoredImage:
    """An image as this machine has it. `id` names its content here, `digest` its manifest."""

    name: str
    id: str
    digest: str
    created_at: str
    size_bytes: int | None
    user: str
    labels: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """Return what a run's record says of it."""
        return {"name": self.name, "digest": self.digest, "id": self.id}

    def as_json(self) -> dict[str, Any]:
        """Return what is known of it, as `--json` has it."""
        more = {"created_at": self.created_at, "size_bytes": self.size_bytes, "user": self.user}
        return {**self.document(), **more, "recipe": self.labels.get("podwright.recipe")}


def program() -> str:
    """Return the program that builds and keeps images here; refuse, with the packages, where there is none."""
    installed = _installed_program()
    if installed is None:
        raise refuse(
            "images are built with podman or buildah, and neither is on this machine",
            hint="apt-get install podman buildah runc",
        )
    return installed


def _installed_program() -> str | None:
    return next((name for name in PROGRAMS if shutil.which(name)), None)


def runtime_options() -> list[str]:
    """Return options of podman itself: crun cannot work with control groups of version 1, runc can with both."""
    if shutil.which("runc", path="/usr/sbin:/usr/bin:/usr/local/sbin:/sbin:/bin") is None:
        return []
    if shutil.which("crun") and CGROUPS_V2.exists():
        return []
    return ["--runtime=runc"]


def own_limits() -> dict[str, tuple[int, int]]:
    """Return what a container may be given, by podman's names: its defaults may be more than this user has.

    Podman lowers its own number of processes to the most there can be, and cannot give back what it gave up.
    """
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    return {
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "nproc": (_at_most(soft, most), _at_most(hard, most)),
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK),
    }


def _at_most(limit: int, most: int) -> int:
    """Return the smaller of two limits, of which the first may be none (a negative number)."""
    return most if limit < 0 else min(limit, most)


def limit_options(limits: Mapping[str, Sequence[int]]) -> list[str]:
    """Return these limits as options of `podman run` and `build`."""
    return [f"--ulimit={name}={soft}:{hard}" for name, (soft, hard) in limits.items()]


def find_image(name: str) -> StoredImage | None:
    """Return what this machine knows of an image; None when it is not here, or nothing here keeps images."""
    kept_by = _installed_program()
    if kept_by is None:
        return None
    inspect, parse = _INSPECT[kept_by]
    done = subprocess.run([kept_by, *inspect, name], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return parse(name, json.loads(done.stdout))


def _from_podman(name: str, rows: Any) -> StoredImage:
    row = rows[0]
    config = row.get("Config") or {}
    return StoredImage(
        name=name,
        id=_prefixed(row["Id"]),
        digest=row.get("Digest") or "",
        created_at=row.get("Created") or "",
        size_bytes=row.get("Size"),
        user=config.get("User") or "",
        labels=config.get("Labels") or {},
    )


def _from_buildah(name: str, row: Any) -> StoredImage:
    image = row.get("OCIv1") or {}
    config = image.get("config") or {}
    return StoredImage(
        name=name,
        id=_prefixed(row["FromImageID"]),
        digest=row.get("FromImageDigest") or "",
        created_at=image.get("created") or "",
        size_bytes=None,
        user=config.get("User") or "",
        labels=config.get("Labels") or {},
    )


_INSPECT = {
    "podman": (("image", "inspect"), _from_podman),
    "buildah": (("inspect", "--type", "image"), _from_buildah),
}
"""How each program is asked for an image, and what reads its answer."""


def _prefixed(digest: str) -> str:
    return f"sha256:{digest.removeprefix('sha256:')}"
