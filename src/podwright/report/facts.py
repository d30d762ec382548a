"""What the run ran on, and how to run it again. Pure."""

import itertools
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.analysis.data import ReportData
from podwright.analysis.event_text import staged_from
from podwright.analysis.ranks import Story
from podwright.runs.events import PilotStarted, Staged
from podwright.runs.typed import texts
from podwright.theme import words

_MAX_NAMED = 6


@dataclass(frozen=True)
class Fact:
    """One thing about the machines; several values mean that they differ, each with the nodes that have it."""

    name: str
    values: tuple[tuple[str, str], ...]


def environment(story: Story) -> list[Fact]:
    """Return what the nodes said of themselves; equal nodes are said once."""
    latest = {event.node: event for event in story.data.of(PilotStarted)}
    facts = [_fact(story, name, read, latest) for name, read in _READ.items()]
    facts.append(_data(story))
    return [fact for fact in facts if fact.values]


def _data(story: Story) -> Fact:
    """Return how data came to the nodes: how much, in which time, how fast and from where."""
    values = []
    for event in story.data.of(Staged):
        if event.what == "data":
            size = words.quantity(event.size_bytes or 0, "bytes")
            text = f"{event.files} files, {size} in {words.duration(event.took_s or 0)}{staged_from(event)}"
            values.append((text, story.name(event.node)))
    return Fact("Data", tuple(values[:_MAX_NAMED]))


def _fact(story: Story, name: str, read: Callable[[PilotStarted], str], latest: Mapping[int, PilotStarted]) -> Fact:
    by_value: dict[str, list[int]] = defaultdict(list)
    for node, event in sorted(latest.items()):
        by_value[read(event)].append(node)
    by_value.pop("", None)
    common = sorted(by_value.items(), key=lambda item: -len(item[1]))
    return Fact(name, tuple((value, _who(story, nodes, len(latest))) for value, nodes in common))


def _who(story: Story, nodes: list[int], all_nodes: int) -> str:
    if len(nodes) == all_nodes:
        return ""
    names = ", ".join(story.name(node) for node in nodes[:_MAX_NAMED])
    if len(nodes) <= _MAX_NAMED:
        return names
    return f"{names} and {len(nodes) - _MAX_NAMED} more"


def _gpus(event: PilotStarted) -> str:
    kinds: dict[str, int] = defaultdict(int)
    for gpu in event.gpus:
        size = gpu.get("memory_bytes")
        kind = str(gpu.get("name"))
        if isinstance(size, int | float):
            kind += f", {words.quantity(float(size), 'bytes')}"
        kinds[kind] += 1
    return "; ".join(f"{n} x {kind}" for kind, n in kinds.items())


def _memory(event: PilotStarted) -> str:
    return words.size(event.memory_bytes, "")


_READ: Mapping[str, Callable[[PilotStarted], str]] = {
    "GPUs": _gpus,
    "GPU driver": lambda event: event.driver,
    "CPUs": lambda event: str(event.cpus or ""),
    "Memory": _memory,
    "Kernel": lambda event: event.kernel,
    "Python of the pilot": lambda event: event.python,
    "Pilot": lambda event: event.version,
}


@dataclass(frozen=True)
class RerunRecipe:
    """How to run it again: the facts that fix what ran, and the commands."""

    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def recipe(story: Story) -> RerunRecipe:
    """Return what was run, named so exactly that it can be run again."""
    asked, record = story.data.asked, story.data.record
    facts = [
        ("Run", record.id),
        ("Target", record.target),
        ("Command", shlex.join(texts(asked.workload.get("command")) or [])),
        ("Started by", _started_by(asked.command_line)),
        ("Code", _code(asked.code)),
        ("Matrix point", ", ".join(f"{name} {value}" for name, value in story.data.matrix.items())),
        ("Podwright", asked.version),
        ("Folder", record.folder),
    ]
    return RerunRecipe(tuple(fact for fact in facts if fact[1]), _commands(story.data))


def _started_by(argv: list[str]) -> str:
    return shlex.join([Path(argv[0]).name, *argv[1:]]) if argv else ""


def _code(code: Mapping[str, Any] | None) -> str:
    if code is None:
        return ""
    commit = f", commit {code['commit']}" if code.get("commit") else ""
    changed = ", with changes (spec/code.diff)" if code.get("changed") else ""
    return f"sha256 {code.get('sha256')}{commit}{changed}"


def _commands(data: ReportData) -> tuple[str, ...]:
    """Return the commands that unpack the code as it was, then run the same workload on it with the same changes."""
    folder, copy = data.record.folder, f"{data.record.id}-again"
    options = shlex.join([*_changes(data.asked.command_line), "--on", data.record.target])
    unpack = shlex.join(["mkdir", copy]) + " && " + shlex.join(["tar", "-xf", f"{folder}/job/code.tar", "-C", copy])
    if data.workload_in_code:
        return unpack, f"podwright run {shlex.quote(f'{copy}/{data.workload_in_code}')} {options}"
    workload = shlex.quote(f"{folder}/spec/workload.yaml")
    if not data.asked.code:
        return (f"podwright run {workload} {options}",)
    return unpack, f"podwright run {workload} --set code=$PWD/{shlex.quote(copy)} {options}"


def _changes(argv: list[str]) -> list[str]:
    """Return the `--set` options of the command that started the run; they are not in the workload's file."""
    if not argv or Path(argv[0]).name != "podwright":
        return []
    changes = []
    for option, value in itertools.pairwise(argv):
        if option == "--set":
            changes += [option, value]
    return changes + [option for option in argv if option.startswith("--set=")]
