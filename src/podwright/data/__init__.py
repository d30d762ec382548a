"""Data sets: what files there are, what their labels hold, and which of them a training is given.

`Catalog` is the way in, and `podwright.catalog()` opens the user's. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podwright.data.catalog.scan import Scanned
    from podwright.data.front_door import Catalog, FindRequest, ScanRequest, ShowRequest, StatsRequest
    from podwright.data.labels.statistics import Statistics
    from podwright.data.launcher import CatalogLauncher, StartedRun
    from podwright.data.policies.folder import Policy
    from podwright.data.policies.policies import Policies, PolicyReport
    from podwright.data.progress import Advance, Progress
    from podwright.data.results import CatalogListing, DatasetColumns, Found, SelectionFiles
    from podwright.data.selecting.select import Choice
    from podwright.data.selecting.selections import Selection
    from podwright.data.tree.layouts import FileRole, Layout, TypedColumn

_HOMES = {
    "catalog.scan": "Scanned",
    "front_door": "Catalog FindRequest ScanRequest ShowRequest StatsRequest",
    "labels.statistics": "Statistics",
    "launcher": "CatalogLauncher StartedRun",
    "policies.folder": "Policy",
    "policies.policies": "Policies PolicyReport",
    "progress": "Progress Advance",
    "results": "CatalogListing DatasetColumns Found SelectionFiles",
    "selecting.select": "Choice",
    "selecting.selections": "Selection",
    "tree.layouts": "FileRole Layout TypedColumn",
}
"""The file of each public name."""

__all__ = [
    "Advance",
    "Catalog",
    "CatalogLauncher",
    "CatalogListing",
    "Choice",
    "DatasetColumns",
    "FileRole",
    "FindRequest",
    "Found",
    "Layout",
    "Policies",
    "Policy",
    "PolicyReport",
    "Progress",
    "ScanRequest",
    "Scanned",
    "Selection",
    "SelectionFiles",
    "ShowRequest",
    "StartedRun",
    "Statistics",
    "StatsRequest",
    "TypedColumn",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
