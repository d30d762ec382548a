"""The machines of a lab: namespaces with a process 1 of their own, wired to one bridge that only they see."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from podwright.lab import cgroups, processes
from podwright.lab.folder import remove
from podwright.lab.scripts import HUB_SCRIPT, INSIDE, MACHINE_SCRIPT, START_SCRIPT
from podwright.spec.problems import refuse

HUB = "hub"
_SPACES = ("--pid", "--mount", "--uts", "--ipc", "--net")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
    "SLURM_CONF": f"{INSIDE}/etc/slurm.conf",
}


class Machines:
    """The machines whose marks lie in one lab's folder, each with its address on the lab's network."""

    def __init__(self, folder: Path, addresses: Mapping[str, str]) -> None:
        self.folder = folder
        self.addresses = addresses

    def pid(self, name: str) -> int | None:
        """Return a machine's process 1 while it lives."""
        return processes.marked(self.folder / "pids" / name)

    def up(self) -> dict[str, int]:
        """Return process 1 of every machine that lives."""
        pids = {name: self.pid(name) for name in (HUB, *self.addresses)}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def running(self, name: str) -> Mapping[str, list[int]]:
        """Return what runs on a machine, by program name; nothing while it is off."""
        pid = self.pid(name)
        if pid is None:
            return {}
        return processes.running([pid]).get(pid, {})

    def start(self, names: Iterable[str]) -> list[str]:
        """Start those of the machines that do not live, all at once, and wait for them; return their names."""
        missing = [name for name in names if self.pid(name) is None]
        for name in missing:
            (self.folder / "run" / f"{name}.ready").unlink(missing_ok=True)
            (self.folder / "pids" / name).unlink(missing_ok=True)
        self._together({f"machine-{name}.log": self._start_command(name) for name in missing})
        for name in missing:
            self._await(name)
        return missing

    def _start_command(self, name: str) -> list[str]:
        start = ["unshare", *_SPACES, "--", "/bin/sh", str(self.folder / "bin" / START_SCRIPT)]
        if name == HUB:
            return [*start, HUB_SCRIPT, name]
        hub = str(self.pid(HUB))
        return ["nsenter", f"--target={hub}", "--mount", "--", *start, MACHINE_SCRIPT, name, self.addresses[name], hub]

    def _together(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Run commands side by side, each with its log; each ends soon, having left something behind that does not."""
        started = []
        for name, command in commands.items():
            with (self.folder / "log" / name).open("a") as log:
                files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
                started.append(subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **files))
        for process in started:
            process.wait()

    def _await(self, name: str) -> None:
        ready = self.folder / "run" / f"{name}.ready"
        processes.until(lambda: ready.exists() or self.pid(name) is None, every_s=0.01)
        if not ready.exists():
            raise self.failed(name, f"machine-{name}.log")

    def failed(self, what: str, log: str) -> Exception:
        """Return the refusal for something that did not start, with the last words of its log."""
        path = self.folder / "log" / log
        text = path.read_text(errors="replace") if path.is_file() else ""
        last = text.strip().splitlines()[-3:] or ["it left no word"]
        return refuse(f"{what} did not start: {' / '.join(last)}", hint=f"its log is {path}")

    def command(self, name: str, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command on a machine, as root."""
        pid = self.pid(name)
        if pid is None:
            raise refuse(f"the machine {name} is not up", hint="`podwright lab heal` starts it again")
        return ["nsenter", f"--target={pid}", *_SPACES, "--", *command]

    def run(self, name: str, command: Sequence[str], give: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command on a machine, as root, and return its words."""
        line = self.command(name, command)
        return subprocess.run(line, env=ENVIRONMENT, input=give, capture_output=True, text=True, check=False)

    def start_daemons(self, names: Iterable[str], command: Sequence[str]) -> None:
        """Run a command that puts itself into the background, on many machines at once."""
        self._together({f"{command[0]}-{name}.start.log": self.command(name, command) for name in names})

    def kill(self, names: Iterable[str]) -> None:
        """End process 1 of machines, which takes all their processes along, and wait until they are gone."""
        pids = {name: pid for name in names if (pid := self.pid(name)) is not None}
        for pid in pids.values():
            processes.kill(pid)
        processes.until(lambda: all(processes.born(pid) is None for pid in pids.values()), every_s=0.01)
        for name in pids:
            (self.folder / "pids" / name).unlink(missing_ok=True)

    def wires(self) -> dict[str, bool]:
        """Return of every machine that has a wire to the bridge whether it carries anything."""
        hub = self.pid(HUB)
        if hub is None:
            return {}
        links = json.loads(self._bridge("-json", "link", "show", "master", "br0").stdout or "[]")
        return {link["ifname"].removeprefix("v"): "UP" in link["flags"] for link in links if link}

    def links(self) -> dict[str, str]:
        """Return of every machine whether it is `up`, `off`, or `cut` off the network."""
        alive, wires = self.up(), self.wires()
        states = dict.fromkeys(self.addresses, "off")
        for name in states.keys() & alive.keys():
            states[name] = "up" if wires.get(name, False) else "cut"
        return states

    def set_wire(self, name: str, up: bool) -> None:
        """Cut a machine off, or join it again; its processes notice nothing else."""
        done = self._bridge("link", "set", f"v{name}", "up" if up else "down")
        if done.returncode:
            raise refuse(
                f"the machine {name} has no wire: {done.stderr.strip()}", hint="is it up? `podwright lab status`"
            )

    def _bridge(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(HUB, ["ip", *arguments])


def end(folder: Path) -> None:
    """End all processes of the lab in a folder and remove it; mounts and networks go with their last process.

    Machines are found by the script that is their process 1, not by their marks: whoever started one may have been
    killed before the mark was written.
    """
    scripts = [str(folder / "bin" / name) for name in (START_SCRIPT, HUB_SCRIPT, MACHINE_SCRIPT)]
    processes.kill_all(lambda: processes.running_scripts(scripts))
    cgroups.remove(folder)
    remove(folder)
