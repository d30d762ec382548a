"""The file under which a pod is known after its bring-up: what was written, and how its hosts are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from podwright.bringup.plan.site import site_of

if TYPE_CHECKING:
    from podwright.spec import Pod

_HEAD = "# Written by `podwright pod up`.\n"
_FOLDER = "$HOME/podwright"


def known_text(pod: Pod) -> str:
    """Return the pod's file with login, folder and the way to its hosts filled in where it left them out."""
    document: dict[str, Any] = yaml.safe_load(pod.source)
    for entry, group in zip(document["nodes"], pod.nodes, strict=True):
        entry["addresses"] = list(group.addresses)
    section = document.setdefault("bringup", {})
    section["user"] = pod.bringup.user
    if pod.bringup.ssh_config:
        section["ssh_config"] = pod.bringup.ssh_config
    section["users"] = [_account(account.model_dump()) for account in pod.bringup.users]
    for scheduler in document.get("schedulers", []):
        if scheduler["kind"] == "slurm":
            _fill(scheduler, pod)
    return _dumped(document)


def kept_text(pod: Pod, known: Pod) -> str | None:
    """Return a pod's file with what the last bring-up knew of its hosts, where the file leaves it out.

    None where no bring-up wrote what is known: then the file alone is the pod.
    """
    if not known.source.startswith(_HEAD.encode()):
        return None
    document, before = yaml.safe_load(pod.source), yaml.safe_load(known.source)
    there: dict[str, str] = {}
    for group in known.nodes:
        there |= dict(zip(group.hosts, group.addresses, strict=False))
    for entry, group in zip(document["nodes"], pod.nodes, strict=True):
        if all(host in there for host in group.hosts):
            entry.setdefault("addresses", [there[host] for host in group.hosts])
    section = document.setdefault("bringup", {})
    for name in ("user", "ssh_config", "users"):
        if name in before.get("bringup", {}):
            section.setdefault(name, before["bringup"][name])
    schedulers = {_name(each): each for each in before.get("schedulers", [])}
    for each in document.get("schedulers", []):
        for name in ("login", "ssh_config", "folder"):
            if name in schedulers.get(_name(each), {}):
                each.setdefault(name, schedulers[_name(each)][name])
    return _dumped(document)


def _name(scheduler: dict[str, Any]) -> str:
    return str(scheduler.get("name", scheduler["kind"]))


def _dumped(document: dict[str, Any]) -> str:
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


def _fill(scheduler: dict[str, Any], pod: Pod) -> None:
    site = site_of(pod)
    login = site.roles["login"]
    place = login if pod.bringup.ssh_config else site.addresses[login]
    # Runs are an ordinary person's: the first account that the pod has, else whoever logs in by their own name.
    accounts = pod.bringup.users
    scheduler.setdefault("login", f"{accounts[0].name}@{place}" if accounts else place)
    if pod.bringup.ssh_config:
        scheduler.setdefault("ssh_config", pod.bringup.ssh_config)
    shared = site.shared_mounts
    scheduler.setdefault("folder", f"{shared[0]}/$USER/podwright" if shared else _FOLDER)


def _account(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "keys": list(fields["keys"])}
