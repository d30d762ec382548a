"""A run of many points: which did best, what was varied, what the failures have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from podwright import launch, report
from podwright.console.web import rows
from podwright.console.web.answers import Page
from podwright.console.web.route import Visit
from podwright.theme import standalone

MAX_READ = 300
"""Points whose folders are read for maps, ranks and curves; of more than these the index alone tells."""
MAX_LISTED = 200
FRESH_S = 10.0


def sweep_page(visit: Visit, view: dict[str, Any], run: launch.Run, points: Sequence[launch.Run]) -> Page:
    """Show a run of many points: what came out first, then the failures by their causes, then maps and points."""
    records = [point.last_known() for point in points]
    view = {
        **view,
        "listed": [(record, rows.look_of(record)) for record in records[:MAX_LISTED]],
        "points_count": len(points),
        "open_count": sum(not record.is_final for record in records),
        "runs_at": f"{visit.base}/runs",
    }
    if len(points) > MAX_READ:
        return Page("sweep", {**view, "payload": Markup(standalone.script_json({})), "is_read": False})
    now = int(visit.desk.clock.monotonic() / FRESH_S)
    states = tuple((record.id, record.state, record.ended_at) for record in records)
    key = run.id, "points", states, None if all(record.is_final for record in records) else now
    shown = visit.desk.kept(key, lambda: report.view_of_points(points))
    payload = Markup(standalone.script_json(shown.payload))
    return Page("sweep", {**shown.view, **view, "payload": payload, "is_read": True})
