"""Where a run lies on its cluster, from what was written down before it started."""

from __future__ import annotations

from typing import Any

from podwright.engines.site import read_site
from podwright.runs import RunFolder


def site_of(folder: RunFolder) -> dict[str, Any]:
    """Return how a run's cluster is reached again."""
    return read_site(folder.job_path, {"folder": str, "step": list, "wrap": list})


def run_path(folder: RunFolder) -> str:
    """Return the run's folder on the cluster."""
    return f"{site_of(folder)['folder']}/runs/{folder.id}"
