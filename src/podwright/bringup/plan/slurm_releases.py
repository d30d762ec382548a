"""Which release of Slurm another one may be upgraded to: beyond SchedMD's window jobs and state would be lost."""

from __future__ import annotations

from itertools import pairwise

from podwright.spec.problems import refuse

# By slurm.schedmd.com/upgrades.html: each reads the state of the two before it, from 24.11 on of the three before it.
_RELEASES = ("20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11")
_WIDER_FROM = _RELEASES.index("24.11")
_FIELD = "bringup.versions.slurm"


def release_of(version: str) -> str:
    """Return the release of a package's version, such as 22.05 of 22.05.8-4+deb12u3."""
    return ".".join(version.rpartition(":")[2].split(".")[:2])


def check_jump(installed: str, wanted: str) -> None:
    """Refuse an upgrade that the wanted release cannot read the state of, and name the steps between."""
    if installed == wanted:
        return
    unknown = next((each for each in (installed, wanted) if each not in _RELEASES), None)
    if unknown is not None:
        hint = f"known are {', '.join(_RELEASES)}"
        raise refuse(f"which releases Slurm {unknown} is upgraded with is not known", hint=hint, field=_FIELD)
    here, there = _RELEASES.index(installed), _RELEASES.index(wanted)
    if there < here:
        hint = f"stay with {installed}, or restore a backup on hosts that have {wanted}"
        raise refuse(f"Slurm {wanted} cannot read the state of {installed}", hint=hint, field=_FIELD)
    steps = _steps(here, there)
    if len(steps) > 1:
        readable = ", ".join(_RELEASES[_earliest(there) : there])
        step = _RELEASES[steps[0]]
        hint = f'upgrade to {step} first: `versions: {{slurm: "{step}"}}`, and a source that has it'
        message = f"Slurm {wanted} reads the state of {readable}; from {installed} on, jobs and state would be lost"
        raise refuse(message, hint=hint, field=_FIELD)


def _steps(here: int, there: int) -> list[int]:
    """Return the releases to go through, as few as there can be."""
    steps: list[int] = []
    while here != there:
        here = max(place for place in range(here + 1, there + 1) if _earliest(place) <= here)
        steps.append(here)
    assert all(_earliest(after) <= before for before, after in pairwise(steps))
    return steps


def _earliest(place: int) -> int:
    """Return the earliest release whose state one reads."""
    return max(place - (3 if place >= _WIDER_FROM else 2), 0)
