"""Copies in memory of what the keeper starts: what is written into a run's folder later is never run.

A sealed file cannot be written by anybody, not even by this user, though every process of the user can read it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from typing import List

from .plain_files import read_whole

PILOT, ORDER = "PODWRIGHT_PILOT", "PODWRIGHT_ORDER"
"""Variables that name a copy to a pilot, in place of the file that lies beside its order, and of the order."""
SELF = "/proc/self/fd/"


def seal(data: bytes, name: str) -> int:
    """Return the descriptor of a file that holds these bytes for good; children that are to read it must inherit it."""
    if not hasattr(os, "memfd_create"):  # a C library of before 2018
        return _hide(data)
    number = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(number), "wb") as file:
        file.write(data)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(number, fcntl.F_ADD_SEALS, seals)
    return number


def _hide(data: bytes) -> int:
    """Return the descriptor of a file without a name, the next best: nobody comes upon it by chance."""
    # Imported here: every pilot imports this module, and hardly any comes here.
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), 0o400)
        return os.dup(file.fileno())


def path_of(number: int) -> str:
    """Return the path by which a process that inherited a descriptor opens the file again."""
    return f"{SELF}{number}"


def order_path(order_file: str) -> str:
    """Return where a pilot reads its order: from the keeper's copy, where there is one."""
    return os.environ.get(ORDER) or order_file


def own_program() -> str:
    """Return the path by which other processes of this user start the very pilot that runs here."""
    path = os.path.abspath(sys.argv[0])
    if path.startswith(SELF):
        return f"/proc/{os.getpid()}/fd/{path[len(SELF) :]}"
    return path


class Program:
    """What pilots are started from, as it was before any rank ran: the stub as text, the pilot as a sealed copy."""

    def __init__(self, job: str) -> None:
        self.stub_path = os.path.join(job, "node.sh")
        self.stub = read_whole(self.stub_path).decode()
        self.pilot = seal(read_whole(os.path.join(job, "pilot.pyz")), "pilot.pyz")

    def stub_line(self, order_file: str) -> List[str]:
        """Return the command line of the stub; it finds by the name it is given what lies beside it."""
        return ["/bin/sh", "-c", self.stub, self.stub_path, order_file]

    def role_line(self, *arguments: str) -> List[str]:
        """Return the command line of another role of the pilot."""
        return [sys.executable, "-I", "-S", path_of(self.pilot), *arguments]
