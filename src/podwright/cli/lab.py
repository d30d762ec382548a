"""`lab`: a pod on this machine, to try things on."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podwright.cli import figures, talk
from podwright.cli.options import AsJson, Yes

if TYPE_CHECKING:
    from podwright.lab.slurm import Lab

Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Which lab, where there are several.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="A compute node, such as n2.")]


def lab_up_command(
    kind: Annotated[Literal["slurm"], typer.Argument(metavar="slurm", help="The cluster's scheduler.")],
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", help="Compute nodes; 4 if not said.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", metavar="N", help="GPUs of each; 8 if not said.")] = None,
    no_accounting: Annotated[bool, typer.Option("--no-accounting", help="No slurmdbd: up in a second.")] = False,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Its name; lab-slurm if not said.")] = None,
) -> None:
    """Starts a lab and makes it known as a pod; one that is there already is only mended."""
    from dataclasses import asdict

    from podwright.lab import packages, places, slurm

    packages.check_root(sys.argv[1:])
    started = time.monotonic()
    given = {"nodes": nodes, "gpus": gpus, "accounting": False if no_accounting else None}
    shape = places.wanted_shape(name or places.DEFAULT, given)
    lab = slurm.up(places.make_home() / shape.name, say=talk.say, **asdict(shape))
    places.make_known(lab)
    took = figures.duration(time.monotonic() - started)
    talk.say("up", f"{shape.name}, {shape.words()}, in {took}; its user is {lab.user.name}")
    config = shlex.quote(str(lab.ssh_config))
    talk.say("next", f"podwright run examples/segmentation.yaml --on {lab.name}\nssh -F {config} {lab.name} sinfo")


def lab_status_command(name: Name = None, as_json: AsJson = False) -> None:
    """Lists the machines, each with what it is, what it does, and Slurm's word for it."""
    machines = _lab(name).status()
    if as_json:
        return talk.print_json(machines)
    head = ("machine", "role", "address", "state", "slurm")
    rows = [tuple(machine[key] or "-" for key in head) for machine in machines]
    return print("\n".join(talk.table(head, rows, talk.width_of(sys.stdout))))


def lab_kill_node_command(node: Node, name: Name = None) -> None:
    """Ends process 1 of a node."""
    lab = _lab(name)
    lab.kill_node(node)
    talk.say("killed", f"{node} of {lab.name}; `podwright lab heal` starts it again")


def lab_cut_node_command(node: Node, name: Name = None) -> None:
    """Takes a node's wire down."""
    lab = _lab(name)
    lab.cut_node(node)
    talk.say("cut", f"{node} of {lab.name}; `podwright lab heal` joins it again")


def lab_heal_command(
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="A compute node; left out: all.")] = None,
    name: Name = None,
) -> None:
    """Brings a node or the whole lab back."""
    lab = _lab(name)
    touched = lab.heal(node)
    talk.say("healed", ", ".join(touched) if touched else f"nothing was wrong with {node or lab.name}")


def lab_restart_controller_command(name: Name = None) -> None:
    """Kills slurmctld and starts it again."""
    lab = _lab(name)
    lab.restart_controller()
    talk.say("restarted", f"the controller of {lab.name}")


def lab_down_command(name: Name = None, yes: Yes = False) -> None:
    """Ends a lab for good."""
    from podwright.lab import places

    lab = _lab(name)
    if not talk.confirm(f"End {lab.name} and remove {lab.folder}?", yes):
        return
    lab.down()
    places.forget(lab.name)
    talk.say("down", f"{lab.name} and all it left")


def _lab(name: str | None) -> Lab:
    """Gives the lab; all that is done to one needs root, and being told so first."""
    from podwright.lab import packages, places

    found = places.the_lab(name)
    packages.check_root(sys.argv[1:])
    return found
