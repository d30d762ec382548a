"""A change that goes through a pod in batches: nodes are drained before it, and taken back after it.

What fails stops it: the batch stays drained, with the reason, and the nodes that were not reached are as before.
"""

from __future__ import annotations

import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from podwright.bringup.apply.changes import ChangeId
from podwright.bringup.progress import BringupProgress, OnProgress
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    # The monitoring host carries this file, and neither Ansible nor plans.
    from podwright.bringup.apply.faults import Fault
    from podwright.bringup.apply.playbook import ApplyProgress
    from podwright.bringup.plan.site import Site

# As sinfo writes the states of nodes on which nothing runs any more.
_EMPTY = frozenset({"drained", "down", "down*", "drained*"})
# How the states of nodes begin that take no jobs.
_CLOSED = ("drain", "down", "fail")
_MARK = "podwright.dev/drained-by"
# What Kubernetes starts again for ever is served elsewhere; anything else is work that comes to an end.
_SERVED = "Always"
Shell = Callable[[str], str]
"""Runs a line of shell where a scheduler's commands are; returns what it printed, and refuses where it failed."""


def batches(hosts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield the hosts in their order, so many at a time."""
    for start in range(0, len(hosts), size):
        yield list(hosts[start : start + size])


@dataclass(frozen=True)
class Drain(ABC):
    """Takes nodes out of a scheduler and back; making this object touches nothing."""

    shell: Shell
    change: ChangeId
    tell: Callable[[str], None] = lambda words: None
    """Is told what is waited for, each time that it is something else."""
    patience_s: float = 24 * 3600.0
    every_s: float = 5.0
    way_back: ClassVar[str]

    def drain(self, hosts: Sequence[str]) -> None:
        """Let nothing more start on these nodes, wait until the work there has ended, and take off what is left."""
        self._close(hosts)
        until_s = time.monotonic() + self.patience_s
        told: list[str] | None = None
        while busy := self._busy(hosts):
            jobs = self._jobs(busy)
            if list(jobs) != told:
                told = list(jobs)
                self.tell(f"{fold_hosts(busy)}: {', '.join(jobs.values()) or 'what runs there'}")
            if time.monotonic() > until_s:
                hint = f"the nodes stay drained; `{self.way_back}` takes them back"
                raise refuse(f"jobs on {fold_hosts(busy)} did not end within {self.patience_s:.0f} s", hint=hint)
            time.sleep(self.every_s)
        self._clear(hosts)

    @abstractmethod
    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        """Let work start there again, but where somebody else wants none; return those with the reason."""

    @abstractmethod
    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the nodes that somebody else took out, with the reason that they show."""

    @abstractmethod
    def _close(self, hosts: Sequence[str]) -> None: ...

    @abstractmethod
    def _busy(self, hosts: Sequence[str]) -> list[str]: ...

    @abstractmethod
    def _jobs(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return what still runs there by its name, as a person knows it."""

    @abstractmethod
    def _clear(self, hosts: Sequence[str]) -> None: ...


class SlurmDrain(Drain):
    """By scontrol; jobs that run come to their end."""

    way_back = "scontrol update NodeName=... State=RESUME"

    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        """Let jobs start there again, but where another reason than ours stands: a person's, or the health check's."""
        closed = self.closed(hosts)
        self._update([host for host in hosts if host not in closed], "State=RESUME")
        return closed

    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the nodes that are drained or down for another reason than ours."""
        said = self.shell(f"sinfo --noheader --Node --nodes={shlex.quote(fold_hosts(hosts))} --format='%N|%T|%E'")
        rows = [line.split("|", 2) for line in said.splitlines()]
        closed = {row[0]: row[2].strip() for row in rows if row[1].startswith(_CLOSED)}
        return {host: closed[host] for host in hosts if host in closed and not self.change.is_ours(closed[host])}

    def _close(self, hosts: Sequence[str]) -> None:
        closed = self.closed(hosts)
        reason = shlex.quote(self.change.reason)
        self._update([host for host in hosts if host not in closed], f"State=DRAIN Reason={reason}")

    def _update(self, hosts: Sequence[str], change: str) -> None:
        if hosts:
            self.shell(f"scontrol update NodeName={shlex.quote(fold_hosts(hosts))} {change}")

    def _busy(self, hosts: Sequence[str]) -> list[str]:
        said = self.shell(f"sinfo --noheader --Node --nodes={shlex.quote(fold_hosts(hosts))} --format='%N %T'")
        rows = [line.split() for line in said.splitlines()]
        return sorted({row[0] for row in rows if len(row) == 2 and row[1] not in _EMPTY})

    def _jobs(self, hosts: Sequence[str]) -> dict[str, str]:
        nodes = shlex.quote(fold_hosts(hosts))
        said = self.shell(f"squeue --noheader --nodelist={nodes} --states=R,CG,S --format='%A|%u|%L'")
        rows = [line.split("|") for line in said.splitlines()]
        return {row[0]: f"job {row[0]} of {row[1]}, {row[2]} left" for row in rows if len(row) == 3}

    def _clear(self, hosts: Sequence[str]) -> None:
        """Leave it: on a node without jobs Slurm has nothing but its daemon."""


class KubernetesDrain(Drain):
    """By kubectl: jobs come to their end, services move to other nodes, what every node has stays."""

    way_back = "kubectl uncordon NODE"

    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        """Let containers start there again, but where a node was closed already when we came."""
        marks = self._marks(hosts)
        ours = [host for host in hosts if host in marks and self.change.knows(marks[host][1])]
        if ours:
            self._kubectl("uncordon", ours)
            self.shell(f"kubectl annotate node {shlex.join(ours)} {_MARK}-")
        return {host: "cordoned" for host in hosts if host not in ours}

    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the nodes that are cordoned, and not by us."""
        marks = self._marks(hosts)
        closed = [host for host in hosts if marks.get(host, ("", ""))[0] == "true"]
        return {host: "cordoned" for host in closed if not self.change.knows(marks[host][1])}

    def _close(self, hosts: Sequence[str]) -> None:
        marks = self._marks(hosts)
        open_ones = [host for host in hosts if marks.get(host, ("", ""))[0] != "true"]
        if open_ones:
            # The mark first: a roll that is killed in between leaves a node open, and not closed for ever.
            self.shell(f"kubectl annotate --overwrite node {shlex.join(open_ones)} {_MARK}={self.change.own}")
            self._kubectl("cordon", open_ones)

    def _marks(self, hosts: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return of each node whether it is closed, and whose mark it has."""
        mark = _MARK.replace(".", "\\.")
        columns = f"custom-columns=NODE:.metadata.name,CLOSED:.spec.unschedulable,BY:.metadata.annotations.{mark}"
        said = self.shell(f"kubectl get nodes --no-headers {shlex.quote(f'--output={columns}')} {shlex.join(hosts)}")
        rows = [line.split() for line in said.splitlines()]
        return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}

    def _kubectl(self, verb: str, hosts: Sequence[str]) -> None:
        self.shell(f"kubectl {verb} {shlex.join(hosts)}")

    def _busy(self, hosts: Sequence[str]) -> list[str]:
        going = "--field-selector=status.phase!=Succeeded,status.phase!=Failed"
        columns = "--output=custom-columns=NODE:.spec.nodeName,RESTART:.spec.restartPolicy"
        said = self.shell(f"kubectl get pods --all-namespaces --no-headers {going} {columns}")
        rows = [line.split() for line in said.splitlines()]
        return sorted({row[0] for row in rows if row[0] in hosts and row[1] != _SERVED})

    def _jobs(self, hosts: Sequence[str]) -> dict[str, str]:
        going = "--field-selector=status.phase=Running"
        columns = "NODE:.spec.nodeName,IN:.metadata.namespace,NAME:.metadata.name,RESTART:.spec.restartPolicy"
        said = self.shell(f"kubectl get pods --all-namespaces --no-headers {going} --output=custom-columns={columns}")
        rows = [line.split() for line in said.splitlines()]
        going_on = [row for row in rows if len(row) == 4 and row[0] in hosts and row[3] != _SERVED]
        return {row[2]: f"{row[1]}/{row[2]}" for row in going_on}

    def _clear(self, hosts: Sequence[str]) -> None:
        self._kubectl(f"drain --ignore-daemonsets --delete-emptydir-data --timeout={self.patience_s:.0f}s", hosts)


@dataclass(frozen=True)
class PodDrain:
    """All schedulers of a pod, each with its own nodes."""

    parts: Sequence[tuple[Drain, Collection[str]]]

    def drain(self, hosts: Sequence[str]) -> None:
        """Take nodes out of whatever starts work on them."""
        for part, mine in self._of(hosts):
            part.drain(mine)

    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        """Give them back to it, but those that somebody else has taken out; return these with the reason."""
        closed: dict[str, str] = {}
        for part, mine in self._of(hosts):
            closed |= part.resume(mine)
        return closed

    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return those that somebody else has taken out, with the reason that they show."""
        closed: dict[str, str] = {}
        for part, mine in self._of(hosts):
            closed |= part.closed(mine)
        return closed

    def _of(self, hosts: Sequence[str]) -> Iterator[tuple[Drain, list[str]]]:
        for part, members in self.parts:
            mine = [host for host in hosts if host in members]
            if mine:
                yield part, mine


class Drainer(Protocol):
    """Takes nodes out of whatever starts work on them, and gives them back."""

    def drain(self, hosts: Sequence[str]) -> None:
        """Return when nothing runs there any more."""

    def resume(self, hosts: Sequence[str]) -> dict[str, str]:
        """Let work start there again, but where somebody else wants none; return those with the reason."""

    def closed(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return the nodes that somebody else took out, with the reason that they show."""


@dataclass(frozen=True)
class Roll:
    """A change of nodes, some at a time: each batch is drained, changed, looked at, and only then taken back."""

    drainer: Drainer
    apply: Callable[[list[str]], ApplyProgress]
    validate: Callable[[list[str]], list[Fault]]
    """Returns what is not as it should be after the change."""
    on_progress: OnProgress

    def through(self, hosts: Sequence[str], size: int) -> ApplyProgress:
        """Change all these nodes; the first fault ends it, and leaves its batch drained and the rest alone."""
        from podwright.bringup.apply.playbook import ApplyProgress

        total = ApplyProgress({})
        for batch in batches(hosts, max(size, 1)):
            if total.is_stopped:
                break
            self._change(batch, total)
        return total

    def _change(self, batch: list[str], total: ApplyProgress) -> None:
        self.on_progress(BringupProgress("drain", hosts=batch))
        self.drainer.drain(batch)
        progress = self.apply(batch)
        if not progress.is_stopped:
            progress.faults += self.validate(batch)
        total.add(progress)
        if not progress.is_stopped:
            closed = self.drainer.resume(batch)
            resumed = [host for host in batch if host not in closed]
            if resumed:
                self.on_progress(BringupProgress("resumed", hosts=resumed))
            for host, reason in closed.items():
                self.on_progress(
                    BringupProgress("stays", f"{host}: changed, and drained by somebody: {reason}", [host])
                )


@dataclass(frozen=True)
class DrainRequest:
    """Whose nodes are drained for which change; `shell_on` runs a line of shell on a host."""

    site: Site
    shell_on: Callable[[str, str], str]
    change: ChangeId
    tell: Callable[[str], None] = lambda words: None


def drain_of(asked: DrainRequest) -> PodDrain:
    """Return what drains a pod's nodes."""
    from podwright.bringup.plan.kubernetes.kubeadm import management_hosts

    site, parts = asked.site, list[tuple[Drain, Collection[str]]]()
    if site.scheduler is not None:
        shell = partial(asked.shell_on, site.roles["login"])
        parts.append((SlurmDrain(shell, asked.change, asked.tell), site.compute))
    if site.kubernetes is not None:
        manager = management_hosts(site)[0]
        as_admin = "export KUBECONFIG=/etc/kubernetes/admin.conf; "
        drain = KubernetesDrain(lambda line: asked.shell_on(manager, as_admin + line), asked.change, asked.tell)
        parts.append((drain, site.kubernetes_hosts))
    return PodDrain(parts)


def split(site: Site, hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the hosts that no job runs on, which come first and all at once, and the nodes."""
    nodes = site.compute | site.kubernetes_hosts
    return [host for host in hosts if host not in nodes], [host for host in hosts if host in nodes]
