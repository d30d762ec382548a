"""The teams of a pod: who belongs together, and what they may use and spend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from podwright.spec.bringup import AccountName
from podwright.spec.findings import Finding
from podwright.spec.problems import short
from podwright.spec.types import Count, Line, Name, Price, Size, Strict, pattern

SharedPath = Annotated[
    Line, pattern(r"/[^\r\n\0]*", '"{}" is not a whole path', "write it like `/shared/podwright-runs`")
]
SlurmName = Annotated[
    Line,
    pattern(
        r"[a-z0-9][a-z0-9_.-]{0,62}",
        '"{}" is not a name in Slurm\'s accounting',
        "lower-case letters, digits, dashes, dots and underscores",
    ),
]
OTHERS = "others"
"""The account of people with an account on the hosts who are in no team."""


class Quota(Strict):
    """What a team may use at once."""

    gpus: Count | None = Field(default=None, description="GPUs in use at once")
    cpus: Count | None = Field(default=None, description="CPUs in use at once")
    memory: Size | None = Field(default=None, description="memory in use at once")
    runs: Count | None = Field(default=None, description="runs at work at once")


class Team(Strict):
    """People who work together on a pod."""

    name: Name = Field(description="lower-case letters, digits and dashes")
    members: tuple[AccountName, ...] = Field(description="accounts of its people; one belongs to one team")
    account: SlurmName | None = Field(default=None, description="Slurm's account its runs go to; left out: its name")
    qos: SlurmName | None = Field(default=None, description="Slurm's quality of service of its runs")
    shares: Count = Field(default=1, description="its part of the pod against other teams'")
    quota: Quota = Field(default=Quota(), description="what it may use at once")
    alerts: tuple[Line, ...] = Field(default=(), description="who hears of alerts about its runs, as receivers take it")
    budget: Price | None = Field(default=None, description="what it may spend a month, in the currency of `costs`")


def teams(tree: dict[str, Any]) -> Iterator[Finding]:
    """Check that a team's name is given once, and that a person is in one team."""
    given = tree.get("teams")
    listed = enumerate(given) if isinstance(given, list) else ()
    entries = [(index, entry) for index, entry in listed if isinstance(entry, dict)]
    names: set[object] = set()
    people: set[str] = set()
    accounts: set[object] = {OTHERS}
    for index, entry in entries:
        name, members = entry.get("name"), entry.get("members")
        account = entry.get("account", name)
        if isinstance(name, str) and name in names:
            yield Finding(("teams", index, "name"), f'"{short(name)}" is there twice', "give it another")
        elif isinstance(account, str) and account in accounts:
            field = "account" if "account" in entry else "name"
            hint = f"each team has an account of its own; `{OTHERS}` is that of people in no team"
            yield Finding(("teams", index, field), f'"{short(account)}" is an account that is taken', hint)
        names.add(str(name))
        accounts.add(str(account))
        if not isinstance(members, list):
            continue
        for place, member in enumerate(members):
            if isinstance(member, str) and member in people:
                hint = "name each account once: its runs belong to one team"
                yield Finding(("teams", index, "members", place), f'"{short(member)}" is in a team already', hint)
            people.add(str(member))
