"""What a page is made of, as far as a test says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podwright.analysis.data import ReportData
from podwright.runs.record import from_row, parse_asked

RECORD = {"id": "x", "name": "x", "target": "local", "state": "pending", "folder": "/x", "nodes": 0, "world_size": 0}
ASKED = {"id": "x", "name": "x", "target": "local", "engine": "", "nodes": 0, "ranks_per_node": 0}


def made(
    record: Mapping[str, Any], asked: Mapping[str, Any] | None = None, read_at: float = 0.0, **more: Any
) -> ReportData:
    """Return the data of a record as record.json has it and of what run.json says; a time that is not given is 0."""
    row = RECORD | {"created_at": "1970-01-01T00:00:00Z"} | dict(record)
    request = ASKED | {"created_at": 0.0, "workload": {}} | dict(asked or {})
    return ReportData(from_row(row), parse_asked(request), read_at, **more)
