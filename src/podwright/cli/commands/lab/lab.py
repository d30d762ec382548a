"""`lab`: a pod on this machine, to try things on."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podwright.cli.commands.lab import build
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.lab.base import Lab
    from podwright.lab.hosts.lab import HostsLab
    from podwright.lab.kubernetes import KubernetesLab
    from podwright.lab.slurm.lab import SlurmLab

    Started = tuple[SlurmLab | KubernetesLab | HostsLab, str]

Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Which lab, where there are several.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="A compute node, such as n2.")]


def lab_up_command(
    kind: Annotated[
        Literal["slurm", "kubernetes", "hosts"],
        typer.Argument(metavar="slurm|kubernetes|hosts", help="The scheduler; hosts: bare, for `pod up`."),
    ],
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", help="Nodes; 4, of Kubernetes 2.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", metavar="N", help="GPUs of each; 8, of hosts 2.")] = None,
    virtual_nodes: Annotated[
        int | None, typer.Option("--virtual-nodes", metavar="N", help="Of Kubernetes: DGX nodes that are played; 140.")
    ] = None,
    no_accounting: Annotated[
        bool, typer.Option("--no-accounting", help="Of Slurm: no slurmdbd, up in a second.")
    ] = False,
    use_context: Annotated[
        str | None, typer.Option("--use-context", metavar="NAME", help="A Kubernetes that is there: its context.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Its name; lab-KIND if not said.")] = None,
) -> None:
    """Start a lab and make it known as a pod; one that is there already is only mended."""
    from podwright.lab import home, packages

    _refuse("--use-context", "Kubernetes", kind != "kubernetes" and use_context is not None)
    _refuse("--virtual-nodes", "Kubernetes", kind != "kubernetes" and virtual_nodes is not None)
    _refuse("--no-accounting", "Slurm", kind != "slurm" and no_accounting)
    if use_context is not None:
        return _borrow(use_context, name)
    packages.check_root(sys.argv[1:])
    started = time.monotonic()
    start = {"slurm": _slurm, "kubernetes": _kubernetes, "hosts": _hosts}[kind]
    given: dict[str, Any] = {"nodes": nodes, "gpus": gpus}
    given |= {"accounting": False} if no_accounting else {}
    given |= {"virtual_nodes": virtual_nodes} if virtual_nodes is not None else {}
    lab, hint = start(name, given)
    # Bare hosts may have become a pod since, which is known with its scheduler then.
    if kind != "hosts" or not home.is_known(lab.name):
        home.make_known(lab)
    took = figures.duration(time.monotonic() - started)
    output.say("up", f"{lab.name}, {lab.shape.words()}, in {took}")
    return output.say("next", hint)


def _borrow(context: str, name: str | None) -> None:
    """Make a lab of a cluster that is there; no root is needed for what others keep running."""
    from podwright.lab import home, kubernetes

    called = name or kubernetes.DEFAULT
    lab = kubernetes.borrow(home.new_folder(called), context, called)
    home.make_known(lab)
    output.say("up", f"{lab.name}, {lab.loan.words()}")
    output.say("next", f"podwright run WORKLOAD --on {lab.name}   (the workload names its image)")


def _refuse(option: str, kind: str, given: bool) -> None:
    from podwright.spec.problems import refuse

    if given:
        raise refuse(f"only a {kind} lab has this", field=option)


def _slurm(name: str | None, given: dict[str, Any]) -> Started:
    """Start a Slurm lab; return it with what can be done next."""
    from dataclasses import asdict

    from podwright.lab import home
    from podwright.lab.slurm import lab as slurm
    from podwright.lab.slurm import shape

    wanted = home.wanted_shape(shape.SlurmLabShape(name=name or home.DEFAULT), given)
    lab = slurm.up(home.make_home() / wanted.name, say=output.say, **asdict(wanted))
    return lab, f"{_run_on(lab)}\nssh -F {shlex.quote(str(lab.ssh_config))} {lab.name} sinfo"


def _hosts(name: str | None, given: dict[str, Any]) -> Started:
    """Start bare hosts; return their lab with what can be done next."""
    from dataclasses import asdict

    from podwright.lab import home
    from podwright.lab.hosts import lab as hosts
    from podwright.lab.hosts import shape

    wanted = home.wanted_shape(shape.HostsLabShape(name=name or shape.DEFAULT), given)
    lab = hosts.up(home.make_home() / wanted.name, say=output.say, **asdict(wanted))
    return lab, f"podwright pod up examples/lab-pod.yaml\nssh -F {shlex.quote(str(lab.ssh_config))} {lab.first}"


def _run_on(lab: Lab) -> str:
    return f"podwright run examples/segmentation.yaml --on {lab.name}"


def _kubernetes(name: str | None, given: dict[str, Any]) -> Started:
    """Start a Kubernetes lab; return it with what can be done next."""
    from dataclasses import asdict

    from podwright.lab import home, kubernetes

    usual = kubernetes.KubernetesLabShape(name=name or kubernetes.DEFAULT)
    wanted = home.wanted_shape(usual, given)
    with build.BuildProgress() as bar:
        lab = kubernetes.up(home.make_home() / wanted.name, say=output.say, progress=bar.show, **asdict(wanted))
    show = shlex.join([str(lab.kubectl_path), f"--kubeconfig={lab.kubeconfig}", "get", "nodes"])
    return lab, f"{_run_on(lab)}\n{show}"


def lab_status_command(name: Name = None, as_json: AsJson = False) -> None:
    """List the machines, each with what it is, what it does, and the scheduler's word for it."""
    lab = _lab(name)
    machines = lab.status()
    if as_json:
        return output.print_json(machines)
    output.say("lab", lab.name)
    head = tuple(machines[0])
    rows = []
    for machine in machines:
        rows.append([machine[key] or "-" for key in head])
    return print("\n".join(output.table(head, rows, output.width_of(sys.stdout))))


def lab_kill_node_command(node: Node, name: Name = None) -> None:
    """End process 1 of a node."""
    lab = _lab(name)
    lab.kill_node(node)
    output.say("killed", f"{node} of {lab.name}; `podwright lab heal` starts it again")


def lab_cut_node_command(node: Node, name: Name = None) -> None:
    """Take a node's wire down."""
    lab = _lab(name)
    lab.cut_node(node)
    output.say("cut", f"{node} of {lab.name}; `podwright lab heal` joins it again")


def lab_heal_command(
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="A compute node; left out: all.")] = None,
    name: Name = None,
) -> None:
    """Bring a node or the whole lab back."""
    lab = _lab(name)
    healed = ", ".join(lab.heal(node))
    output.say("healed", healed or f"nothing was wrong with {node or lab.name}")


def lab_restart_controller_command(name: Name = None) -> None:
    """Kill slurmctld, or the API server, and start it again."""
    lab = _lab(name)
    lab.restart_controller()
    output.say("restarted", f"the controller of {lab.name}")


def lab_down_command(name: Name = None, yes: Yes = False) -> None:
    """End a lab for good."""
    from podwright.lab import home

    lab = _lab(name)
    if not output.confirm_destroying(f"End {lab.name} and remove {lab.folder}?", yes):
        return
    lab.down()
    home.forget(lab.name)
    lost = home.lose_runs(lab.name)
    output.say("down", f"{lab.name} and all it left")
    for run_id in lost:
        output.say("lost", f"{run_id}: {home.TAKEN_DOWN}")


def _lab(name: str | None) -> Lab:
    """Return the lab; all that is done to one that was started here needs root, and being told so first."""
    from podwright.lab import home, packages
    from podwright.lab.kubernetes import BorrowedLab

    lab = home.the_lab(name)
    if not isinstance(lab, BorrowedLab):
        packages.check_root(sys.argv[1:])
    return lab
