"""An image as one file that Enroot and Charliecloud start: its root as squashfs, with what Enroot reads beside it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podwright.clients.reasons import last_line
from podwright.files.whole import whole_path
from podwright.images.storage import runtime_options
from podwright.spec.problems import refuse

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODES = {"etc/rc": 0o755}


def enroot_files(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the three files by which Enroot knows an image's environment, mounts and entry point."""
    variables = [entry for entry in config.get("Env") or [] if _NAME.fullmatch(entry.partition("=")[0])]
    default = shlex.join(config.get("Cmd") or ["/bin/sh"])
    folder = shlex.quote(config.get("WorkingDir") or "/")
    start = ["exec", *map(shlex.quote, config.get("Entrypoint") or []), '"$@"']
    script = f"#!/bin/sh\ncd {folder} 2>/dev/null || cd /\n[ $# -gt 0 ] || set -- {default}\n{' '.join(start)}\n"
    return {"etc/rc": script, "etc/environment": "".join(f"{line}\n" for line in variables), "etc/fstab": ""}


def export(image: str, file: Path) -> int:
    """Write an image of this machine into one squashfs file and return its size; the file appears when it is whole."""
    _check_can_export(file)
    podman = ["podman", *runtime_options()]
    container = _ask([*podman, "create", "--entrypoint=", image, "/bin/true"])
    try:
        config = json.loads(_ask([*podman, "image", "inspect", image]))[0].get("Config") or {}
        _add_files(podman, container, enroot_files(config))
        with whole_path(file) as part:
            _pack([*podman, "export", container], part)
    finally:
        subprocess.run([*podman, "rm", "-f", container], capture_output=True, check=False)
    return file.stat().st_size


def _check_can_export(file: Path) -> None:
    for name, package in (("podman", "podman"), ("sqfstar", "squashfs-tools")):
        if shutil.which(name) is None:
            message = f"a squashfs file is written with {name}, which is not there"
            raise refuse(message, hint=f"apt-get install {package}")
    if not os.access(file.parent, os.W_OK):
        raise refuse(f"{file} cannot be written", hint="name a file in a folder that is there and yours")


def _add_files(podman: list[str], container: str, files: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="podwright-squashfs-") as folder:
        for name, text in files.items():
            path = Path(folder, Path(name).name)
            path.write_text(text)
            path.chmod(_MODES.get(name, 0o644))
            _ask([*podman, "cp", str(path), f"{container}:/{name}"])


def _pack(tar: list[str], file: Path) -> None:
    """Write a tar's content into a squashfs file.

    The tar flows from one program into the other: an image may be larger than the room left beside it.
    """
    file.unlink(missing_ok=True)
    with subprocess.Popen(tar, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as source:
        command = ["sqfstar", "-quiet", "-no-progress", str(file)]
        done = subprocess.run(command, stdin=source.stdout, capture_output=True, text=True, check=False)
        assert source.stdout is not None
        source.stdout.close()
    if done.returncode or source.returncode:
        reason = last_line(done.stderr, "podman export failed")
        raise refuse(f"{file.name} could not be written: {reason}", hint="is there room for it?")


def _ask(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = last_line(done.stderr, f"exit code {done.returncode}")
        raise refuse(f"{command[0]} failed: {reason}", exit_code=3)
    return done.stdout.strip()
