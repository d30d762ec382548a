"""What a lab of hosts has on its network beside them: the mirror that serves packages."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from podwright.lab import caches, debian
from podwright.lab.hosts import mirror
from podwright.lab.hosts.files import MIRROR_PORT
from podwright.lab.machines import HUB, Machines
from podwright.lab.scripts import BRIDGE_ADDRESS

_CLONE_NEWNET = 0x40000000


def start_mirror(machines: Machines) -> None:
    """Start the mirror where it does not run; it listens in the lab, fetches from outside, and ends with the hub."""
    hub = machines.pid(HUB)
    assert hub is not None
    if any("python" in program for program in machines.running(HUB)):
        return
    sources = [source.uri for source in debian.sources(debian.sources_file().read_text())]
    cache = caches.folder("hosts") / "packages"
    with _listening_inside(hub) as listening, (machines.folder / "log" / "mirror.log").open("a") as log:
        number = listening.fileno()
        program = [sys.executable, "-I", "-S", mirror.__file__, str(number), str(cache), json.dumps(sources)]
        living = subprocess.Popen(
            ["nsenter", f"--target={hub}", "--pid", "--", *program],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        living.returncode = 0  # it outlives this program, and is ended with the hub


def _listening_inside(pid: int) -> socket.socket:
    """Return a socket that listens in the network of another process: it keeps the one it was made in.

    A thread of its own enters that network and ends there, so that nothing else of this program is moved.
    """
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(_listen, pid).result()


def _listen(pid: int) -> socket.socket:
    library = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        if library.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the lab's network: {os.strerror(ctypes.get_errno())}")
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((BRIDGE_ADDRESS, MIRROR_PORT))
    listening.listen(64)
    return listening
