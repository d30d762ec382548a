"""A small Debian as a container image, in a store of podman's own that goes when its user does."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts import debian_root

STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
PATH = "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = ("apt", "openmpi-bin", "python3")
"""A Python, what MPI's ranks need, and with it the C++ library that PyTorch wants."""


@contextmanager
def store(name: str) -> Iterator[dict[str, str]]:
    """Gives the variables with which podman finds the image under this name, and nobody else's images."""
    root = debian_root.made(debian_root.codename(), *PACKAGES)
    folder = Path(tempfile.mkdtemp(prefix="pwimg-", dir="/tmp"))
    variables = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf")}
    environment = os.environ | variables
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    try:
        with subprocess.Popen(["tar", "-C", str(root), "--exclude=./dev/*", "-c", "."], stdout=subprocess.PIPE) as tar:
            command = ["podman", "import", "--quiet", "--change", PATH, "-", name]
            subprocess.run(command, stdin=tar.stdout, stdout=subprocess.DEVNULL, env=environment, check=True)
        yield variables
    finally:
        for words in (["rm", "--all", "--force"], ["rmi", "--all", "--force"]):
            subprocess.run(["podman", *words], env=environment, capture_output=True, check=False)
        subprocess.run(["umount", str(folder / "graph" / "overlay")], capture_output=True, check=False)
        shutil.rmtree(folder)
