"""A run as a card in a notebook."""

from __future__ import annotations

from html import escape

from podwright.runs import Record
from podwright.theme import words

COLOURS = {"succeeded": "#1f7a4d", "failed": "#b3261e", "lost": "#b3261e", "cancelled": "#6b7280"}
BUSY = "#2f6fb2"


def card(record: Record) -> str:
    """Return what is known of a run, as HTML that brings its own look."""
    colour = COLOURS.get(record.state, BUSY)
    rows = [("target", f"{record.target}, {words.count(record.nodes, 'node')}")]
    if record.duration_s is not None:
        rows.append(("took", words.duration(record.duration_s)))
    if record.reason:
        rows.append(("reason", record.reason))
    rows += [(name, words.value(value)) for name, value in list(record.results.items())[:8]]
    cells = "".join(
        f'<tr><td style="opacity:.65;padding-right:1em">{escape(name)}</td><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    head = f'<b>{escape(record.id)}</b> <span style="color:{colour}">{escape(record.state)}</span>'
    frame = "display:inline-block;border:1px solid #8886;border-radius:6px;padding:.6em 1em;font-family:sans-serif"
    return f'<div style="{frame}">{head}<table style="margin-top:.4em">{cells}</table></div>'
