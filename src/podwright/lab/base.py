"""What every lab can do, whatever runs on it, and what those have in common whose machines are started here."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from podwright.lab.folder import locked
from podwright.lab.machines import HUB, Machines, end
from podwright.lab.shape import LabShape
from podwright.spec.problems import refuse

Say = Callable[[str, str], None]
"""Takes a word and a text: what a lab does just now."""


def quiet(word: str, text: str) -> None:
    """Say nothing."""


class Lab(Protocol):
    """A cluster to try things on; `up` or `borrow` of its kind makes one, `find` finds it again.

    Whatever a kind cannot do raises a refusal.
    """

    @property
    def folder(self) -> Path:
        """Return the folder that holds all of it."""

    @property
    def name(self) -> str:
        """Return its name, which is that of its pod too."""

    @property
    def pod_file(self) -> Path:
        """Return the file that describes it as a pod."""

    def status(self) -> list[dict[str, str]]:
        """Return a row for every machine: its role, its address, its state, and the scheduler's word for it."""

    def kill_node(self, node: str) -> None:
        """Power a node off."""

    def cut_node(self, node: str) -> None:
        """Take a node off the network; what runs on it goes on."""

    def heal(self, node: str | None = None) -> list[str]:
        """Bring a node, or all of it, back to where all runs; return the names of what was touched."""

    def restart_controller(self) -> None:
        """Kill the scheduler's controller and start it again."""

    def down(self) -> None:
        """End it for good, with all it left."""


class StartedLab(ABC):
    """A lab whose machines run here, each in namespaces of its own."""

    shape: LabShape
    node_word = "node"
    """What those of its machines are called that may be struck."""

    def __init__(self, folder: Path, machines: Machines) -> None:
        self.folder = folder
        self.machines = machines

    @property
    def name(self) -> str:
        """Return the lab's name: that of its pod, of its login node for ssh, of its kubeconfig's context."""
        return self.shape.name

    def node(self, name: str) -> str:
        """Return the name of a node that may be struck; any other is refused."""
        hosts, word = self.shape.hosts(), self.node_word
        if name in hosts:
            return name
        message = f'"{name}" is no {word} of {self.name}'
        raise refuse(message, hint=f"its {word}s are n1 to {hosts[-1]}", field="NODE")

    @property
    def pod_file(self) -> Path:
        """Return the file that describes the lab as a pod."""
        return self.folder / "pod.yaml"

    def kill_node(self, node: str) -> None:
        """Power a node off: all its processes, and all containers, are gone at once."""
        self.machines.kill([self.node(node)])

    def cut_node(self, node: str) -> None:
        """Take a node off the network; what runs on it goes on."""
        self.machines.set_wire(self.node(node), up=False)

    def down(self) -> None:
        """End all processes of the lab and remove its folder; mounts and networks go with their last process."""
        with locked(self.folder):
            end(self.folder)

    def start_hub(self) -> None:
        """Start what wires the machines; those that were wired to one that is gone could be reached by nobody."""
        if self.machines.start([HUB]):
            self.machines.kill(self.machines.addresses)

    def start_machines(self, names: Sequence[str]) -> list[str]:
        """Start the machines that do not live and join those that were cut off; return their names."""
        started = self.machines.start(names)
        wires = self.machines.wires()
        cut = [name for name in names if not wires.get(name, True)]
        for name in cut:
            self.machines.set_wire(name, up=True)
        return [*started, *cut]

    def rows(self, scheduler: str, roles: Mapping[str, str], states: Mapping[str, str]) -> list[dict[str, str]]:
        """Return every machine with its role, address, state (up, off, cut) and the scheduler's word for it.

        `roles` are those of machines that are no ordinary nodes, under "" that of all others.
        """
        links = self.machines.links()
        return [
            {
                "machine": name,
                "role": roles.get(name, roles[""]),
                "address": address,
                "state": links[name],
                scheduler: states.get(name, ""),
            }
            for name, address in self.machines.addresses.items()
        ]


def check_same(lab: StartedLab | None, asked: LabShape) -> None:
    """Refuse another shape than that of the lab that is there."""
    if lab is not None and lab.shape != asked:
        message = f"{asked.name} is there already, with {lab.shape.words()}"
        raise refuse(message, hint="`podwright lab down` ends it; another --name makes a second one")
