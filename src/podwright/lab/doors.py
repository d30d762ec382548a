"""The ways into a lab from the loopback of this machine, one port each."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from podwright.lab import relay
from podwright.lab.machines import ENVIRONMENT, Machines
from podwright.lab.ssh import LOOPBACK
from podwright.spec.problems import refuse

# Below the ports that the kernel gives to outgoing connections, which would take one while the lab is off.
_FIRST, _LAST = 20000, 30000


def choose(count: int) -> list[int]:
    """Return free ports."""
    free: list[int] = []
    for port in random.sample(range(_FIRST, _LAST), _LAST - _FIRST):
        if len(free) == count:
            break
        with socket.socket() as tried:
            try:
                tried.bind((LOOPBACK, port))
            except OSError:
                continue
            free.append(port)
    return free


def open_doors(machines: Machines, machine: str, doors: Mapping[int, int]) -> None:
    """Let connections to ports of this machine come out on one of the lab, with which the doors end."""
    with ExitStack() as stack:
        sockets = {stack.enter_context(_listening(port)): target for port, target in doors.items()}
        numbers = [listening.fileno() for listening in sockets]
        doorways = [f"{listening.fileno()}:{target}" for listening, target in sockets.items()]
        log = stack.enter_context((machines.folder / "log" / f"{relay.PROGRAM}-{machine}.log").open("a"))
        living = subprocess.Popen(
            machines.command(machine, [sys.executable, "-I", "-S", relay.__file__, *doorways]),
            env=ENVIRONMENT,
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        living.returncode = 0  # it outlives this program, and is ended with that machine


def _listening(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except OSError as error:
        listening.close()
        raise refuse(
            f"port {port} of this lab is not to be had: {error.strerror}",
            hint=f"`ss -ltnp sport = :{port}` shows the program that holds it; end it, then again",
        ) from None
    listening.listen(128)
    return listening
