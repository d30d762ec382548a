"""The ways into a lab from the loopback of this machine, one port each."""

from __future__ import annotations

import random
import socket
import subprocess

from podwright.lab.kubernetes.pki import LOOPBACK
from podwright.lab.kubernetes.shape import CONTROL
from podwright.lab.machines import ENVIRONMENT, Machines
from podwright.spec.problems import refuse

# Below the ports that the kernel gives to outgoing connections, which would take one while the lab is off.
_FIRST, _LAST = 20000, 30000


def choose(count: int) -> list[int]:
    """Gives free ports."""
    found: list[int] = []
    for port in random.sample(range(_FIRST, _LAST), _LAST - _FIRST):
        if len(found) == count:
            break
        with socket.socket() as tried:
            try:
                tried.bind((LOOPBACK, port))
            except OSError:
                continue
            found.append(port)
    return found


def is_open(port: int) -> bool:
    """Says whether someone listens."""
    with socket.socket() as tried:
        return tried.connect_ex((LOOPBACK, port)) == 0


def open_door(machines: Machines, port: int, target: str) -> None:
    """Lets connections to a port of this machine come out on the lab's control machine, with which the door ends."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
        except OSError as error:
            raise refuse(
                f"port {port} of this lab is not to be had: {error.strerror}",
                hint=f"end the program that `ss -ltnp sport = :{port}` shows, then again",
            ) from None
        listening.listen(128)
        number = listening.fileno()
        with (machines.folder / "log" / f"door-{port}.log").open("a") as log:
            living = subprocess.Popen(
                machines.command(CONTROL, ["socat", f"ACCEPT-FD:{number},fork", f"TCP:{target}"]),
                env=ENVIRONMENT,
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            living.returncode = 0  # it outlives this program, and is ended with the control machine
