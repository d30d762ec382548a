"""Applies a plan with Ansible, run as a program; what it tells on the way becomes the state of stages and hosts."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.bringup.apply.ansible import INVENTORY, PLAYBOOK, VAULT
from podwright.bringup.apply.faults import Fault, reason_of
from podwright.bringup.apply.vault import environment, program
from podwright.clients.reasons import last_line
from podwright.clients.ssh import sockets
from podwright.files.locks import wait_for
from podwright.files.whole import make_private, whole_path, write_whole
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

KEPT_RUNS = 5
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class HostCount:
    """What was done to a host."""

    changed: int = 0
    ok: int = 0
    failed: int = 0
    unreachable: int = 0


@dataclass
class StageRun:
    """A stage while it runs and afterwards."""

    name: str
    state: str = "running"
    took_s: float = 0.0
    changed: int = 0


@dataclass
class ApplyProgress:
    """A bring-up as Ansible's events tell it."""

    hosts: dict[str, HostCount]
    stages: list[StageRun] = field(default_factory=list)
    wanted: Sequence[str] = ()
    """The stages that there will be, in their order."""
    faults: list[Fault] = field(default_factory=list)
    doing: str = ""
    at_task: dict[str, bool] = field(default_factory=dict)
    """Of each host that began the task at hand whether it has ended it."""
    error: str = ""
    """What Ansible says of the project itself, where it cannot be run."""

    def take(self, event: Mapping[str, Any], now_s: float) -> None:
        """Take one event in."""
        kind, data = str(event.get("event", "")), event.get("event_data", {})
        if kind == "playbook_on_play_start":
            self._stage(str(data.get("play", "")).split(".")[0], now_s)
        elif kind == "playbook_on_task_start":
            self.doing = str(data.get("task", "")).lower()
            self.at_task = {}
        elif kind == "runner_on_start":
            self.at_task[data["host"]] = False
        elif kind == "runner_on_skipped":
            self.at_task[data["host"]] = True
        elif kind == "runner_on_ok":
            self._count(data)
        elif kind == "runner_on_failed":
            self._fault(data, "failed")
        elif kind == "runner_on_unreachable":
            self._fault(data, "unreachable")
        elif kind == "verbose" and "ERROR" in str(event.get("stdout")):
            self.error = self.error or _COLOUR.sub("", str(event["stdout"])).strip()

    @property
    def is_stopped(self) -> bool:
        """Return whether a host came no further."""
        return any(fault.stops for fault in self.faults)

    def add(self, other: ApplyProgress) -> None:
        """Take in what happened on other hosts afterwards."""
        self.hosts |= other.hosts
        self.stages += other.stages
        self.faults += other.faults

    def slow(self) -> list[str]:
        """Return the hosts that are still at the task which others have ended; none where nobody waits for them."""
        left = [host for host, is_over in self.at_task.items() if not is_over]
        return left if len(left) < len(self.at_task) else []

    def next_steps(self) -> dict[str, str]:
        """Return what helps against the faults, each once, with the hosts that need it."""
        hosts: dict[str, list[str]] = {}
        for fault in self.faults:
            hosts.setdefault(fault.next_step, []).append(fault.host)
        return {step: fold_hosts(dict.fromkeys(names)) for step, names in hosts.items()}

    def close(self, now_s: float) -> None:
        """Give the last stage its end."""
        if self.stages and self.stages[-1].state == "running":
            last = self.stages[-1]
            last.took_s = now_s - last.took_s
            failed = any(fault.stage == last.name and fault.stops for fault in self.faults)
            last.state = "failed" if failed else "done"

    def _stage(self, name: str, now_s: float) -> None:
        if self.stages and self.stages[-1].name == name:
            return
        self.close(now_s)
        self.stages.append(StageRun(name, took_s=now_s))

    def _count(self, data: Mapping[str, Any]) -> None:
        host = self.hosts.setdefault(data["host"], HostCount())
        self.at_task[data["host"]] = True
        host.ok += 1
        if data.get("res", {}).get("changed"):
            host.changed += 1
            self.stages[-1].changed += 1

    def _fault(self, data: Mapping[str, Any], kind: str) -> None:
        host = self.hosts.setdefault(data["host"], HostCount())
        self.at_task[data["host"]] = True
        setattr(host, kind, getattr(host, kind) + 1)
        task = str(data.get("task", "")).lower()
        stage = self.stages[-1].name if self.stages else ""
        result, goes_on = data.get("res", {}), bool(data.get("ignore_errors"))
        # Of what ends a host the first reason says enough; of what does not, each is somebody's own.
        for each in (result.get("results") if goes_on else None) or [result]:
            self.faults.append(Fault(data["host"], stage, task, reason_of(each), not goes_on))


def write_project(folder: Path, texts: Mapping[str, str], vault: Path) -> None:
    """Write the project again; what an earlier plan had and this one has not is gone."""
    with whole_path(folder) as part:
        make_private(part)
        for path, text in texts.items():
            file = part / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if vault.exists():
            write_whole(part / VAULT, vault.read_bytes())


@contextmanager
def alone(folder: Path, waits: Callable[[], None]) -> Iterator[int]:
    """Let one bring-up of a pod run at a time; gives the lock's number.

    Ansible inherits it: where a bring-up was killed, the next one waits until what it had started has ended too.
    """
    make_private(folder)
    with wait_for(folder / "lock", waits) as descriptor:
        yield descriptor


@dataclass(frozen=True)
class PlaybookRun:
    """One run of a playbook of the project below a folder, on these hosts alone."""

    folder: Path
    hosts: Sequence[str]
    key: Path
    lock: int
    playbook: str = PLAYBOOK
    stages: Sequence[str] = ()
    """The stages that these hosts go through, in their order."""


def run(what: PlaybookRun, on_progress: Callable[[ApplyProgress], None]) -> ApplyProgress:
    """Run a playbook to its end and return what happened."""
    folder = what.folder
    progress = ApplyProgress({host: HostCount() for host in what.hosts}, wanted=what.stages)
    files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    log = folder / "ansible.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            _command(what), env=_environment(folder), stderr=errors, pass_fds=[what.lock], **files
        )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            event = _event(line)
            if event is not None:
                progress.take(event, time.monotonic())
                on_progress(progress)
    progress.close(time.monotonic())
    if process.returncode and not progress.faults:
        reason = progress.error or last_line(log.read_text(errors="replace"), f"it ended with {process.returncode}")
        raise refuse(f"Ansible could not be run: {reason}", hint=f"its logs are below {folder}")
    return progress


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a run; ansible-runner by itself would take any host for the one that is meant."""
    return {
        **environment(),
        "ANSIBLE_CONFIG": str(folder / "project" / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        # By itself it shares connections among all that it does for a user by the names of hosts alone: two pods that
        # both have an `n1` would get each other's.
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets() / hashlib.sha256(str(folder).encode()).hexdigest()[:8]),
    }


def _command(what: PlaybookRun) -> list[str]:
    """Return the command. It ends with us, also when we are killed: then it stops Ansible in good order."""
    options = shlex.join([f"--vault-password-file={what.key}", f"--limit={','.join(what.hosts)}"])
    return [
        "setpriv",
        "--pdeathsig=TERM",
        "--",
        *program("ansible-runner"),
        "run",
        str(what.folder),
        f"--playbook={what.playbook}",
        f"--inventory={what.folder / 'project' / INVENTORY}",
        f"--rotate-artifacts={KEPT_RUNS}",
        f"--cmdline={options}",
        "--json",
    ]


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
