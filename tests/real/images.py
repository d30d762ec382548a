"""Container images for tests: a small Debian with a Python, made once, and unpacked where a lab's user sees it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podwright.lab.user import LabUser
from scripts import debian_root

NAME = "a small root"
"""What /etc/image of it holds, so that a rank can tell where it is."""


def unpack(folder: Path, owner: LabUser) -> Path:
    """Copies the image into a folder, as a user's own: whoever unpacks an image himself may write in it."""
    shutil.copytree(debian_root.image(debian_root.codename()), folder, symlinks=True, ignore=_devices)
    (folder / "etc" / "image").write_text(f"{NAME}\n")
    for name in ("hosts", "resolv.conf"):  # what a container runtime binds over must be there
        (folder / "etc" / name).touch()
    hand_over(folder, owner)
    return folder


def _devices(folder: str, names: list[str]) -> list[str]:
    """An image has no devices: its runtime gives it some."""
    return names if Path(folder).name == "dev" else []


def bundle(folder: Path, owner: LabUser, mounts: Iterable[str]) -> Path:
    """Makes an OCI bundle for one user: the image, and what a runtime must know to start it without root."""
    unpack(folder / "rootfs", owner)
    (folder / "config.json").write_text(json.dumps(_config(owner, mounts), indent=2))
    hand_over(folder, owner)
    return folder


def hand_over(folder: Path, owner: LabUser) -> None:
    subprocess.run(["chown", "-Rh", f"{owner.uid}:{owner.gid}", str(folder)], check=True)


def _config(owner: LabUser, mounts: Iterable[str]) -> dict[str, Any]:
    """The network and the node's name stay the node's: a rank must find the others, and a pilot its own number.

    A user may map nobody but himself, and runc wants somebody to be root inside.
    """
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["true"],
            "env": ["PATH=/usr/bin:/bin"],
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            *({"destination": path, "source": path, "options": ["rbind"]} for path in ("/dev/shm", "/tmp", *mounts)),
            *({"destination": path, "source": path, "options": ["rbind", "ro"]} for path in ("/sys", "/etc/hosts")),
        ],
        "linux": {
            "uidMappings": [{"containerID": 0, "hostID": owner.uid, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": owner.gid, "size": 1}],
            "namespaces": [{"type": name} for name in ("mount", "pid", "user")],
        },
    }
