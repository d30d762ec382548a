"""A pod as bring-up sees it: every host with its address, and the host of every role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from podwright.bringup.plan.slurm import OLDEST, Version
from podwright.bringup.plan.systems import SYSTEMS
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod, SlurmScheduler

Made = TypeVar("Made")
REGISTRY_PORT = 5000
MIRROR_PORT = 3142
_LABS = "a lab's are known after `podwright lab up hosts`"
_DEFAULT_ROLES = ("controller", "login", "registry", "mirror", "monitoring", "netboot", "storage", "time")


def given_name(variable: str) -> str:
    """Return the name in the vault of a secret that people give through a variable."""
    return f"given_{variable}"


@dataclass(frozen=True)
class Site:
    """A pod with all roles and addresses resolved."""

    pod: Pod
    addresses: dict[str, str]
    roles: dict[str, str]
    _made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def remember(self, what: str, make: Callable[[Site], Made]) -> Made:
        """Return what all hosts share, made when the first one asks: a pod may have thousands."""
        if what not in self._made:
            self._made[what] = make(self)
        remembered: Made = self._made[what]
        return remembered

    @property
    def name(self) -> str:
        """Return the pod's name."""
        return self.pod.name

    @cached_property
    def scheduler(self) -> SlurmScheduler | None:
        """Return the pod's Slurm; None where it has none."""
        for scheduler in self.pod.schedulers:
            if scheduler.kind == "slurm":
                return scheduler
        return None

    @cached_property
    def compute(self) -> frozenset[str]:
        """Return the hosts that Slurm starts jobs on."""
        if self.scheduler is None:
            return frozenset()
        return frozenset(self.pod.scheduler_hosts(self.scheduler))

    @cached_property
    def slurm_hosts(self) -> frozenset[str]:
        """Return all hosts that have Slurm's files."""
        if self.scheduler is None:
            return frozenset()
        return self.compute | {self.roles["controller"], self.roles["login"]}

    @cached_property
    def slurm_version(self) -> Version:
        """Return the release that Slurm's files are written for."""
        given = self.pod.bringup.versions.slurm
        version = SYSTEMS[self.pod.bringup.os].slurm
        if given is not None:
            year, month, *_ = given.split(".")
            version = int(year), int(month)
        if version < OLDEST:
            name, oldest = (f"{year:02d}.{month:02d}" for year, month in (version, OLDEST))
            hint = f'write `versions: {{slurm: "{oldest}"}}` or later, and a source that has it'
            message = (
                f"Slurm {name} of {self.pod.bringup.os} is older than {oldest}, the first that files are written for"
            )
            raise refuse(message, hint=hint, field="bringup.versions.slurm")
        return version

    @cached_property
    def kubernetes(self) -> KubernetesScheduler | None:
        """Return the Kubernetes that bring-up makes; None where there is none, or one that is there already."""
        if self.pod.bringup.versions.kubernetes is None:
            return None
        for scheduler in self.pod.schedulers:
            if scheduler.kind == "kubernetes" and scheduler.dialect == "kubernetes":
                return scheduler
        return None

    @cached_property
    def kubernetes_hosts(self) -> frozenset[str]:
        """Return the hosts that Kubernetes starts containers on."""
        if self.kubernetes is None:
            return frozenset()
        return frozenset(self.pod.scheduler_hosts(self.kubernetes))

    @property
    def kubernetes_version(self) -> str:
        """Return the release of Kubernetes with all its parts; a file that names the minor one means its first."""
        given = self.pod.bringup.versions.kubernetes or ""
        return given if given.count(".") == 2 else f"{given}.0"

    @property
    def registry(self) -> str:
        """Return the registry's host and port."""
        return f"{self.roles['registry']}:{REGISTRY_PORT}"

    @property
    def shared_mounts(self) -> list[str]:
        """Return where hosts see file systems that all of them share."""
        return [storage.mount for storage in self.pod.storage if storage.mount]

    def has(self, service: str) -> bool:
        """Return whether the pod asks for a service."""
        return service in self.pod.services

    def is_on(self, role: str, host: str) -> bool:
        """Return whether a host has a role."""
        return self.roles[role] == host


def site_of(pod: Pod) -> Site:
    """Return the site of a pod; refuse one whose hosts have no addresses."""
    addresses: dict[str, str] = {}
    for index, group in enumerate(pod.nodes):
        if not group.addresses:
            field = f"nodes.{index}.addresses"
            hint = f"write `addresses: [10.0.0.1, ...]`, one for each host of the group; {_LABS}"
            raise pod.refusal([(field, "is missing: bring-up must know where each host is", hint)])
        addresses |= dict(zip(group.hosts, group.addresses, strict=True))
    managing = [group for group in pod.nodes if "management" in group.roles]
    first = next(iter([*managing, *pod.nodes])).hosts[0]
    given = pod.bringup.roles
    return Site(pod, addresses, {role: getattr(given, role) or first for role in _DEFAULT_ROLES})


def with_access(pod: Pod, known: Pod | None) -> Pod:
    """Return a pod that takes from a known one of its name what its file leaves out of how hosts are reached.

    A site's file says where hosts are. A lab knows it better than any file could: its pod has the addresses, the ssh
    configuration and the account that was made for whoever started it.
    """
    if known is None:
        return pod
    there: dict[str, str] = {}
    for group in known.nodes:
        there |= dict(zip(group.hosts, group.addresses, strict=False))
    groups = []
    for group in pod.nodes:
        addresses = group.addresses or tuple(there[host] for host in group.hosts if host in there)
        if len(addresses) != len(group.hosts):
            missing = next(host for host in group.hosts if host not in there)
            raise refuse(
                f"nobody knows the address of {missing}",
                hint="write `addresses:` into its group; " + _LABS,
            )
        groups.append(group.model_copy(update={"addresses": addresses}))
    given, fallback = pod.bringup, known.bringup
    names = ("user", "ssh_config", "users")
    taken = {name: getattr(fallback, name) for name in names if name not in given.model_fields_set}
    return pod.model_copy(update={"nodes": tuple(groups), "bringup": given.model_copy(update=taken)})
