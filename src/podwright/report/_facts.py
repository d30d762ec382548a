"""What the run ran on, and how to run it again. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podwright.report import _words as words
from podwright.report._data import Event
from podwright.report._ranks import Story

_MOST_NAMED = 6


@dataclass(frozen=True)
class Fact:
    """One thing about the machines; several values mean that they differ, each with the nodes that have it."""

    name: str
    values: tuple[tuple[str, str], ...]


def environment(story: Story) -> list[Fact]:
    """What the nodes said of themselves; equal nodes are said once."""
    latest = {int(event.get("n") or 0): event for event in story.data.of_kind("pilot")}
    facts = [_fact(story, name, read, latest) for name, read in _READ.items()]
    return [fact for fact in facts if fact.values]


def _fact(story: Story, name: str, read: Callable[[Event], str], latest: Mapping[int, Event]) -> Fact:
    by_value: dict[str, list[int]] = defaultdict(list)
    for node, event in sorted(latest.items()):
        value = read(event)
        if value:
            by_value[value].append(node)
    common = sorted(by_value.items(), key=lambda item: -len(item[1]))
    return Fact(name, tuple((value, _who(story, nodes, len(latest))) for value, nodes in common))


def _who(story: Story, nodes: list[int], all_nodes: int) -> str:
    if len(nodes) == all_nodes:
        return "" if all_nodes == 1 else f"all {words.count(all_nodes, 'node')}"
    names = [story.name(node) for node in nodes[:_MOST_NAMED]]
    more = len(nodes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _gpus(event: Event) -> str:
    gpus = event.get("gpus")
    kinds: dict[str, int] = defaultdict(int)
    for gpu in gpus if isinstance(gpus, list) else []:
        if isinstance(gpu, Mapping):
            size = gpu.get("memory_bytes")
            memory = f", {words.quantity(float(size), 'bytes')}" if isinstance(size, int | float) else ""
            kinds[f"{gpu.get('name')}{memory}"] += 1
    return "; ".join(f"{n} x {kind}" for kind, n in kinds.items())


def _memory(event: Event) -> str:
    size = event.get("memory_bytes")
    return words.quantity(float(size), "bytes") if isinstance(size, int | float) else ""


_READ: Mapping[str, Callable[[Event], str]] = {
    "GPUs": _gpus,
    "GPU driver": lambda event: str(event.get("driver") or ""),
    "CPUs": lambda event: str(event.get("cpus") or ""),
    "Memory": _memory,
    "Kernel": lambda event: str(event.get("kernel") or ""),
    "Python of the pilot": lambda event: str(event.get("python") or ""),
    "Pilot": lambda event: str(event.get("version") or ""),
}


@dataclass(frozen=True)
class Recipe:
    """How to run it again: the facts that fix what ran, and the commands."""

    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def recipe(story: Story) -> Recipe:
    """What was run, named so exactly that it can be run again."""
    asked, record = story.data.asked, story.data.record
    workload = asked.get("workload")
    command = workload.get("command") if isinstance(workload, Mapping) else None
    shown = " ".join(str(part) for part in command) if isinstance(command, list) else str(command or "")
    facts = [
        ("Run", str(record.get("id") or asked.get("id") or "")),
        ("Target", str(record.get("target") or asked.get("target") or "")),
        ("Command", shown),
        ("Code", str(asked.get("code") or "")),
        ("Matrix point", _pairs(record.get("matrix"))),
        ("Podwright", str(asked.get("version") or "")),
        ("Folder", str(record.get("folder") or "")),
    ]
    return Recipe(tuple(fact for fact in facts if fact[1]), _commands(story))


def _pairs(value: object) -> str:
    return ", ".join(f"{name} {item}" for name, item in value.items()) if isinstance(value, Mapping) else ""


def _commands(story: Story) -> tuple[str, ...]:
    folder = story.data.record.get("folder")
    target = story.data.record.get("target") or "local"
    if not folder:
        return ()
    return (
        f"mkdir again && tar -xf {folder}/job/code.tar -C again",
        f"podwright run {folder}/spec/workload.yaml --set code=$PWD/again --on {target}",
    )
