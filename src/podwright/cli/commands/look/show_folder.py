"""What the folder of a run says beyond its record: what was asked for, and what happened on the way."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from podwright import runs
from podwright.cli.terminal import figures
from podwright.cli.terminal.progress import kept_text
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.launch import RunOverview
    from podwright.runs import RunFolder
    from podwright.runs.events import EventFilesRead, Recognised, Retry
    from podwright.runs.replacements import Replacement

MAX_LINES = 6
"""About nodes that were replaced, or about retries."""
RESOURCES = ("gpus", "mig", "cpus", "memory", "shm", "rdma")

Facts = Iterator[tuple[str, str]]


def asked_for(folder: RunFolder) -> Facts:
    """Yield the command, what each node was to get, and the code it ran."""
    if not folder.is_readable:
        return
    asked = folder.asked
    command = asked.workload.get("command")
    if isinstance(command, list):
        yield "command", shlex.join(str(word) for word in command)
    if resources := _resources(asked.workload.get("resources")):
        yield "each node", resources
    if isinstance(asked.code, Mapping) and asked.code.get("commit"):
        changed = ", with changes: spec/code.diff" if asked.code.get("changed") else ""
        yield "code", f"commit {str(asked.code['commit'])[:12]}{changed}"


def _resources(given: Any) -> str:
    if not isinstance(given, Mapping):
        return ""
    return ", ".join(f"{name} {figures.value(given[name])}" for name in RESOURCES if given.get(name))


def happened(shown: RunOverview) -> Facts:
    """Yield what was read from its output, why it was tried again, which nodes were replaced, what was kept."""
    folder, kinds = shown.folder, runs.events
    yield from _software(folder.versions())
    yield from _read(folder.events_of(kinds.Recognised), folder.events_of(kinds.EventFilesRead))
    yield from _retries(folder.events_of(kinds.Retry))
    if stack := shown.stack:
        yield "stack", "\n".join(stack)
    yield from _replaced(shown.replaced)
    for event in folder.events_of(kinds.FilesKept)[-1:]:
        yield "kept", kept_text(folder.id, event)
    if shown.report:
        yield "report", shown.report.resolve().as_uri()


def _software(versions: Mapping[int, Mapping[str, str]]) -> Facts:
    """Say the versions once where all nodes have the same; else which nodes have which."""
    from podwright.analysis.event_text import versions_text

    nodes: dict[str, list[int]] = {}
    for node, known in versions.items():
        if known:
            nodes.setdefault(versions_text(known), []).append(node)
    lines = list(nodes)
    if len(nodes) > 1:
        lines = [f"node {words.fold(numbers)}: {text}" for text, numbers in nodes.items()]
    if lines:
        yield "versions", "\n".join(lines)


def _retries(events: Sequence[Retry]) -> Facts:
    lines = [f"{words.clock(event.time)}, {event.why or 'nobody said why'}" for event in events[-MAX_LINES:]]
    if len(events) > MAX_LINES:
        lines.insert(0, f"{len(events)} times; the latest:")
    if lines:
        yield "retried", "\n".join(lines)


def _read(events: Sequence[Recognised], files: Sequence[EventFilesRead]) -> Facts:
    """Say which values no rank told as such: they were read from the program's output, or from event files."""
    by_how: dict[str, list[str]] = {}
    of_files = dict.fromkeys(chain.from_iterable(event.values for event in files))
    for event in events:
        for row in event.names:
            by_how.setdefault(str(row.get("how")), []).append(str(row.get("name")))
    lines = []
    for how, text in (("pattern", "by the patterns of `results:`"), ("form", "guessed by their form in the output")):
        if names := [name for name in dict.fromkeys(by_how.get(how, [])) if name not in of_files]:
            lines.append(f"{', '.join(names)}: {text}")
    if of_files:
        lines.append(f"{', '.join(of_files)}: from event files of TensorBoard")
    if lines:
        yield "read", "\n".join(lines)


def _replaced(replaced: Sequence[Replacement]) -> Facts:
    """Say which nodes were replaced and when, the latest of them where there are many."""
    lines = []
    for row in replaced[-MAX_LINES:]:
        where = f"on {row.host} again"
        if row.host != row.before:
            where = f"by {row.host}, before {row.before}"
        lines.append(f"node {row.node} at {words.clock(row.time)}, {where}")
    if len(replaced) > MAX_LINES:
        lines.insert(0, f"{len(replaced)} times; the latest:")
    if lines:
        yield "replaced", "\n".join(lines)
