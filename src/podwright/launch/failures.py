"""Why a run failed, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from podwright.pilot.protocol import node_name
from podwright.runs import Record
from podwright.runs.events import DeviceSeen, Event, RankFailed, RankStack, SoftwareFound
from podwright.theme import words

MAX_CALLS = 8
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,200})'")


def explain(record: Record, events: Sequence[Event]) -> list[str]:
    """Return why a run failed, in words."""
    lines = [record.reason] if record.reason else []
    failures = [event for event in events if isinstance(event, RankFailed)]
    if failures:
        if failures[-1].rank is not None:
            lines = [_who(failures[-1], record)]
        lines += [line for line in failures[-1].tail if line.strip()][-5:]
    lines += [f"stack {line}" for line in last_stack(events)]
    for event in events:
        if isinstance(event, DeviceSeen):
            where = " ".join(filter(None, (node_name(record.hosts, event.node), event.device)))
            lines.append(f"seen {where}: {event.text or event.what}")
    return lines


def not_installed(lines: Iterable[str], events: Iterable[Event]) -> str:
    """Return where a module was looked for that a rank did not find; nothing where none was missing."""
    missing = next((match[1] for match in map(_NO_MODULE.search, lines) if match), None)
    found = [event for event in events if isinstance(event, SoftwareFound) and event.prefix]
    if missing is None or not found:
        return ""
    where = found[0].prefix + (f" (Python {found[0].python})" if found[0].python else "")
    other = "name its Python in `command:`, or activate it in `setup:`, such as `source venv/bin/activate`"
    return f"{missing} was looked for in {where}; where it is installed elsewhere, {other}"


def _who(failed: RankFailed, record: Record) -> str:
    name = failed.host
    if failed.at_node is not None and record.hosts:
        name = node_name(record.hosts, failed.at_node)
    sentence = f"rank {failed.rank} on {name} {failed.why}"
    if failed.after_s is not None:
        sentence += f" after {failed.after_s:.0f} s"
    if len(failed.stopped) == 1:
        return f"{sentence}; rank {failed.stopped[0]} was stopped"
    if failed.stopped:
        return f"{sentence}; ranks {words.fold(failed.stopped)} were stopped"
    return sentence


def last_stack(events: Iterable[Event]) -> list[str]:
    """Return where the rank was that hung last, the innermost call first: its main thread, not all of them."""
    stacks = [event for event in events if isinstance(event, RankStack)]
    if not stacks:
        return []
    lines = [line.strip() for line in stacks[-1].lines]
    heads = [number for number, line in enumerate(lines) if line.startswith(("Current thread", "Thread"))]
    # The last is the first thread that the program had: where it is waited for.
    calls = [line for line in lines[heads[-1] :] if line.startswith("File ")] if heads else []
    if not calls:
        return []
    return [f"rank {stacks[-1].rank} was at", *calls[:MAX_CALLS]]
