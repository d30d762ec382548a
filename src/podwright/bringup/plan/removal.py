"""A pod without one of its hosts: its file as it will be, and what hinders it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from podwright.spec.hostlist import expand_hosts, fold_hosts
from podwright.spec.loader import pod_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site
    from podwright.spec import Pod

_PER_HOST = ("addresses", "macs")
"""Lists of a group of nodes that go with its hosts, one by one."""


def without(site: Site, host: str) -> Pod:
    """Return the pod without a host; refuse one that the pod cannot do without."""
    _check(site, host)
    document = yaml.safe_load(site.pod.source)
    document["nodes"] = list(_groups(document["nodes"], host))
    for holder in (document, document.get("bringup", {}).get("settings", {})):
        for field in ("schedulers", "partitions"):
            if field in holder:
                holder[field] = list(_lists(holder[field], host))
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    return pod_of(text.encode(), site.pod.path)


def _check(site: Site, host: str) -> None:
    given = dict(site.pod.bringup.roles.model_dump())
    roles = [role for role, name in given.items() if name == host]
    roles += [role for role in _used(site) if site.roles[role] == host and role not in roles]
    if roles:
        hint = f"give another host that role first: `bringup.roles.{roles[0]}`, then `pod up`"
        raise refuse(f"{host} is the pod's {', '.join(roles)}", hint=hint, field="HOST")
    if site.kubernetes is not None and "management" in _roles_of(site.pod, host):
        hint = "a cluster of kubeadm keeps an odd number of them; see its own documentation on members of etcd"
        raise refuse(f"{host} is a management host of Kubernetes", hint=hint, field="HOST")
    for scheduler in site.pod.schedulers:
        if list(site.pod.scheduler_hosts(scheduler)) == [host]:
            raise refuse(f"{host} is the only host of {scheduler.name}", hint="`podwright pod down`", field="HOST")


def _used(site: Site) -> Iterator[str]:
    """Yield the roles that the pod has a use for, and that fall to some host where nobody says to which."""
    if site.scheduler is not None:
        yield from ("controller", "login")
    services = ("registry", "mirror", "monitoring", "netboot")
    yield from (role for role in services if site.has(role))
    if site.pod.bringup.exports:
        yield "storage"


def _roles_of(pod: Pod, host: str) -> tuple[str, ...]:
    return next(group.roles for group in pod.nodes if host in group.hosts)


def _groups(groups: list[dict[str, Any]], host: str) -> Iterator[dict[str, Any]]:
    """Yield the groups of nodes without the host; one that has no other is gone."""
    for group in groups:
        hosts = _expanded(group["hosts"])
        if host not in hosts:
            yield group
            continue
        place = hosts.index(host)
        left: dict[str, Any] = {**group, "hosts": fold_hosts(_less(hosts, place))}
        left |= {field: _less(group[field], place) for field in _PER_HOST if field in group}
        if isinstance(group.get("bmc"), Mapping) and isinstance(group["bmc"].get("address"), list):
            left["bmc"] = {**group["bmc"], "address": _less(group["bmc"]["address"], place)}
        if left["hosts"]:
            yield left


def _lists(entries: list[dict[str, Any]], host: str) -> Iterator[dict[str, Any]]:
    """Yield what names hosts without this one; a partition that has no other is gone."""
    for entry in entries:
        if "hosts" not in entry:
            yield entry
            continue
        left = [each for each in _expanded(entry["hosts"]) if each != host]
        if left:
            yield {**entry, "hosts": fold_hosts(left)}


def _expanded(given: str | list[str]) -> list[str]:
    return expand_hosts(given if isinstance(given, str) else ",".join(given))


def _less(values: list[Any], place: int) -> list[Any]:
    return [*values[:place], *values[place + 1 :]]
