"""The plan as a project of Ansible: inventory, playbook, and our one role; plain `ansible-playbook` runs it too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from podwright.bringup.apply.sent import sent
from podwright.bringup.plan.host import MARKS, HostFile, HostFolder, HostPlan, Step
from podwright.bringup.plan.hosts import STEPS

if TYPE_CHECKING:
    from podwright.spec import Pod

COLLECTION = "collections/ansible_collections/podwright/pod"
PLAYBOOK, DOWN, REMOVE, INVENTORY, VAULT = "site.yml", "down.yml", "remove.yml", "inventory.json", "vault.yml"
_SENT = ("inspect_host.py", "apply_step.py", "guard.py")
"""Programs that hosts are sent as they are."""
FileNames = Mapping[tuple[str, str], str]
"""Where the project has a content, by the path and the digest of the file."""
_KEPT = frozenset({"ssh"})  # without it a host could not be reached any more


def project_files(
    pod: Pod, plans: Mapping[str, HostPlan], revisions: Mapping[str, int], lines: bool = False
) -> dict[str, str]:
    """Return every file of the project by its path, but for the vault; each content lies there once, by its name.

    `lines`: the inventory has a key a line, for people who review changes of it; it takes longer to write.
    """
    names = file_names(plans)
    texts = {f"files/{names[file.path, file.digest]}": file.text for file in _open_files(plans.values())}
    own = files("podwright.bringup.apply")
    return {
        **dict(_tree(own / "project")),
        "README.md": (own / "project" / "README.md").read_text().replace("@pod@", pod.name),
        PLAYBOOK: _playbook(plans),
        INVENTORY: json.dumps(inventory(pod, plans, revisions, names), indent=1 if lines else None) + "\n",
        **{name: sent(name) for name in _SENT},
        **{f"{COLLECTION}/{path}": text for path, text in _tree(own / "collection")},
        **texts,
    }


def _open_files(plans: Iterable[HostPlan]) -> Iterator[HostFile]:
    """Yield every file that is no secret, as often as steps have it."""
    for plan in plans:
        for step in plan.steps.values():
            yield from (file for file in step.files if not file.secret)


def file_names(plans: Mapping[str, HostPlan]) -> FileNames:
    """Return where each content lies below `files`: by its path, and where hosts differ by the first that has it."""
    first: dict[str, dict[str, str]] = {}
    for name, plan in plans.items():
        for file in _open_files([plan]):
            first.setdefault(file.path, {}).setdefault(file.digest, name)
    names: dict[tuple[str, str], str] = {}
    for path, hosts in first.items():
        for digest, host in hosts.items():
            names[path, digest] = path.lstrip("/") if len(hosts) == 1 else f"{path.lstrip('/')}@{host}"
    return names


def inventory(
    pod: Pod, plans: Mapping[str, HostPlan], revisions: Mapping[str, int], names: FileNames
) -> dict[str, Any]:
    """Return the inventory: how each host is reached, what each step gives it, and a group for each step."""
    groups: dict[str, dict[str, Any]] = {group_of(step): {"hosts": {}} for step in STEPS}
    hosts = {}
    for name, plan in plans.items():
        steps = {step: _step(step, given, revisions, names) for step, given in plan.steps.items()}
        # An ssh configuration knows hosts by their names, and by which way they are reached.
        address = name if pod.bringup.ssh_config else plan.address
        services = [service for service in reversed(plan.services()) if service not in _KEPT]
        hosts[name] = {
            "ansible_host": address,
            "podwright_steps": steps,
            "podwright_services": services,
            "podwright_record": _file(HostFile(plan.record, mode="0600")) if plan.record else {},
            "podwright_leaves": [file.path for file in plan.files() if file.leaves],
            "podwright_keys": [file.path for file in plan.files() if file.secret],
        }
        for step in steps:
            groups[group_of(step)]["hosts"][name] = {}
    settings: dict[str, Any] = {"ansible_user": pod.bringup.user, "ansible_python_interpreter": "/usr/bin/python3"}
    if pod.bringup.user != "root":
        settings["ansible_become"] = True
    if pod.bringup.ssh_config:
        settings["ansible_ssh_common_args"] = f"-F '{pod.bringup.ssh_config}'"
    return {"all": {"vars": settings, "hosts": hosts, "children": groups}}


def group_of(step: str) -> str:
    """Return the name of the group of hosts that a step gives something."""
    return f"step_{step.replace('.', '_')}"


def _step(name: str, step: Step, revisions: Mapping[str, int], names: FileNames) -> dict[str, Any]:
    """Return a step as the role reads it."""
    return {
        "packages": step.wanted_packages(),
        "accounts": [asdict(account) for account in step.accounts],
        "folders": [asdict(folder) for folder in step.folders],
        "files": [{**_file(file), "content": names[file.path, file.digest]} for file in step.files if not file.secret],
        "secret_files": [{**_file(file), "secret": file.secret} for file in step.files if file.secret],
        "services": step.services,
        "commands": [asdict(command) for command in step.commands if not command.secret],
        "secret_commands": [asdict(command) for command in step.commands if command.secret],
        "started_with": step.started_with(revisions),
        "asks": asks(name, step),
    }


def asks(name: str, step: Step) -> dict[str, Any]:
    """Return what a host is asked before anything is changed."""
    names = ("mode", "owner", "group")
    wanted = {file.path: {"digest": file.digest, **_of(file, names)} for file in step.files if not file.secret}
    wanted |= {folder.path: {"digest": "", **_of(folder, names)} for folder in step.folders}
    return {
        "files": [file.path for file in step.files if file.secret],
        "wanted": wanted,
        "accounts": {account.name: [account.uid, account.shell] for account in step.accounts},
        "packages": step.packages,
        "releases": dict(step.releases),
        "services": step.services,
        "mark": f"{MARKS}-{name}.json",
    }


def _file(file: HostFile) -> dict[str, Any]:
    names = ("path", "mode", "owner", "group", "check", "restarts", "guards")
    return {**_of(file, names), "digest": "" if file.secret else file.digest}


def _of(entry: HostFile | HostFolder, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in names}


def _playbook(plans: Mapping[str, HostPlan]) -> str:
    there: set[str] = set()
    for plan in plans.values():
        there.update(plan.steps)
    plays = []
    for step in filter(there.__contains__, STEPS):
        plays.append(f"""\
- name: {step}
  hosts: {group_of(step)}
  gather_facts: false
  tags: [{step.split(".")[0]}]
  vars_files: [{VAULT}]
  vars: {{podwright_step: {step}}}
  roles: [podwright.pod.step]
""")
    return "# Every step is a play; `--tags STAGE` and `--limit HOSTS` take a part.\n" + "\n".join(plays)


def _tree(folder: Traversable, above: str = "") -> list[tuple[str, str]]:
    entries = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{above}{entry.name}"
        if entry.is_dir():
            entries += _tree(entry, f"{path}/")
        else:
            entries.append((path, entry.read_text()))
    return entries
