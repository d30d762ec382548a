"""A management controller that speaks Redfish, on the loopback."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.paths import ROOT
from tests.real.clients import until

LOGIN = "admin:pass-7f3k"


@contextmanager
def controller(folder: Path, systems: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Starts a controller of these systems; gives its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(ROOT / "tests" / "fakes" / "bmc.py"), str(port), str(folder), json.dumps(systems)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes) as emulator:  # type: ignore[call-overload]
        emulator.stdin.write(f"{LOGIN}\n".encode())
        emulator.stdin.flush()
        until(lambda: answers(url), "the controller answers")
        try:
            yield url
        finally:
            emulator.terminate()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/redfish/v1").close()
    except urllib.error.HTTPError as error:
        with error:
            return error.code == 401
    except OSError:
        return False
    return True
