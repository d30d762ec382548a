"""What a bring-up says while it works: one form, and one callback for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from podwright.bringup.apply.playbook import ApplyProgress

Kind = Literal[
    "waits",
    "asked",
    "up",
    "applying",
    "applied",
    "invalid",
    "drain",
    "resumed",
    "stays",
    "job",
    "packages",
    "python",
    "image",
    "serving",
    "saving",
    "restoring",
    "reserved",
]


@dataclass(frozen=True)
class BringupProgress:
    """One thing that happened.

    `up`, `applying` and `applied` frame each run of Ansible; `asked` comes with each host that answered, of all
    `hosts`; `invalid` says that hosts are not as planned after it; `text` is what a person reads of the other kinds.
    """

    kind: Kind
    text: str = ""
    hosts: Sequence[str] = ()
    applied: ApplyProgress | None = None


OnProgress = Callable[[BringupProgress], None]


def ignore(progress: BringupProgress) -> None:
    """Show nothing."""
