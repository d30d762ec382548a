"""What a bring-up works with, and the work on hosts that all of its changes are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from podwright.bringup.apply import ansible, playbook
from podwright.bringup.apply.changes import begin
from podwright.bringup.apply.drift import status_of
from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.observe import Answer, HostAccess, Question, SshHosts, printed
from podwright.bringup.apply.playbook import ApplyProgress, PlaybookRun
from podwright.bringup.apply.rolling import Drainer, DrainRequest, drain_of
from podwright.bringup.apply.transfers import HostStreams, SshStreams
from podwright.bringup.apply.vault import Secrets
from podwright.bringup.apply.windows import WaitClock
from podwright.bringup.plan.hosts import stages_of
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm_releases import check_jump, release_of
from podwright.bringup.plan.systems import check_tested
from podwright.bringup.progress import BringupProgress, Kind, OnProgress
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.bringup.plan.host import HostPlan
    from podwright.spec import Pod

Plans = Mapping[str, "HostPlan"]
OnApply = Callable[[ApplyProgress], None]
_RUNNER = "runner"


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
    drainer: Callable[[DrainRequest], Drainer] = drain_of
    """Makes what drains a pod's nodes."""
    streams: HostStreams = field(default_factory=SshStreams)
    """The way of large things to hosts and from them."""
    clock: WaitClock = field(default_factory=WaitClock)
    """By which a change waits for its time."""


@dataclass(frozen=True)
class HostWork:
    """The work on a pod's hosts: asked, brought to their plans, drained."""

    site: Site
    parts: BringupParts
    on_progress: OnProgress
    accepts_untested: bool = False
    """Whether hosts may have a system that no bring-up ever ran on."""

    def say(self, kind: Kind, hosts: Sequence[str] = (), text: str = "", applied: ApplyProgress | None = None) -> None:
        """Tell whoever listens what happened."""
        self.on_progress(BringupProgress(kind, text, hosts, applied))

    def shell(self, host: str, line: str) -> str:
        """Return what a line of shell printed on a host; refuse where it failed."""
        return printed(host, self.parts.hosts.shell(self.site, host, line))

    def drainer(self) -> Drainer:
        """Return what drains nodes for one change, which is noted first."""
        change = begin(self.parts.vault.file.parent / "drains.jsonl", time.time())
        return self.parts.drainer(
            DrainRequest(self.site, self.shell, change, lambda words: self.say("job", text=words))
        )

    def check_release(self, plans: Plans) -> None:
        """Refuse a release of Slurm that cannot read the state of the one that the controller has."""
        wanted = self.site.pod.bringup.versions.slurm
        host = self.site.roles["controller"]
        if wanted is None or self.site.scheduler is None or host not in plans:
            return
        answer = self.observe({host: plans[host]}, Question())[host]
        there = {} if isinstance(answer, Refusal) else answer["packages"]
        if there.get("slurmctld"):
            check_jump(release_of(there["slurmctld"]), release_of(wanted))

    def observe(self, plans: Plans, asked: Question) -> Mapping[str, Answer]:
        """Return what hosts have of their plans."""
        hosts = list(plans)
        return self.parts.hosts.observe(self.site.pod, plans, lambda name: self.say("asked", hosts, name), asked)

    def seen(self, plans: Plans) -> Iterator[tuple[str, HostPlan, Answer, Secrets]]:
        """Yield each host with its plan and what it answers, of what works there too."""
        secrets = self.parts.vault.read()
        for name, answer in self.observe(plans, Question(secrets=secrets.values)).items():
            yield name, plans[name], answer, secrets

    def differing(self, plans: Plans, hosts: Sequence[str]) -> dict[str, Fault]:
        """Return the hosts that are not as planned, or do not say so, each with the first reason."""
        differing = {}
        for host, host_plan, answer, vault in self.seen({host: plans[host] for host in hosts}):
            status = status_of(host_plan, answer, vault.values, None, vault.revisions)
            if status.reason is not None:
                differing[host] = Fault(host, "validate", "look", status.reason)
            # What `up` leaves alone, as what a user has in the way, is no reason to drain a node either.
            for drift in [each for each in status.drift if each.is_mended][:1]:
                differing[host] = Fault(host, "validate", drift.what, f"{drift.found}, not {drift.expected}")
        return differing

    def invalid(self, plans: Plans, hosts: Sequence[str]) -> list[Fault]:
        """Return what is not as planned after a change, and tell it."""
        faults = list(self.differing(plans, hosts).values())
        if faults:
            self.say("invalid", hosts, applied=ApplyProgress({}, faults=faults))
        return faults

    def apply(self, plans: Plans, hosts: Sequence[str]) -> ApplyProgress:
        """Bring hosts to their plans; a system that nobody tried is refused, until that was accepted once."""
        was_played = (self.parts.vault.file.parent / _RUNNER).exists()
        check_tested(self.site.pod, self.accepts_untested or was_played)
        self.say("up", hosts, self.site.pod.name)
        progress = self.play(plans, hosts, lambda progress: self.say("applying", hosts, applied=progress))
        self.say("applied", hosts, self.site.pod.name, progress)
        return progress

    def play(
        self, plans: Plans, hosts: Sequence[str], on_apply: OnApply, name: str = ansible.PLAYBOOK
    ) -> ApplyProgress:
        """Write the project and play a playbook of it, while no other bring-up of this pod does."""
        vault = self.parts.vault
        folder = vault.file.parent
        waits = partial(self.say, "waits", text="another bring-up of this pod is at work")
        with playbook.alone(folder, waits) as lock:
            self.write(folder / _RUNNER / "project", plans)
            stages = stages_of(plans[host] for host in hosts) if name == ansible.PLAYBOOK else ()
            return self.parts.play(PlaybookRun(folder / _RUNNER, hosts, vault.key_file, lock, name, stages), on_apply)

    def write(self, folder: Path, plans: Plans, lines: bool = False) -> None:
        """Write the project of Ansible, with all secrets that it needs made."""
        vault = self.parts.vault
        texts = ansible.project_files(self.site.pod, plans, vault.fill(self.site).revisions, lines)
        playbook.write_project(folder, texts, vault.file)
