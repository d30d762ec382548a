"""`lab`: a pod on this machine, to try things on."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from podwright import lab
from podwright.cli.commands.lab import build
from podwright.cli.options import AsJson, Yes
from podwright.cli.terminal import figures, output

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
    request = lab.LabRequest(kind, name, nodes, gpus, virtual_nodes, no_accounting, use_context)
    with build.BuildProgress() as bar:
        started = lab.up(request, sys.argv[1:], output.say, bar.show)
    took = "" if started.took_s is None else f", in {figures.duration(started.took_s)}"
    output.say("up", f"{started.name}, {started.words}{took}")
    return output.say("next", started.next)


def lab_status_command(name: Name = None, as_json: AsJson = False) -> None:
    """List the machines, each with what it is, what it does, and the scheduler's word for it."""
    found = _found(name)
    machines = found.status()
    if as_json:
        return output.print_json(machines)
    output.say("lab", found.name)
    head = tuple(machines[0])
    rows = []
    for machine in machines:
        rows.append([machine[key] or "-" for key in head])
    return print("\n".join(output.table(head, rows, output.width_of(sys.stdout))))


def lab_kill_node_command(node: Node, name: Name = None) -> None:
    """End process 1 of a node."""
    found = _found(name)
    found.kill_node(node)
    output.say("killed", f"{node} of {found.name}; `podwright lab heal` starts it again")


def lab_cut_node_command(node: Node, name: Name = None) -> None:
    """Take a node's wire down."""
    found = _found(name)
    found.cut_node(node)
    output.say("cut", f"{node} of {found.name}; `podwright lab heal` joins it again")


def lab_heal_command(
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="A compute node; left out: all.")] = None,
    name: Name = None,
) -> None:
    """Bring a node or the whole lab back."""
    found = _found(name)
    healed = ", ".join(found.heal(node))
    output.say("healed", healed or f"nothing was wrong with {node or found.name}")


def lab_restart_controller_command(name: Name = None) -> None:
    """Kill slurmctld, or the API server, and start it again."""
    found = _found(name)
    found.restart_controller()
    output.say("restarted", f"the controller of {found.name}")


def lab_down_command(name: Name = None, yes: Yes = False) -> None:
    """End a lab for good."""
    found = _found(name)
    if not output.confirm_destroying(f"End {found.name} and remove {found.folder}?", yes):
        return
    lost = lab.take_down(found)
    output.say("down", f"{found.name} and all it left")
    for run_id in lost:
        output.say("lost", f"{run_id}: {lab.TAKEN_DOWN}")


def _found(name: str | None) -> lab.Lab:
    return lab.find(name, sys.argv[1:])
