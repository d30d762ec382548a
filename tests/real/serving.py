"""A server of files on a machine of a lab, which counts what is read from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from podwright.lab.machines import Machines
from tests.fixtures import counted


class LabServer:
    """Serves a folder; `address` is where nodes find it, and `sent` how many bytes it gave them."""

    def __init__(self, address: str, counts: Path, words: TextIO) -> None:
        self.address, self._counts, self._words = address, counts, words

    def sent(self) -> int:
        return int(self._counts.read_text() or 0)  # empty while it is written

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let answers wait for a while: whoever has asked for a file does not get it."""
        self._toggle()
        try:
            yield
        finally:
            self._toggle()

    def _toggle(self) -> None:
        self._words.write("\n")
        self._words.flush()


@contextmanager
def serving(machines: Machines, name: str, host: str, root: Path, counts: Path) -> Iterator[LabServer]:
    """Serve a folder of this machine at an address that the lab's machine has."""
    counts.write_text("0")
    words = [sys.executable, counted.__file__, str(root), host, str(counts)]
    with subprocess.Popen(
        machines.command(name, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield LabServer(f"http://{host}:{process.stdout.readline().strip()}", counts, process.stdin)
        finally:
            process.stdin.close()
