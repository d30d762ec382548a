"""What a run was given and where it ran: each setting by its kind and name, as text. Pure.

Kinds are `workload` (what was asked), `code`, `environment` (software below the program), `data` and `hardware`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

from podwright.runs.events import AttemptStarted, Event, PilotStarted, SoftwareFound
from podwright.runs.record import Asked
from podwright.spec.hostlist import fold_hosts
from podwright.theme import words

Kind = Literal["workload", "code", "environment", "data", "hardware"]
KINDS: tuple[Kind, ...] = ("workload", "code", "environment", "data", "hardware")
Settings = Mapping[tuple[Kind, str], str]
"""Each setting of a run by its kind and name; a name is dotted where a field has fields of its own."""

TOLD = (AttemptStarted, PilotStarted, SoftwareFound)
"""The events that say where a run ran."""
SNAPSHOT: tuple[Kind, str] = ("code", "snapshot")
"""The digest of the code that travelled; where it is the same, it does not matter which commit it was."""
_OF_OTHER_KINDS = ("code", "data", "matrix")
"""Fields of a workload that another kind tells, and better."""
PACKAGES = ("python", "torch", "cuda", "nccl", "cudnn")


def settings_of(asked: Asked, events: Iterable[Event]) -> Settings:
    """Return what a run was given; what was left empty is left out."""
    listed = [event for event in events if isinstance(event, TOLD)]
    rows: dict[tuple[Kind, str], Any] = {}
    rows |= {("workload", name): value for name, value in _workload(asked)}
    rows |= {("code", name): value for name, value in _code(asked)}
    rows |= {("environment", name): value for name, value in _environment(asked, listed)}
    rows |= {("data", name): value for name, value in _data(asked)}
    rows |= {("hardware", name): value for name, value in _hardware(asked, listed)}
    return {key: _text(value) for key, value in rows.items() if value not in (None, "", [], {}, ())}


def packages_of(events: Iterable[Event]) -> dict[str, str]:
    """Return the versions of what the ranks started with; where nodes differ, each once."""
    found = [event for event in events if isinstance(event, SoftwareFound)]
    rows = {name: _each_once(map(attrgetter(name), found)) for name in PACKAGES}
    return {name: value for name, value in rows.items() if value}


def environment_of(asked: Asked, events: Iterable[Event]) -> dict[str, Any]:
    """Return what a run had below its program, as `--json` has it: of the first node all that it said of itself."""
    listed = list(events)
    found = [event for event in listed if isinstance(event, SoftwareFound)]
    drivers = (event.driver for event in listed if isinstance(event, PilotStarted))
    modules = next((event.modules for event in found if event.modules), ())
    others = {event.node for event in found if event.digest and event.digest != _first_digest(found)}
    return {
        "python": _each_once(event.python for event in found) or None,
        "packages": installed_of(found),
        "driver": _each_once(drivers) or None,
        "image": asked.image,
        "modules": list(modules),
        "others": sorted(others),
    }


def installed_of(events: Iterable[Event]) -> dict[str, str]:
    """Return the packages that the first node named, in its last attempt: versions by name."""
    named: dict[str, str] = {}
    for event in events:
        if isinstance(event, SoftwareFound) and event.packages:
            rows = (line.partition("==") for line in event.packages)
            named = {name: version for name, _, version in rows}
    return named


def _first_digest(found: Sequence[SoftwareFound]) -> str:
    return next((event.digest for event in found if event.node == 0 and event.digest), "")


def _workload(asked: Asked) -> Iterator[tuple[str, Any]]:
    yield from _flat("", {name: value for name, value in asked.workload.items() if name not in _OF_OTHER_KINDS})
    yield from _flat("matrix.", asked.matrix or asked.workload.get("matrix") or {})


def _flat(prefix: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each field by its dotted name."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _code(asked: Asked) -> Iterator[tuple[str, Any]]:
    code = asked.code or {}
    yield SNAPSHOT[1], str(code.get("sha256") or "")[:12]
    yield "commit", str(code.get("commit") or "")[:12]
    if code.get("commit"):
        yield "changed since", "yes" if code.get("changed") else "no"


def _environment(asked: Asked, events: list[Any]) -> Iterator[tuple[str, Any]]:
    yield from installed_of(events).items()
    yield "image digest", (asked.image or {}).get("digest")
    yield "podwright", asked.version
    yield from packages_of(events).items()
    yield "modules", next((event.modules for event in events if isinstance(event, SoftwareFound) and event.modules), ())
    pilots = [event for event in events if isinstance(event, PilotStarted)]
    yield "pilot's python", _each_once(pilot.python for pilot in pilots)
    yield "driver", _each_once(pilot.driver for pilot in pilots)
    yield "kernel", _each_once(pilot.kernel for pilot in pilots)


def _data(asked: Asked) -> Iterator[tuple[str, Any]]:
    """Yield each input: a selection by its digest, which says more than its name."""
    digests = {name: row.get("digest") for name, row in (asked.inputs or {}).items() if isinstance(row, Mapping)}
    data = asked.workload.get("data")
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield name, digests.get(name) or value


def _hardware(asked: Asked, events: list[Any]) -> Iterator[tuple[str, Any]]:
    pilots = [event for event in events if isinstance(event, PilotStarted)]
    attempts = [event for event in events if isinstance(event, AttemptStarted)]
    yield "target", asked.target
    if attempts:
        yield "hosts", fold_hosts(sorted(set(attempts[-1].hosts)))
    yield "CPUs", _each_once(pilot.cpus for pilot in pilots)
    yield "memory", _each_once(words.size(pilot.memory_bytes, "") for pilot in pilots)
    yield "GPUs", _each_once(_gpus(pilot) for pilot in pilots)
    yield "network", _each_once(", ".join(pilot.nics) for pilot in pilots)


def _gpus(pilot: PilotStarted) -> str:
    names = [str(gpu.get("name")) for gpu in pilot.gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _each_once(values: Iterable[object]) -> str:
    """Return what the nodes have; where they differ, each value once."""
    texts = {str(value) for value in values if value not in (None, "")}
    return " and ".join(sorted(texts))


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def names_of(sides: Iterable[Settings]) -> list[tuple[Kind, str]]:
    """Return the settings that any of some runs has, kind by kind, in the order in which they first come."""
    seen = dict.fromkeys(chain.from_iterable(sides))
    return sorted(seen, key=lambda key: KINDS.index(key[0]))
