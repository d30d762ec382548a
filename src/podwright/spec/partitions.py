"""Partitions of one's own in a pod's file, instead of one for nodes with GPUs and one for those without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.hostlist import expand_hosts, fold_hosts
from podwright.spec.problems import Refusal, short
from podwright.spec.types import AsWritten, Flag, Hosts, Line, Lines, Strict, Text, pattern

PartitionName = Annotated[
    Line, pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", '"{}" is not the name of a partition', "like `gpu`")
]
SettingName = Annotated[
    Text, pattern(r"[A-Za-z][A-Za-z0-9]{0,63}", '"{}" is not the name of a setting', "letters and digits")
]
PartitionValue = Annotated[
    AsWritten, pattern(r"[^\s]+", "must be one word", "such as 1-00:00:00: a partition is one line of slurm.conf")
]
_OURS = ("PartitionName", "Nodes", "Default", "AllowAccounts")


class OwnPartition(Strict):
    """A partition of Slurm."""

    name: PartitionName = Field(description="its name")
    hosts: Hosts = Field(description="its nodes, which may be in several")
    default: Flag = Field(
        default=False, description="whether jobs go there by themselves; left out everywhere: the first"
    )
    teams: Lines = Field(default=(), description="teams that may use it; left out: everybody")
    conf: dict[SettingName, PartitionValue] = Field(
        default={}, description="further settings, such as MaxTime, PriorityTier or PreemptMode"
    )


def partitions(tree: dict[str, Any]) -> Iterator[Finding]:
    """Check that partitions are of the pod's Slurm and its teams, that names are given once, and one default."""
    settings = _part(_part(tree, "bringup"), "settings")
    given = settings.get("partitions")
    entries = [(index, each) for index, each in enumerate(given if isinstance(given, list) else []) if _is(each)]
    slurm = _slurm_hosts(tree)
    teams = {str(each.get("name")) for each in _listed(tree, "teams") if _is(each)}
    names: set[object] = set()
    for index, entry in entries:
        path = ("bringup", "settings", "partitions", index)
        strange = [host for host in _hosts(entry) if host not in slurm]
        if strange and slurm:
            hint = f"Slurm has {short(fold_hosts(slurm))}"
            yield Finding((*path, "hosts"), f"{short(fold_hosts(strange))}: not among Slurm's hosts", hint)
        if str(entry.get("name")) in names:
            yield Finding((*path, "name"), f'"{short(str(entry["name"]))}" is there twice', "give it another")
        names.add(str(entry.get("name")))
        for place, team in enumerate(_listed(entry, "teams")):
            if str(team) not in teams:
                yield Finding((*path, "teams", place), f'"{short(str(team))}" is not a team', "name one of `teams:`")
        for key in _part(entry, "conf"):
            if key in _OURS:
                yield Finding((*path, "conf", key), "is written from the partition's own fields", "leave it out")
    defaults = [index for index, entry in entries if entry.get("default") is True]
    for index in defaults[1:]:
        yield Finding(("bringup", "settings", "partitions", index, "default"), "is there twice", "one is enough")


def _is(value: object) -> bool:
    return isinstance(value, dict)


def _part(tree: dict[str, Any], name: str) -> dict[str, Any]:
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def _listed(tree: dict[str, Any], name: str) -> list[Any]:
    value = tree.get(name)
    return value if isinstance(value, list) else []


def _slurm_hosts(tree: dict[str, Any]) -> list[str]:
    for scheduler in _listed(tree, "schedulers"):
        if _is(scheduler) and scheduler.get("kind") == "slurm" and "hosts" in scheduler:
            return _hosts(scheduler)
    return []


def _hosts(entry: dict[str, Any]) -> list[str]:
    value = entry.get("hosts")
    try:
        return expand_hosts(value) if isinstance(value, str) else []
    except Refusal:
        return []
