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
