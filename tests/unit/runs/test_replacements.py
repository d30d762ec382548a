"""Nodes that were replaced, from what the pilots wrote."""

from __future__ import annotations

from podwright.runs.event_reader import parse_event
from podwright.runs.replacements import replacements


def test_every_later_start_of_a_node_is_a_replacement() -> None:
    starts = [(1.0, 0, "n1"), (1.0, 1, "n2"), (9.0, 1, "n3"), (7.0, 0, "n1")]
    rows = [{"t": t, "e": [0, 0], "n": node, "k": "pilot", "host": host} for t, node, host in starts]
    events = [event for event in map(parse_event, rows) if event is not None]
    assert [(row.node, row.time, row.before, row.host) for row in replacements(events)] == [
        (0, 7.0, "n1", "n1"),
        (1, 9.0, "n2", "n3"),
    ]
