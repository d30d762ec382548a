"""The door of bring-up: what can be done with a pod's hosts, in which order, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.bringup.apply import ansible
from podwright.bringup.apply.backups import BackupResult, opened_backup
from podwright.bringup.apply.boot_progress import NodesResult, nodes_of, question
from podwright.bringup.apply.controllers import PodMachines, machines_of
from podwright.bringup.apply.drift import PlanResult, StatusResult, changes_of, compared, status_of
from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.known_pods import known_text
from podwright.bringup.apply.observe import Answer, Question
from podwright.bringup.apply.playbook import ApplyProgress
from podwright.bringup.apply.restoring import (
    RestoreResult,
    put_back,
    refuse_living,
    save_pod,
    take_back,
    wanted_parts,
)
from podwright.bringup.apply.rolling import Roll, split
from podwright.bringup.apply.validate import ValidationResult, measure
from podwright.bringup.apply.vault import SHOWN, rotated_for
from podwright.bringup.apply.windows import ChangeWindow, reserved, wait_until
from podwright.bringup.parts import BringupParts, HostWork, Plans
from podwright.bringup.plan.hosts import limited, plan
from podwright.bringup.plan.kubernetes.kubeadm import leaving_line, management_hosts
from podwright.bringup.plan.netboot import NetbootPlaces, reinstall_line
from podwright.bringup.plan.removal import without
from podwright.bringup.plan.site import Site, site_of, with_access
from podwright.bringup.plan.stages.monitoring import jobs
from podwright.bringup.plan.systems import SYSTEMS
from podwright.bringup.progress import Kind, OnProgress, ignore
from podwright.files.whole import write_whole
from podwright.spec.hostlist import fold_hosts
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse
from podwright.watch import FRAME_QUESTION, QUESTION, AlertsResult, PodFrame, WatchFiles, firing, frame_of, watch_files

if TYPE_CHECKING:
    from podwright.spec import Pod


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


@dataclass(frozen=True)
class RemoveResult:
    """What became of a host that left, and of those that stay."""

    host: str
    progress: ApplyProgress

    def as_json(self) -> dict[str, Any]:
        """Return what `pod remove --json` prints."""
        counts = self.progress.hosts
        hosts = {name: asdict(count) for name, count in counts.items()}
        return {"hosts": hosts, "changes": sum(count.changed for count in counts.values())}


class Bringup:
    """One pod's bring-up. Making this object touches nothing; `limit` is a list of hosts such as `n[2-3]`."""

    def __init__(
        self, pod: Pod, parts: BringupParts, on_progress: OnProgress = ignore, accepts_untested: bool = False
    ) -> None:
        self._file, self._parts, self._on_progress = pod, parts, on_progress
        self._accepts_untested = accepts_untested

    @cached_property
    def pod(self) -> Pod:
        """Return the pod with what its file leaves out of how hosts are reached, where somebody knows it."""
        return with_access(self._file, self._parts.pods.access(self._file.name))

    @cached_property
    def site(self) -> Site:
        """Return the pod with all roles and addresses; one without addresses is refused."""
        return site_of(self.pod)

    @property
    def unchecked(self) -> str:
        """Return what of the hosts' system nobody has tried; empty where bring-ups have run on it."""
        return SYSTEMS[self.pod.bringup.os].unchecked

    @cached_property
    def _work(self) -> HostWork:
        return HostWork(self.site, self._parts, self._on_progress, self._accepts_untested)

    def hosts(self, limit: str | None = None) -> list[str]:
        """Return the hosts that are meant."""
        return limited(self.site.addresses, limit)

    def plan(self, only: str | None = None, limit: str | None = None, offline: bool = False) -> PlanResult:
        """Return what `up` would do, of one stage or of all; `offline`: no host is asked."""
        plans = self._plans(only, limit)
        vault = self._parts.vault.read()
        asked = Question(shows=True, secrets=vault.values)
        answers: Mapping[str, Answer] = {} if offline else self._work.observe(plans, asked)
        return PlanResult({name: changes_of(each, answers.get(name), vault) for name, each in plans.items()})

    def write_project(self, folder: Path, only: str | None = None, limit: str | None = None) -> str:
        """Write the plan as a project of Ansible, over an earlier one or into a new folder; return what plays it."""
        if folder.exists() and any(folder.iterdir()) and not (folder / ansible.PLAYBOOK).exists():
            raise refuse(f"{folder} is there already, and is no such project", hint="name a new folder", field="--out")
        self._work.write(folder.absolute(), self._plans(only, limit), lines=True)
        return f"ansible-playbook {ansible.PLAYBOOK} --vault-password-file {self._parts.vault.key_file}"

    def status(self, limit: str | None = None) -> StatusResult:
        """Return how hosts are against their plan."""
        hosts = {
            name: status_of(host_plan, answer, vault.values, self.pod.model_of(name), vault.revisions)
            for name, host_plan, answer, vault in self._work.seen(self._plans(None, limit))
        }
        return StatusResult(compared(hosts, [group.hosts for group in self.pod.nodes]))

    def up(self, only: str | None = None, limit: str | None = None) -> UpResult:
        """Apply the plan; where all stages are done, make the pod known."""
        plans = plan(self.pod, only)
        hosts = limited(plans, limit)
        self._work.check_release(plans)
        return self._ended(hosts, self._work.apply(plans, hosts), only)

    def upgrade(self, size: int) -> UpResult:
        """Bring the pod to the releases that its file names, in Slurm's own order and some nodes at a time."""
        if self.pod.bringup.versions.slurm is None:
            hint = 'write `versions: {slurm: "24.11"}` below `bringup:`, and a source that has it'
            raise refuse("the pod's file names no release", hint=hint, field="bringup.versions.slurm")
        return self.roll(size)

    def up_at(self, window: ChangeWindow, only: str | None = None, limit: str | None = None) -> UpResult:
        """Apply the plan in a window of time, with all nodes reserved in Slurm from its start; waits until then."""
        clock = self._parts.clock
        _, nodes = split(self.site, limited(plan(self.pod, only), limit))
        mine = [host for host in nodes if host in self.site.compute]
        if not mine:
            raise refuse("no node of Slurm is among these hosts", hint="`podwright pod up` without --at", field="--at")
        name = f"podwright-{self.pod.name}-{window.start_s:.0f}"
        with reserved(partial(self._work.shell, self.site.roles["login"]), name, mine, window, clock):
            told = partial(self._work.say, "reserved", mine)
            wait_until(
                window.start_s, clock, lambda left_s: told(f"{fold_hosts(mine)}: {left_s / 60:.0f} min from now")
            )
            return self.roll(len(nodes), only, limit)

    def roll(self, size: int, only: str | None = None, limit: str | None = None) -> UpResult:
        """Apply the plan to what runs no jobs, then to nodes that differ, some at a time.

        Nodes are drained before and resumed after it; those that are not as planned then stay drained, and end it.
        """
        plans = plan(self.pod, only)
        hosts = limited(plans, limit)
        self._work.check_release(plans)
        first, nodes = split(self.site, hosts)
        # No hosts at all would be all of them to Ansible; and no node is touched before it is drained.
        progress = self._work.apply(plans, first) if first else ApplyProgress({})
        if not progress.is_stopped:
            roll = Roll(
                self._work.drainer(),
                partial(self._work.apply, plans),
                partial(self._work.invalid, plans),
                self._on_progress,
            )
            # A GPU or a link that is away is no reason to drain a node: `up` mends neither.
            progress.add(roll.through(list(self._work.differing(plans, nodes)), size))
        return self._ended(hosts, progress, only)

    def replace(self, host: str) -> UpResult:
        """Bring up one host with all stages; a drain of somebody else's stays, and is told."""
        plans = plan(self.pod)
        hosts = limited(plans, host)
        progress = self._work.apply(plans, hosts)
        _, nodes = split(self.site, hosts)
        if nodes and not progress.is_stopped:
            for name, reason in self._work.drainer().closed(nodes).items():
                self._work.say("stays", [name], f"{name}: brought up, and takes no jobs: {reason}")
        return UpResult(hosts, progress)

    def remove(self, host: str) -> RemoveResult:
        """Drain a host, take it out of what the others have, then its services and the pod's keys off it.

        The pod is known without it from then on; a host that does not answer any more hinders nobody.
        """
        (name,) = self._one(host)
        left = with_access(without(self.site, name), self.pod)
        if name in self.site.compute | self.site.kubernetes_hosts:
            self._work.say("drain", [name])
            self._work.drainer().drain([name])
        others, own = plan(left), {name: plan(self.pod)[name]}
        progress = self._work.apply(others, list(others))
        if not progress.is_stopped:
            if name in self.site.kubernetes_hosts:
                self._work.shell(management_hosts(self.site)[0], leaving_line(name))
            self._parts.pods.save(left.name, known_text(left).encode())
            progress.add(self._work.play(own, [name], lambda progress: None, ansible.REMOVE))
        return RemoveResult(name, progress)

    def _one(self, host: str) -> list[str]:
        hosts = self.hosts(host)
        if len(hosts) != 1:
            raise refuse(f"{host} is {len(hosts)} hosts", hint="take one after the other", field="HOST")
        return hosts

    def backup(self, out: Path) -> BackupResult:
        """Write what of the pod cannot be made again into one file, encrypted to the key of its vault."""
        return save_pod(self.site, self._parts.vault, self._parts.streams, out, self._saying("saving"))

    def restore(self, file: Path) -> RestoreResult:
        """Bring fresh hosts up, and put a backup back on them; a pod that lives is refused.

        One that was ended on its way goes on: from the mark on, it is the backup's own pod that lives there.
        """
        vault = self._parts.vault
        with opened_backup(file, vault.key_file) as backup:
            parts = wanted_parts(self.site, backup)
            mark = vault.file.parent / "restoring"
            if not mark.exists() or mark.read_text() != backup.at:
                refuse_living(parts, self._work.shell)
            take_back(vault, backup)
            write_whole(mark, backup.at.encode())
            progress = self.up().progress
            hosts: dict[str, list[str]] = {}
            if not progress.is_stopped:
                put_back(self.site, self._parts.streams, self._work.shell, backup, self._saying("restoring"))
                mark.unlink()
                for part in parts:
                    hosts.setdefault(part.host, []).append(part.name)
            return RestoreResult(backup.parts, progress, hosts)

    def _saying(self, kind: Kind) -> Callable[[str], None]:
        return lambda text: self._work.say(kind, text=text)

    def archive_keys(self) -> Mapping[str, str]:
        """Return what signs the pod's archives, and what hosts know them by; made when it is asked for first."""
        values = self._parts.vault.fill(self.site, also=("archive_key",)).values
        return {name: values[name] for name in ("archive_key", "archive_public")}

    def secrets(self) -> list[str]:
        """Return the secrets that can be made again while the pod works."""
        return rotated_for(self.site)

    def secret(self, name: str) -> str:
        """Return a secret that people type: the registry's password. No other one is told."""
        if name not in SHOWN:
            raise refuse(f'"{name}" is not shown to anybody', hint=one_of(name, "secret", SHOWN), field="--only")
        values = self._parts.vault.read().values
        if name not in values:
            raise refuse(f"the pod {self.pod.name} has no {name} yet", hint="`podwright pod up` makes it")
        return values[name]

    def rotate(self, names: Sequence[str]) -> UpResult:
        """Make secrets again, and bring them to the hosts."""
        self._parts.vault.fill(self.site, rotate=names)
        plans = plan(self.pod)
        return UpResult(list(plans), self._work.apply(plans, list(plans)))

    def down(self) -> DownResult:
        """Stop the services of all hosts, and keep them from starting."""
        plans = plan(self.pod)
        return DownResult(self._work.play(plans, list(plans), lambda progress: None, ansible.DOWN))

    def watch(self) -> WatchFiles:
        """Return the files that watch the pod; where no host has an address, those for Kubernetes still hold."""
        has_addresses = any(group.addresses for group in self.pod.nodes)
        return watch_files(self.pod, jobs(self.site) if has_addresses else ())

    def alerts(self) -> AlertsResult:
        """Return what fires, as the pod's Prometheus says it."""
        return firing(self.pod.name, self._work.shell(_watching(self.site), QUESTION))

    def frame(self) -> PodFrame:
        """Return what nodes, GPUs, links and the queue do now, as the pod's Prometheus says it."""
        return frame_of(self.pod.name, self._work.shell(_watching(self.site), FRAME_QUESTION))

    def machines(self, limit: str | None = None) -> PodMachines:
        """Return hosts as machines, to switch them or to see to their firmware."""
        return machines_of(self._file, limit)

    def nodes(self) -> NodesResult:
        """Return how far hosts are on their way from a box to a system."""
        return nodes_of(self.site, self._work.shell(self.site.roles["netboot"], question(NetbootPlaces())))

    def reinstall(self, hosts: Sequence[str]) -> None:
        """Have hosts go into their installer when they boot next: it writes over their disks."""
        self._work.shell(self.site.roles["netboot"], reinstall_line(self.site, hosts))

    def validate(self, limit: str | None = None) -> ValidationResult:
        """Measure what hosts do, and compare it with what they should."""
        return measure(self.site, self.hosts(limit), self._parts.hosts)

    def _plans(self, only: str | None, limit: str | None) -> Plans:
        plans = plan(self.pod, only)
        return {host: plans[host] for host in limited(plans, limit)}

    def _ended(self, hosts: Sequence[str], progress: ApplyProgress, only: str | None) -> UpResult:
        is_known = only is None and not progress.is_stopped
        if is_known:
            self._parts.pods.save(self.pod.name, known_text(self.pod).encode())
        return UpResult(hosts, progress, is_known)


def _watching(site: Site) -> str:
    """Return the host on which Prometheus is."""
    if not site.has("monitoring"):
        hint = "write `services: [monitoring]` into its file, then `podwright pod up`"
        raise refuse(f"nothing watches the pod {site.name}", hint=hint)
    return site.roles["monitoring"]
