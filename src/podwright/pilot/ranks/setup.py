"""Before the ranks: the code snapshot is unpacked, the user's setup lines run, the environment is made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from typing import IO, Callable, Dict, List, Mapping

from ..protocol import RANK_NAMES, Order
from ..system import sealed
from ..system.paths import Paths, make_private
from ..system.plain_files import open_to_read
from ..system.processes import kill_tree

INTERNAL = (
    "PODWRIGHT_TOKEN_FILE",
    "PODWRIGHT_RESTART",
    "PODWRIGHT_LOST",
    "PODWRIGHT_JOIN_S",
    "PODWRIGHT_JOB",
    "PODWRIGHT_LEADER",
    "PODWRIGHT_PYTHON",
    sealed.PILOT,
    sealed.ORDER,
)
TAIL_LINES, TAIL_BYTES = 30, 64 * 1024
"""Of what setup lines said, which may be of any size, that much is looked at."""
LOADER = ("__init__.py", "ahead.py", "epochs.py", "samples.py", "shards.py", "steps.py")
"""The modules of pilot/data/loader, which ranks import as `podwright_data`."""
HELD_BYTES = 64 << 20
"""Of a snapshot in memory while it is unpacked; a larger one is copied beside where it goes."""


class SetupFailed(Exception):
    """In words, with the last lines of what was printed."""

    def __init__(self, reason: str, tail: List[str]) -> None:
        super().__init__(reason)
        self.tail = tail


def stage_code(order: Order, paths: Paths) -> int:
    """Make the folder that ranks start in, with the code where there is any; return the bytes of its snapshot."""
    if not order.code:
        make_private(paths.code)
        return 0
    return unpack(os.path.join(paths.job, order.code["file"]), order.code["sha256"], paths.code)


def unpack(tar: str, sha256: str, folder: str) -> int:
    """Unpack the snapshot into `folder`, once and never seen by half under that name; return the bytes read."""
    above = os.path.dirname(folder)
    os.makedirs(above, exist_ok=True)
    # What was checked is what is unpacked: the file itself may be written meanwhile.
    with tempfile.SpooledTemporaryFile(max_size=HELD_BYTES, dir=above) as copy:
        size = _copy_checked(tar, sha256, copy)
        if not os.path.isdir(folder):
            unfinished = tempfile.mkdtemp(prefix=".code-", dir=above)
            with tarfile.open(fileobj=copy) as archive:
                extract(archive, unfinished)
            try:
                os.rename(unfinished, folder)
            except OSError:
                # Another copy of this node was faster.
                shutil.rmtree(unfinished, ignore_errors=True)
    return size


def _copy_checked(tar: str, sha256: str, copy: IO[bytes]) -> int:
    """Copy the snapshot, and refuse one that is not what was sent; return its size."""
    digest = hashlib.sha256()
    with open_to_read(tar) as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
            copy.write(piece)
        size = file.tell()
    if digest.hexdigest() != sha256:
        raise SetupFailed(f"{tar} is damaged: its digest is not the one in the order", [])
    copy.seek(0)
    return size


def extract(archive: tarfile.TarFile, folder: str) -> None:
    """Unpack all members; the digest was checked, but one that would leave the folder is refused all the same."""
    root = os.path.realpath(folder)
    for member in archive.getmembers():
        target = os.path.realpath(os.path.join(root, member.name))
        if target != root and not target.startswith(root + os.sep):
            raise SetupFailed(f"{member.name} would be unpacked outside the code folder", [])
        if not (member.isfile() or member.isdir() or member.issym()):
            raise SetupFailed(f"{member.name} is neither file, folder nor link", [])
    if hasattr(tarfile, "fully_trusted_filter"):
        archive.extractall(root, filter="tar")
    else:
        archive.extractall(root)


def rank_environment(order: Order, base: Mapping[str, str], paths: Paths) -> Dict[str, str]:
    """Return what every rank of the node sees, before its own rank variables."""
    hidden = (*INTERNAL, *RANK_NAMES)
    environ = {name: value for name, value in base.items() if name not in hidden}
    environ.update(order.env)
    environ.update(
        PODWRIGHT_RUN=order.run,
        PODWRIGHT_FOLDER=paths.folder,
        PODWRIGHT_SHARED=str(int(order.shared)),
        PODWRIGHT_SCRATCH=paths.scratch,
        PODWRIGHT_CHECKPOINT=paths.checkpoint,
        PODWRIGHT_GRACE_S=f"{order.grace_s:g}",
        PYTHONUNBUFFERED=environ.get("PYTHONUNBUFFERED", "1"),
        PYTHONFAULTHANDLER=environ.get("PYTHONFAULTHANDLER", "1"),
    )
    if order.launcher != "plain":
        environ.update(WORLD_SIZE=str(order.world_size), LOCAL_WORLD_SIZE=str(order.ranks_per_node))
    return environ


def install_loader(folder: str, environ: Dict[str, str]) -> None:
    """Put the loader where ranks of any Python find it, behind what the user has named."""
    import pkgutil

    from .. import data

    package = os.path.join(folder, "podwright_data")
    os.makedirs(package, mode=0o700, exist_ok=True)
    for name in LOADER:
        source = pkgutil.get_data(data.__name__, f"loader/{name}")
        assert source is not None
        with open(os.path.join(package, name), "wb") as file:
            file.write(source)
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (environ.get("PYTHONPATH"), folder)))


def run_setup(lines: List[str], environ: Dict[str, str], cwd: str, stopped: Callable[[], bool]) -> Dict[str, str]:
    """Return the environment after the user's own shell lines: the one place where a shell is used."""
    if not lines:
        return environ
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    with tempfile.TemporaryFile() as dump, tempfile.TemporaryFile() as talk:
        script = "set -e\n" + "\n".join(lines) + f"\nenv -0 >&{dump.fileno()}\n"
        child = subprocess.Popen(
            [shell, "-c", script],
            env=environ,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=talk,
            stderr=subprocess.STDOUT,
            pass_fds=[dump.fileno()],
        )
        while child.poll() is None and not stopped():
            time.sleep(0.05)
        if child.poll() is None:
            kill_tree(os.getpid())
            raise SetupFailed("setup was stopped", [])
        if child.returncode != 0:
            raise SetupFailed(f"setup exited with {child.returncode}", _last_lines(talk))
        dump.seek(0)
        pairs = (item.partition(b"=") for item in dump.read().split(b"\0") if b"=" in item)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _last_lines(talk: IO[bytes]) -> List[str]:
    """Return what setup said last, without a first line that is cut: the cut may go through a secret."""
    start = max(talk.seek(0, os.SEEK_END) - TAIL_BYTES, 0)
    talk.seek(start)
    data = talk.read(TAIL_BYTES)
    if start:
        data = data.partition(b"\n")[2]
    # Bytes that are no UTF-8 are kept for the masker: a secret may hold some.
    return data.decode("utf-8", "surrogateescape").splitlines()[-TAIL_LINES:]
