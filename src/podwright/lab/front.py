"""Starting, finding and ending labs of any kind, as their users ask for it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from podwright.lab import home, kubernetes, packages
from podwright.lab.base import Lab, Say, quiet
from podwright.lab.hosts import lab as hosts
from podwright.lab.hosts.shape import HostsLabShape
from podwright.lab.kubernetes.cluster import no_progress
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.spec.problems import refuse

Kind = Literal["slurm", "kubernetes", "hosts"]
Progress = Callable[[int, int], None]

ONLY_OF = {"use_context": "Kubernetes", "virtual_nodes": "Kubernetes", "no_accounting": "Slurm"}
"""What one kind alone has."""
RUN = "podwright run examples/segmentation.yaml --on"


@dataclass(frozen=True)
class LabRequest:
    """A lab that is wanted; what is left out is as in the lab that has this name, else as labs usually are."""

    kind: Kind
    name: str | None = None
    nodes: int | None = None
    gpus: int | None = None
    virtual_nodes: int | None = None
    no_accounting: bool = False
    use_context: str | None = None
    """A Kubernetes that is there already, by its context."""

    def check(self) -> None:
        """Refuse what only another kind has."""
        for field, kind in ONLY_OF.items():
            value = getattr(self, field)
            if kind.lower() != self.kind and value is not None and value is not False:
                raise refuse(f"only a {kind} lab has this", field=f"--{field.replace('_', '-')}")

    def fields(self) -> dict[str, Any]:
        """Return what is said of the shape."""
        said: dict[str, Any] = {"nodes": self.nodes, "gpus": self.gpus, "virtual_nodes": self.virtual_nodes}
        if self.no_accounting:
            said["accounting"] = False
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class LabStarted:
    """A lab that is up and known as a pod: in words, what can be done next, and how long it took."""

    name: str
    words: str
    next: str
    took_s: float | None = None


def up(
    request: LabRequest, command: Sequence[str] = (), say: Say = quiet, progress: Progress = no_progress
) -> LabStarted:
    """Start a lab and make it known as a pod; of one that is there already only what has died is started.

    `command` is what a refusal repeats after `sudo`, where root is lacking.
    """
    request.check()
    if request.use_context is not None:
        return _borrow(request.use_context, request.name or kubernetes.DEFAULT)
    packages.check_root(command)
    began = time.monotonic()
    lab, words, hint = _STARTS[request.kind](request, say, progress)
    # Bare hosts may have become a pod since, which is known with its scheduler then.
    if request.kind != "hosts" or not home.is_known(lab.name):
        home.make_known(lab)
    return LabStarted(lab.name, words, hint, time.monotonic() - began)


def _borrow(context: str, name: str) -> LabStarted:
    """Make a lab of a cluster that is there; no root is needed for what others keep running."""
    lab = kubernetes.borrow(home.new_folder(name), context, name)
    home.make_known(lab)
    hint = f"podwright run WORKLOAD --on {lab.name}   (the workload names its image)"
    return LabStarted(lab.name, lab.loan.words(), hint)


Started = tuple[Lab, str, str]


def _slurm(request: LabRequest, say: Say, progress: Progress) -> Started:
    shape = home.wanted_shape(SlurmLabShape(**_named(request)), request.fields())
    lab = slurm.up(home.make_home() / shape.name, say=say, **asdict(shape))
    return lab, lab.shape.words(), f"{RUN} {lab.name}\nssh -F {shlex.quote(str(lab.ssh_config))} {lab.name} sinfo"


def _hosts(request: LabRequest, say: Say, progress: Progress) -> Started:
    shape = home.wanted_shape(HostsLabShape(**_named(request)), request.fields())
    lab = hosts.up(home.make_home() / shape.name, say=say, **asdict(shape))
    ssh = f"ssh -F {shlex.quote(str(lab.ssh_config))} {lab.first}"
    return lab, lab.shape.words(), f"podwright pod up examples/lab-pod.yaml\n{ssh}"


def _kubernetes(request: LabRequest, say: Say, progress: Progress) -> Started:
    shape = home.wanted_shape(kubernetes.KubernetesLabShape(**_named(request)), request.fields())
    lab = kubernetes.up(home.make_home() / shape.name, say=say, progress=progress, **asdict(shape))
    show = shlex.join([str(lab.kubectl_path), f"--kubeconfig={lab.kubeconfig}", "get", "nodes"])
    return lab, lab.shape.words(), f"{RUN} {lab.name}\n{show}"


_STARTS: Mapping[Kind, Callable[[LabRequest, Say, Progress], Started]] = {
    "slurm": _slurm,
    "hosts": _hosts,
    "kubernetes": _kubernetes,
}


def _named(request: LabRequest) -> dict[str, Any]:
    return {"name": request.name} if request.name else {}


def find(name: str | None = None, command: Sequence[str] = ()) -> Lab:
    """Return a lab; all that is done to one that was started here needs root, and being told so first."""
    lab = home.the_lab(name)
    if not isinstance(lab, kubernetes.BorrowedLab):
        packages.check_root(command)
    return lab


def take_down(lab: Lab) -> list[str]:
    """End a lab for good; return the runs that are lost with it: what has ended is read while it can be."""
    home.settle_runs(lab.name)
    lab.down()
    home.forget(lab.name)
    return home.lose_runs(lab.name)
