"""`podwright pod up` of bare lab hosts against a plain playbook of Ansible with the same packages, files and services.

    python benchmarks/bringup_up.py [--pairs 5] [--nodes 4] [--filled] [--json OUT]

Needs root, and half an hour: not part of `make bench`. Each round starts two labs of bare hosts, one after the other.
One is brought up by us, the other by a playbook as a person would write it, with the modules apt, copy and systemd. The
second `up` of the first lab is measured too. Packages come from a mirror on this machine, which a first round that
is not counted fills.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import BIN, ROOT, alternate, compare, conclude, machine, parser, start
from podwright.bringup.apply import ansible
from podwright.bringup.apply.vault import vault_of
from podwright.bringup.plan.host import HostPlan, Step
from podwright.bringup.plan.hosts import STEPS, plan
from podwright.bringup.plan.site import with_access
from podwright.lab.hosts import lab as hosts
from podwright.spec import load_pod

EXAMPLE = ROOT / "examples" / "lab-pod.yaml"
GOAL, AGAIN_GOAL = 1.2, 0.5


def plain_tasks(step: Step) -> list[dict[str, Any]]:
    """The tasks that a person would write for a step; what is random for each pod comes from the same vault."""
    tasks: list[dict[str, Any]] = []
    if step.packages:
        apt = {"name": list(step.packages), "update_cache": True, "cache_valid_time": 3600, "install_recommends": False}
        tasks.append({"name": "packages", "ansible.builtin.apt": apt})
    for account in step.accounts:
        tasks.append({"name": account.name, "ansible.builtin.group": {"name": account.name, "gid": account.uid}})
        user = {"name": account.name, "uid": account.uid, "group": account.name, "shell": "/bin/bash"}
        tasks.append({"name": account.name, "ansible.builtin.user": user})
    for folder in step.folders:
        rights = {"mode": folder.mode, "owner": folder.owner, "group": folder.group}
        tasks.append(
            {"name": folder.path, "ansible.builtin.file": {"path": folder.path, "state": "directory", **rights}}
        )
    for file in step.files:
        rights = {"mode": file.mode, "owner": file.owner, "group": file.group}
        content = f"{{{{ podwright_secrets['{file.secret}'] }}}}" if file.secret else {"__ansible_unsafe": file.text}
        tasks.append({"name": file.path, "ansible.builtin.copy": {"content": content, "dest": file.path, **rights}})
    for service in dict.fromkeys(name for file in step.files for name in file.restarts):
        tasks.append({"name": service, "ansible.builtin.systemd_service": {"name": service, "state": "restarted"}})
    for service in step.services:
        wanted = {"name": service, "state": "started", "enabled": True}
        tasks.append({"name": service, "ansible.builtin.systemd_service": wanted})
    for command in step.commands:
        given: dict[str, Any] = {"argv": list(command.run)}
        if command.secret:
            given["stdin"] = f"{{{{ podwright_secrets['{command.secret}'] }}}}"
        again = {"register": "ran", "until": "ran.rc == 0", "retries": 30, "delay": 1}
        tasks.append({"name": command.name, "ansible.builtin.command": given, **again})
    return tasks


def plain_plays(plans: dict[str, HostPlan]) -> list[dict[str, Any]]:
    """A play for each step and for hosts that get the same of it, in the order of the steps."""
    plays = []
    for name in STEPS:
        groups: list[tuple[list[dict[str, Any]], list[str]]] = []
        for host, given in plans.items():
            if name not in given.steps:
                continue
            tasks = plain_tasks(given.steps[name])
            for known, members in groups:
                if known == tasks:
                    members.append(host)
                    break
            else:
                groups.append((tasks, [host]))
        for tasks, members in groups:
            play = {"name": name, "hosts": ",".join(members), "gather_facts": False, "tasks": tasks}
            plays.append({**play, "vars_files": [ansible.VAULT]})
    return plays


class BareLab:
    """Bare hosts with a home of their own, until it is left."""

    def __init__(self, nodes: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="pw-", dir="/var/tmp")
        place = Path(self.folder.name)
        place.chmod(0o755)
        self.lab = hosts.up(place / "lab", ends_with=os.getpid(), nodes=nodes)
        self.environ = {**os.environ, "PODWRIGHT_HOME": str(place / "home")}
        self.home = place / "home"
        self.run("pod", "add", str(self.lab.pod_file))

    def run(self, *words: str) -> float:
        """Seconds that a command of ours takes."""
        return taken([str(BIN / "podwright"), *words], ROOT, self.environ)

    def __enter__(self) -> BareLab:
        return self

    def __exit__(self, *_: object) -> None:
        self.lab.down()
        self.folder.cleanup()


def taken(command: list[str], where: Path, environ: dict[str, str]) -> float:
    """Seconds that a command takes; one that fails ends the benchmark with what it said."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=where, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return time.perf_counter() - began


def ours(nodes: int) -> tuple[float, float]:
    """Seconds of a first `up` and of a second one."""
    with BareLab(nodes) as bare:
        return bare.run("pod", "up", str(EXAMPLE)), bare.run("pod", "up", str(EXAMPLE))


def plain(nodes: int) -> float:
    """Seconds of the plain playbook."""
    import yaml

    with BareLab(nodes) as bare:
        project = bare.home.parent / "project"
        bare.run("pod", "plan", str(EXAMPLE), "--offline", "--out", str(project))
        pod = with_access(load_pod(EXAMPLE), load_pod(bare.lab.pod_file))
        text = yaml.dump(plain_plays(plan(pod)), Dumper=unsafe_dumper(), sort_keys=False, width=10**6)
        (project / "plain.yml").write_text(text)
        key = vault_of(bare.home, pod.name).key_file
        command = [str(BIN / "ansible-playbook"), "plain.yml", f"--vault-password-file={key}"]
        return taken(command, project, {**bare.environ, "ANSIBLE_CONFIG": str(project / "ansible.cfg")})


def unsafe_dumper() -> Any:
    """A dumper that marks the texts of files, so that Ansible takes no brace in them for a template."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of files with Ansible's own tag."""

        def ignore_aliases(self, data: Any) -> bool:
            """Write out what is the same twice."""
            return True

    def mapping(dumper: Any, data: dict[str, Any]) -> Any:
        if set(data) == {"__ansible_unsafe"}:
            return dumper.represent_scalar("!unsafe", data["__ansible_unsafe"])
        return dumper.represent_mapping("tag:yaml.org,2002:map", data.items())

    Dumper.add_representer(dict, mapping)
    return Dumper


def main() -> int:
    """Bring up labs in turn, by us and by the playbook."""
    asked = parser("Time of a bring-up against a plain playbook.", pairs=5)
    asked.add_argument("--nodes", type=int, default=4, help="hosts of each lab (default: %(default)s)")
    asked.add_argument("--filled", action="store_true", help="the mirror has all packages: every round is counted")
    options = asked.parse_args()
    facts = machine()
    again: list[float] = []

    def up() -> float:
        first, second = ours(options.nodes)
        again.append(second)
        return first

    arms = {"up": up, "playbook": lambda: plain(options.nodes)}
    seconds = alternate(arms, options.pairs, warm_up=not options.filled)
    # The one before these is of the round that is not counted.
    seconds["again"] = again[-options.pairs :]
    rows = [
        compare("up / plain playbook", seconds["up"], seconds["playbook"], GOAL),
        compare("second up / first", seconds["again"], seconds["up"], AGAIN_GOAL),
    ]
    conclude("bringup_up", rows, {"seconds": seconds}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
