"""Remediation: the unit that decides beside Prometheus, and on every node a hand that does what it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.kubernetes.kubeadm import management_hosts
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.template import unit_of
from podwright.bringup.remedy.program import PROGRAM, remedy_program
from podwright.watch import exporters_name
from podwright.watch.receivers import REMEDY_PORT, REMEDY_TOKEN_FILE

HAND_PORT = 9837
JOURNAL_FOLDER = "/var/lib/podwright-remedy"
_HEAD = "# Written by `podwright pod up`.\n"
_PROGRAM = f"/usr/lib/podwright/{PROGRAM}"
_UNIT, _HAND = "podwright-remedy", "podwright-hand"
_KEYS = "/etc/podwright"


def remedy(site: Site, host: str) -> Step | None:
    """Return what a host has of it; nothing where the pod's file does not ask for remedies."""
    if site.pod.remediation is None or not site.has("monitoring"):
        return None
    services, files, folders = list[str](), list[HostFile](), list[HostFolder]()
    if host in hand_hosts(site):
        services.append(_HAND)
        files += _hand_files(site, host)
        folders.append(HostFolder(f"{_KEYS}/{_HAND}", "0700"))
    if site.is_on("monitoring", host):
        services.append(_UNIT)
        files += _unit_files(site)
        folders.append(HostFolder(f"{_KEYS}/{_UNIT}", "0700"))
    if not services:
        return None
    program = HostFile(_PROGRAM, remedy_program(), "0755", restarts=tuple(services))
    return Step(
        packages=("python3",),
        folders=(HostFolder("/usr/lib/podwright"), HostFolder(_KEYS), *folders),
        files=(program, *files),
        services=tuple(services),
    )


def hand_hosts(site: Site) -> set[str]:
    """Return the hosts with a hand: all nodes, and where the commands of their schedulers are."""
    hosts = set(site.compute | site.kubernetes_hosts)
    if site.scheduler is not None:
        hosts.add(site.roles["login"])
    if site.kubernetes is not None:
        hosts.add(management_hosts(site)[0])
    return hosts


def _hand_files(site: Site, host: str) -> Iterator[HostFile]:
    folder, restarts = f"{_KEYS}/{_HAND}", (_HAND,)
    yield HostFile(f"{folder}/exporters.crt", secret="exporters_certificate", restarts=restarts)
    for name, secret in (("exporters.key", "exporters_key"), ("remedy.token", "remedy_token")):
        yield HostFile(f"{folder}/{name}", mode="0600", secret=secret, restarts=restarts)
    commands = ",".join(row["kind"] for row in _schedulers(site) if row["host"] == host)
    words = f"--listen={site.addresses[host]}:{HAND_PORT}" + (f" --commands={commands}" if commands else "")
    yield HostFile(f"/etc/default/{_HAND}", f'{_HEAD}ARGS="{words}"\n', restarts=restarts)
    yield unit_of(_HAND, program=_PROGRAM, folder=folder)


def _unit_files(site: Site) -> Iterator[HostFile]:
    folder, restarts = f"{_KEYS}/{_UNIT}", (_UNIT,)
    yield HostFile(f"{folder}/ca.crt", secret="ca_certificate", restarts=restarts)
    yield HostFile(f"{folder}/remedy.token", mode="0600", secret="remedy_token", restarts=restarts)
    text = json.dumps(settings(site, folder), indent=1) + "\n"
    yield HostFile(f"{folder}/settings.json", text, restarts=restarts)
    # Alertmanager shows this one, and must not be able to tell hands what to do.
    yield HostFile(f"{folder}/hook.token", mode="0600", secret="remedy_hook_token", restarts=restarts)
    # Alertmanager reads it again for every message.
    yield HostFile(REMEDY_TOKEN_FILE, "", "0640", "root", "prometheus", "remedy_hook_token")
    yield unit_of(_UNIT, program=_PROGRAM, folder=folder, port=REMEDY_PORT, journal=JOURNAL_FOLDER)


def settings(site: Site, folder: str) -> dict[str, Any]:
    """Return what the unit is told: the policy, the schedulers, and where hands are."""
    policy = site.pod.remediation
    assert policy is not None
    return {
        "drain": list(policy.drain),
        "reset": policy.reset,
        "max": policy.max,
        "dry_run": policy.dry_run,
        "name": exporters_name(site.pod),
        "authority": f"{folder}/ca.crt",
        "token": f"{folder}/remedy.token",
        "hands": {host: f"{site.addresses[host]}:{HAND_PORT}" for host in sorted(hand_hosts(site))},
        "schedulers": _schedulers(site),
    }


def _schedulers(site: Site) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if site.scheduler is not None:
        rows.append({"kind": "slurm", "host": site.roles["login"], "members": sorted(site.compute)})
    if site.kubernetes is not None:
        manager = management_hosts(site)[0]
        rows.append({"kind": "kubernetes", "host": manager, "members": sorted(site.kubernetes_hosts)})
    return rows
