"""A lab of bare hosts with a client that brings it up: what the tests of bring-up share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.vault import vault_of
from podwright.lab import processes
from podwright.lab.hosts.lab import HostsLab
from tests.paths import ROOT
from tests.real.clients import BIN, PATIENCE_S, Client

ON_HOSTS = [
    pytest.mark.ansible,
    pytest.mark.slow,
    pytest.mark.xdist_group("hosts"),
    pytest.mark.timeout(900, func_only=True),
]
"""Marks of what brings up bare hosts: one process runs it all, as their packages are installed by both cores."""
EXAMPLE = ROOT / "examples" / "lab-pod.yaml"


@dataclass
class Bench:
    """The lab with a client that has brought it up, and what was seen meanwhile."""

    lab: HostsLab
    client: Client
    folder: Path
    file: Path = EXAMPLE
    first: dict[str, Any] = field(default_factory=dict)
    arguments: set[bytes] = field(default_factory=set)

    @property
    def home(self) -> Path:
        return Path(self.client.environ["PODWRIGHT_HOME"])

    def pod(self, verb: str, *words: str, code: int = 0) -> dict[str, Any]:
        """Runs a command of `podwright pod` on the lab's file; gives its document."""
        document: dict[str, Any] = json.loads(self.client.ask("pod", verb, str(self.file), "--json", *words, code=code))
        return document

    def up(self, *words: str, code: int = 0) -> dict[str, Any]:
        return self.pod("up", *words, code=code)

    def status(self, code: int = 0) -> dict[str, Any]:
        document = self.pod("status", code=code)
        states: dict[str, Any] = document["hosts"]
        return states

    def failing(self, verb: str, *words: str) -> str:
        """Runs a command that fails on some host; gives what it says of that."""
        command = [str(BIN / "podwright"), "pod", verb, str(self.file), *words]
        done = subprocess.run(command, env=self.client.environ, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        return done.stderr

    def on(self, host: str, line: str, user: str = "root") -> str:
        done = self.lab.run(host, line, user)
        assert done.returncode == 0, f"{host}: {line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


class watched_arguments:
    """Collects the arguments of all processes there are, those of the hosts too, as long as it lasts."""

    def __init__(self, seen: set[bytes]) -> None:
        self.seen, self.over = seen, threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.over.wait(0.25):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes())
                except OSError:
                    continue


def changed(document: dict[str, Any]) -> dict[str, int]:
    return {host: counts["changed"] for host, counts in document["hosts"].items()}


def killed_up(bench: Bench, when: Callable[[], bool]) -> None:
    """Starts a bring-up and kills it at some moment, with no chance to clean up."""
    command = [sys.executable, "-c", "from podwright.cli.main import main; main()", "pod", "up", str(bench.file)]
    process = subprocess.Popen(command, env=bench.client.environ, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert processes.until(when, 4 * PATIENCE_S, every_s=0.1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def is_installing(bench: Bench, host: str) -> bool:
    """Whether dpkg is at work on a host."""
    busy = "pgrep --full 'dpkg .*(unpack|configure)' >/dev/null && echo busy; true"
    return "busy" in bench.on(host, busy)


_PUBLIC = ("_certificate", "_public", "_names")
"""How values of a vault end that anybody may see; all others are secrets, those too that come to be one day."""


def secret_lines(bench: Bench) -> dict[str, list[str]]:
    """Gives what must be seen nowhere, line by line, by the name of the secret: all that the pod's vault has."""
    values = vault_of(bench.home, "lab-hosts").read().values
    hidden = {name: text for name, text in values.items() if not name.endswith(_PUBLIC)}
    return {
        name: [line for line in text.splitlines() if len(line) > 20 and "-----" not in line]
        for name, text in hidden.items()
    }


def where_secrets_are_seen(bench: Bench, hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Gives each secret that is seen, and where: arguments, what Ansible left, journals of hosts, what we print."""
    texts = {"arguments": b"\0".join(bench.arguments)}
    folder = bench.home / "bringup"
    texts |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for host in hosts:
        texts[f"journal of {host}"] = bench.on(host, "journalctl --no-pager").encode()
    texts["plan"] = bench.client.ask("pod", "plan", str(bench.file)).encode()
    seen = []
    for name, lines in secret_lines(bench).items():
        seen += [(name, where) for where, text in texts.items() if any(line.encode() in text for line in lines)]
    return seen
