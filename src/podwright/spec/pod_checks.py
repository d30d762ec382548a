"""What must hold between the fields of a pod; looks at the values as written, like the checks of a workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podwright.spec.alerts import alerts
from podwright.spec.findings import Finding
from podwright.spec.hostlist import expand_hosts, fold_hosts
from podwright.spec.nearest import did_you_mean
from podwright.spec.partitions import partitions
from podwright.spec.problems import Refusal, short
from podwright.spec.remediation import remediation
from podwright.spec.teams import teams

# Looking for a close match among all hosts of a large pod would take seconds.
MAX_COMPARED = 1000

Tree = dict[str, Any]
Found = Iterator[Finding]


def nodes(tree: Tree) -> Found:
    """Check that there are nodes, and that a host belongs to one group."""
    if tree.get("nodes") == []:
        yield Finding(("nodes",), "has no groups", 'write `- {hosts: "n[1-4]", model: cpu-server}`')
    seen: set[str] = set()
    for index, group in _entries(tree, "nodes"):
        twice = [host for host in _hosts(group) if host in seen]
        if twice:
            yield Finding(("nodes", index, "hosts"), f"{_list(twice)} in another group too", "name each host once")
        seen.update(_hosts(group))


def schedulers(tree: Tree) -> Found:
    """Check that a scheduler has hosts of the pod, and none of another scheduler's."""
    pod: list[str] = []
    for _, group in _entries(tree, "nodes"):
        pod += _hosts(group)
    entries, taken, known = _entries(tree, "schedulers"), set[str](), set(pod)
    for index, entry in entries:
        path = ("schedulers", index, "hosts")
        mine = _hosts(entry)
        strange = [host for host in mine if host not in known]
        both = [host for host in mine if host in taken]
        if "hosts" not in entry and len(entries) > 1:
            yield Finding(path, "is missing", "with several schedulers each one says which hosts it has")
        if strange and pod:
            hint = did_you_mean(strange[0], pod[:MAX_COMPARED], f"the pod has {short(fold_hosts(pod))}")
            yield Finding(path, f"{_list(strange)} not in the pod", hint)
        if both:
            yield Finding(path, f"{_list(both)} of another scheduler too", "schedulers share no hosts")
        taken.update(mine)


def names(tree: Tree) -> Found:
    """Check that names that targets and volumes go by are given once."""
    for field, default in (("schedulers", "kind"), ("storage", "name")):
        seen: set[str] = set()
        for index, entry in _entries(tree, field):
            given = entry.get("name", entry.get(default))
            if not isinstance(given, str):
                continue
            if given in seen:
                hint = "give each one a `name:` of its own"
                yield Finding((field, index, "name"), f'"{short(given)}" is there twice', hint)
            seen.add(given)


def hardware(tree: Tree) -> Found:
    """Check that a node model that is written out holds together."""
    for index, group in _entries(tree, "nodes"):
        model = group.get("model")
        if not isinstance(model, dict):
            continue
        gpus = model.get("gpus")
        if isinstance(gpus, dict) and isinstance(gpus.get("numa"), list) and isinstance(gpus.get("count"), int):
            have, want = len(gpus["numa"]), gpus["count"]
            if have != want:
                path = ("nodes", index, "model", "gpus", "numa")
                yield Finding(path, f"names {have} NUMA nodes for {want} GPUs", "name one for each GPU")


def addresses(tree: Tree) -> Found:
    """Check that a group that names addresses has one for each of its hosts, and that no two hosts share one."""
    for field in ("addresses", "macs"):
        seen: set[str] = set()
        for index, group in _entries(tree, "nodes"):
            given = group.get(field)
            if not isinstance(given, list):
                continue
            path, hosts = ("nodes", index, field), _hosts(group)
            if hosts and len(given) != len(hosts):
                yield Finding(path, f"names {len(given)} for {len(hosts)} hosts", "name one for each, in their order")
            for address in map(str, given):
                if address.lower() in seen:
                    yield Finding(path, f"{short(address)} is there twice", "each host has an address of its own")
                seen.add(address.lower())


def controllers(tree: Tree) -> Found:
    """Check that each host of a group with management controllers has one of its own."""
    for index, group in _entries(tree, "nodes"):
        section, hosts = group.get("bmc"), _hosts(group)
        given = section.get("address") if isinstance(section, dict) else None
        path = ("nodes", index, "bmc", "address")
        if isinstance(given, str) and "{host}" not in given and len(hosts) > 1:
            yield Finding(path, f"names one for {len(hosts)} hosts", "write `{host}` into it, or name one for each")
        elif isinstance(given, list) and hosts and len(given) != len(hosts):
            yield Finding(path, f"names {len(given)} for {len(hosts)} hosts", "name one for each, in their order")


def roles(tree: Tree) -> Found:
    """Check that what is given a role in the bring-up is a host of the pod."""
    section = tree.get("bringup")
    given = section.get("roles") if isinstance(section, dict) else None
    if not isinstance(given, dict):
        return
    pod: list[str] = []
    for _, group in _entries(tree, "nodes"):
        pod += _hosts(group)
    for role, host in given.items():
        if pod and isinstance(host, str) and host not in pod:
            hint = did_you_mean(host, pod[:MAX_COMPARED], f"the pod has {short(fold_hosts(pod))}")
            yield Finding(("bringup", "roles", role), f'"{short(host)}" is not a host of the pod', hint)


CHECKS = (nodes, schedulers, names, hardware, addresses, controllers, roles, teams, alerts, remediation, partitions)


def _entries(tree: Tree, field: str) -> list[tuple[int, Tree]]:
    value = tree.get(field)
    if not isinstance(value, list):
        return []
    return [(index, entry) for index, entry in enumerate(value) if isinstance(entry, dict)]


def _hosts(entry: Tree) -> list[str]:
    value = entry.get("hosts")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    if not isinstance(value, str):
        return []
    try:
        return expand_hosts(value)
    except Refusal:
        return []


def _list(hosts: list[str]) -> str:
    verb = "is" if len(hosts) == 1 else "are"
    return f"{short(fold_hosts(hosts))} {verb}"
