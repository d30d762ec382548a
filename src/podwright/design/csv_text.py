"""CSV as spreadsheets, NetBox and UFM take it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def write_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
