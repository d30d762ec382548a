"""What torch.compile and Triton made is kept between the runs of a home, so that a second start need not make it.

It lies in $PODWRIGHT_COMPILED, else in `compiled` beside the folder of runs where that outlives the run (on Kubernetes:
in a claim), by the version of PyTorch, the driver and the GPU. Code is loaded from it, so a folder that somebody else
could have written to is not used.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import torch

MOST_BYTES = 8 << 30
DRIVER = Path("/sys/module/nvidia/version")


def folder_of(environment: Mapping[str, str]) -> Path | None:
    """Where it is kept; None: nowhere."""
    if "PODWRIGHT_COMPILED" in environment:
        return Path(environment["PODWRIGHT_COMPILED"])
    if environment.get("PODWRIGHT_SHARED") == "1" and environment.get("PODWRIGHT_FOLDER"):
        return Path(environment["PODWRIGHT_FOLDER"]).parents[1] / "compiled"
    return None


def key_of(device: torch.device) -> str:
    """What must be alike for compiled code to fit."""
    gpu, driver = "cpu", ""
    if device.type == "cuda":
        gpu = torch.cuda.get_device_name(device)
        driver = DRIVER.read_text().strip() if DRIVER.exists() else str(torch.version.cuda)
    return re.sub(r"[^\w.+]+", "-", f"torch-{torch.__version__} {driver} {gpu}").strip("-")


def keep_compiled(folder: Path, device: torch.device, most_bytes: int = MOST_BYTES) -> Path | None:
    """Have compilers keep what they make in this folder; returns its part for this device, None where it cannot be."""
    own = folder / key_of(device)
    try:
        for path in (folder, own):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None
        os.utime(own)
        bound(folder, own, most_bytes)
        own.mkdir(mode=0o700, exist_ok=True)
    except OSError:  # read-only, or no room: it is compiled as if this were the first run
        return None
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(own / "inductor"))
    os.environ.setdefault("TRITON_CACHE_DIR", str(own / "triton"))
    return own


def bound(folder: Path, own: Path, most_bytes: int) -> None:
    """Remove what was not used for longest until no more than so many bytes are left; our own goes last, and whole."""
    parts = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    sizes = {path: sum(file.lstat().st_size for file in path.rglob("*")) for path in parts}
    left = sum(sizes.values())
    for path in sorted(parts, key=lambda path: path == own):
        if left <= most_bytes:
            return
        shutil.rmtree(path, ignore_errors=True)
        left -= sizes[path]
