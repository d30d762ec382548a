"""The door of bring-up: what can be done with a pod's hosts, in which order, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from podwright.bringup.apply import ansible, playbook
from podwright.bringup.apply.boot_progress import NodesResult, nodes_of, question
from podwright.bringup.apply.controllers import PodMachines, machines_of
from podwright.bringup.apply.drift import PlanResult, StatusResult, changes_of, status_of
from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.known_pods import known_text
from podwright.bringup.apply.observe import Answer, HostAccess, SshHosts, printed
from podwright.bringup.apply.playbook import ApplyProgress, PlaybookRun
from podwright.bringup.apply.rolling import Drainer, Roll, drain_of, split
from podwright.bringup.apply.validate import ValidationResult, measure
from podwright.bringup.apply.vault import Secrets, rotated_for
from podwright.bringup.plan.hosts import limited, plan
from podwright.bringup.plan.netboot import NetbootPlaces, reinstall_line
from podwright.bringup.plan.site import Site, site_of, with_access
from podwright.bringup.progress import BringupProgress, Kind, OnProgress, ignore
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.host import HostPlan
    from podwright.spec import Pod

Plans = Mapping[str, "HostPlan"]
OnApply = Callable[[ApplyProgress], None]


class PodRegistry(Protocol):
    """What knows pods by their names."""

    def access(self, name: str) -> Pod | None:
        """Return the pod that says how the hosts of this name are reached, where a file leaves it out."""

    def save(self, name: str, source: bytes) -> None:
        """Make a pod known under its name."""


class SecretStore(Protocol):
    """What keeps a pod's secrets; what a bring-up writes lies in the folder of its file."""

    file: Path
    key_file: Path

    def read(self) -> Secrets:
        """Return the secrets that are there."""

    def fill(self, site: Site, rotate: Sequence[str] = (), *, also: Sequence[str] = ()) -> Secrets:
        """Return all that a pod needs, and what else is asked for; what is to be rotated is made again."""


@dataclass(frozen=True)
class BringupParts:
    """What a bring-up works with."""

    vault: SecretStore
    pods: PodRegistry
    hosts: HostAccess = field(default_factory=SshHosts)
    play: Callable[[PlaybookRun, OnApply], ApplyProgress] = playbook.run
    """Plays a playbook to its end."""
    drainer: Callable[[Site, Callable[[str, str], str]], Drainer] = drain_of
    """Makes what drains a pod's nodes, of what runs a line of shell on a host."""


@dataclass(frozen=True)
class UpResult:
    """What was done to hosts."""

    hosts: Sequence[str]
    """All that were meant; a roll that stopped did not reach some of them."""
    progress: ApplyProgress
    is_known: bool = False
    """Whether the pod was made known: all its stages are done."""

    @property
    def faults(self) -> list[Fault]:
        """Return what stopped hosts; none where all went well."""
        return self.progress.faults

    def as_json(self) -> dict[str, Any]:
        """Return what `pod up --json` prints."""
        counts = self.progress.hosts
        stages = [
            {"name": run.name, "took_s": round(run.took_s, 1), "state": run.state} for run in self.progress.stages
        ]
        return {"hosts": {name: asdict(counts[name]) for name in self.hosts if name in counts}, "stages": stages}


@dataclass(frozen=True)
class DownResult:
    """What became of hosts whose services were taken off."""

    progress: ApplyProgress

    def as_json(self) -> dict[str, Any]:
        """Return what `pod down --json` prints."""
        return {"hosts": {name: asdict(count) for name, count in self.progress.hosts.items()}}


class Bringup:
    """One pod's bring-up. Making this object touches nothing; `limit` is a list of hosts such as `n[2-3]`."""

    def __init__(self, pod: Pod, parts: BringupParts, on_progress: OnProgress = ignore) -> None:
        self._file, self._parts, self._on_progress = pod, parts, on_progress

    @cached_property
    def pod(self) -> Pod:
        """Return the pod with what its file leaves out of how hosts are reached, where somebody knows it."""
        return with_access(self._file, self._parts.pods.access(self._file.name))

    @cached_property
    def site(self) -> Site:
        """Return the pod with all roles and addresses; one without addresses is refused."""
        return site_of(self.pod)

    def hosts(self, limit: str | None = None) -> list[str]:
        """Return the hosts that are meant."""
        return limited(self.site.addresses, limit)

    def plan(self, only: str | None = None, limit: str | None = None, offline: bool = False) -> PlanResult:
        """Return what `up` would do, of one stage or of all; `offline`: no host is asked."""
        plans = self._plans(only, limit)
        secrets = self._parts.vault.read().values
        answers: Mapping[str, Answer] = {} if offline else self._observe(plans, show=True)
        return PlanResult({name: changes_of(each, answers.get(name), secrets) for name, each in plans.items()})

    def write_project(self, folder: Path, only: str | None = None, limit: str | None = None) -> str:
        """Write the plan as a project of Ansible, over an earlier one or into a new folder; return what plays it."""
        if folder.exists() and any(folder.iterdir()) and not (folder / ansible.PLAYBOOK).exists():
            raise refuse(f"{folder} is there already, and is no such project", hint="name a new folder", field="--out")
        self._write(folder.absolute(), self._plans(only, limit))
        return f"ansible-playbook {ansible.PLAYBOOK} --vault-password-file {self._parts.vault.key_file}"

    def status(self, limit: str | None = None) -> StatusResult:
        """Return how hosts are against their plan."""
        plans = self._plans(None, limit)
        secrets = self._parts.vault.read().values
        model_of = self.pod.model_of
        return StatusResult(
            {
                name: status_of(plans[name], answer, secrets, model_of(name))
                for name, answer in self._observe(plans).items()
            }
        )

    def up(self, only: str | None = None, limit: str | None = None) -> UpResult:
        """Apply the plan; where all stages are done, make the pod known."""
        plans = plan(self.pod, only)
        hosts = limited(plans, limit)
        return self._ended(hosts, self._apply(plans, hosts), only)

    def roll(self, size: int, only: str | None = None, limit: str | None = None) -> UpResult:
        """Apply the plan to what runs no jobs, then to nodes that differ, some at a time.

        Nodes are drained before and resumed after it; those that are not as planned then stay drained, and end it.
        """
        plans = plan(self.pod, only)
        hosts = limited(plans, limit)
        first, nodes = split(self.site, hosts)
        # No hosts at all would be all of them to Ansible; and no node is touched before it is drained.
        progress = self._apply(plans, first) if first else ApplyProgress({})
        if not progress.is_stopped:
            drainer = self._parts.drainer(self.site, self._shell)
            roll = Roll(drainer, partial(self._apply, plans), partial(self._invalid, plans), self._on_progress)
            # A GPU or a link that is away is no reason to drain a node: `up` mends neither.
            progress.add(roll.through(list(self._differing(plans, nodes)), size))
        return self._ended(hosts, progress, only)

    def replace(self, host: str) -> UpResult:
        """Bring up one host with all stages."""
        plans = plan(self.pod)
        hosts = limited(plans, host)
        return UpResult(hosts, self._apply(plans, hosts))

    def archive_keys(self) -> Mapping[str, str]:
        """Return what signs the pod's archives, and what hosts know them by; made when it is asked for first."""
        values = self._parts.vault.fill(self.site, also=("archive_key",)).values
        return {name: values[name] for name in ("archive_key", "archive_public")}

    def secrets(self) -> list[str]:
        """Return the secrets that can be made again while the pod works."""
        return rotated_for(self.site)

    def rotate(self, names: Sequence[str]) -> UpResult:
        """Make secrets again, and bring them to the hosts."""
        self._parts.vault.fill(self.site, rotate=names)
        plans = plan(self.pod)
        return UpResult(list(plans), self._apply(plans, list(plans)))

    def down(self) -> DownResult:
        """Stop the services of all hosts, and keep them from starting."""
        plans = plan(self.pod)
        return DownResult(self._play(plans, list(plans), lambda progress: None, ansible.DOWN))

    def machines(self, limit: str | None = None) -> PodMachines:
        """Return hosts as machines, to switch them or to see to their firmware."""
        return machines_of(self._file, limit)

    def nodes(self) -> NodesResult:
        """Return how far hosts are on their way from a box to a system."""
        return nodes_of(self.site, self._shell(self.site.roles["netboot"], question(NetbootPlaces())))

    def reinstall(self, hosts: Sequence[str]) -> None:
        """Have hosts go into their installer when they boot next: it writes over their disks."""
        self._shell(self.site.roles["netboot"], reinstall_line(self.site, hosts))

    def validate(self, limit: str | None = None) -> ValidationResult:
        """Measure what hosts do, and compare it with what they should."""
        return measure(self.site, self.hosts(limit), self._parts.hosts)

    def _plans(self, only: str | None, limit: str | None) -> Plans:
        plans = plan(self.pod, only)
        return {host: plans[host] for host in limited(plans, limit)}

    def _say(self, kind: Kind, hosts: Sequence[str] = (), text: str = "", applied: ApplyProgress | None = None) -> None:
        self._on_progress(BringupProgress(kind, text, hosts, applied))

    def _shell(self, host: str, line: str) -> str:
        return printed(host, self._parts.hosts.shell(self.site, host, line))

    def _observe(self, plans: Plans, show: bool = False) -> Mapping[str, Answer]:
        hosts = list(plans)
        return self._parts.hosts.observe(self.pod, plans, lambda name: self._say("asked", hosts, name), show)

    def _differing(self, plans: Plans, hosts: Sequence[str]) -> dict[str, Fault]:
        """Return the hosts that are not as planned, or do not say so, each with the first reason."""
        secrets = self._parts.vault.read().values
        differing = {}
        for host, answer in self._observe({host: plans[host] for host in hosts}).items():
            status = status_of(plans[host], answer, secrets, None)
            if status.reason is not None:
                differing[host] = Fault(host, "validate", "look", status.reason)
            # What a user has in the way is no reason to drain a node either: `up` leaves it alone.
            for drift in [each for each in status.drift if not each.user][:1]:
                differing[host] = Fault(host, "validate", drift.what, f"{drift.found}, not {drift.expected}")
        return differing

    def _invalid(self, plans: Plans, hosts: Sequence[str]) -> list[Fault]:
        faults = list(self._differing(plans, hosts).values())
        if faults:
            self._say("invalid", hosts, applied=ApplyProgress({}, faults=faults))
        return faults

    def _apply(self, plans: Plans, hosts: Sequence[str]) -> ApplyProgress:
        self._say("up", hosts, self.pod.name)
        progress = self._play(plans, hosts, lambda progress: self._say("applying", hosts, applied=progress))
        self._say("applied", hosts, self.pod.name, progress)
        return progress

    def _play(
        self, plans: Plans, hosts: Sequence[str], on_apply: OnApply, name: str = ansible.PLAYBOOK
    ) -> ApplyProgress:
        """Write the project and play a playbook of it, while no other bring-up of this pod does."""
        vault = self._parts.vault
        folder = vault.file.parent
        waits = partial(self._say, "waits", text="another bring-up of this pod is at work")
        with playbook.alone(folder, waits) as lock:
            self._write(folder / "runner" / "project", plans)
            return self._parts.play(PlaybookRun(folder / "runner", hosts, vault.key_file, lock, name), on_apply)

    def _write(self, folder: Path, plans: Plans) -> None:
        vault = self._parts.vault
        secrets = vault.fill(self.site)
        playbook.write_project(folder, ansible.project_files(self.pod, plans, secrets.revisions), vault.file)

    def _ended(self, hosts: Sequence[str], progress: ApplyProgress, only: str | None) -> UpResult:
        is_known = only is None and not progress.is_stopped
        if is_known:
            self._parts.pods.save(self.pod.name, known_text(self.pod).encode())
        return UpResult(hosts, progress, is_known)
