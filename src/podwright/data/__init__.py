"""Data sets: what files there are, what their labels hold, and which of them a training is given.

`Catalog` is the way in, and `podwright.catalog()` opens the user's. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.data.catalog.carry import Accept
    from podwright.data.catalog.description import FileDescription
    from podwright.data.catalog.history import Keep
    from podwright.data.catalog.scan import Scanned
    from podwright.data.exchange.exporting import Exported
    from podwright.data.exchange.importing import Imported
    from podwright.data.front_door import Catalog
    from podwright.data.labels.statistics import Statistics
    from podwright.data.launcher import CatalogLauncher, StartedRun
    from podwright.data.policies.folder import Policy
    from podwright.data.policies.policies import Policies, PolicyReport
    from podwright.data.progress import Advance, Progress
    from podwright.data.requests import FindRequest, FurtherRoots, ScanRequest, ShowRequest, StatsRequest
    from podwright.data.results import CatalogListing, DatasetColumns, Found, SelectionFiles
    from podwright.data.selecting.gallery import Gallery
    from podwright.data.selecting.select import Choice
    from podwright.data.selecting.selections import Selection
    from podwright.data.similar.known import Vectors
    from podwright.data.similar.listing import Similar
    from podwright.data.tree.layouts import FileRole, Layout, TypedColumn

__all__ = [
    "Accept",
    "Advance",
    "Catalog",
    "CatalogLauncher",
    "CatalogListing",
    "Choice",
    "DatasetColumns",
    "Exported",
    "FileDescription",
    "FileRole",
    "FindRequest",
    "Found",
    "FurtherRoots",
    "Gallery",
    "Imported",
    "Keep",
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
    "Similar",
    "StartedRun",
    "Statistics",
    "StatsRequest",
    "TypedColumn",
    "Vectors",
]

__getattr__ = late_names(__name__, __file__)
