"""The way into a lab's login node: takes connections on an inherited socket and starts an sshd for each.

The socket was bound on the loopback of the machine; this program runs in the namespaces of the login node, so that
whoever comes through is there. It ends with the login node. Standard library only: it stays in memory.
"""

from __future__ import annotations

import socket
import subprocess
import sys


def serve(descriptor: int, command: list[str]) -> None:
    """Hand every connection to a program of its own, as inetd did; the next one to come reaps what has ended."""
    with socket.socket(fileno=descriptor) as listening:
        while True:
            connection, _ = listening.accept()
            with connection:
                subprocess.Popen(command, stdin=connection.fileno(), stdout=connection.fileno())


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
