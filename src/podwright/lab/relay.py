"""Carries connections from ports of this machine's loopback into a lab.

The sockets were bound in the machine's own network and are inherited; this program runs in that of one of the
lab's machines, and ends with it. Standard library only: it stays in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import sys
from pathlib import Path

PROGRAM = "relay"
_CHUNK = 1 << 18
_LIVING: set[asyncio.Task[None]] = set()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy until one side ends, and tell the other, which may still have something to say."""
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()


async def _carry(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry one connection. The loop itself holds on to no task, and a quiet one would be swept up as garbage."""
    task = asyncio.current_task()
    assert task is not None
    _LIVING.add(task)
    task.add_done_callback(_LIVING.discard)
    with contextlib.closing(writer):
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        with contextlib.closing(inner_writer):
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))


async def _serve(doors: list[tuple[int, int]]) -> None:
    """Serve pairs of an inherited socket and the port that it leads to, until it is killed."""
    for descriptor, port in doors:
        await asyncio.start_server(functools.partial(_carry, port), sock=socket.socket(fileno=descriptor))
    await asyncio.Event().wait()


def main(arguments: list[str]) -> None:
    """Take `DESCRIPTOR:PORT` words."""
    # The name by which the lab finds its programs.
    Path("/proc/self/comm").write_text(PROGRAM)
    doors = [word.split(":") for word in arguments]
    asyncio.run(_serve([(int(descriptor), int(port)) for descriptor, port in doors]))


if __name__ == "__main__":
    main(sys.argv[1:])
