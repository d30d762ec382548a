"""What lies above this floor and is handed to it: who starts runs and finds them, and knows the catalogs of pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from podwright.data.catalog.history import Keep
    from podwright.spec import Workload


class StartedRun(Protocol):
    """What is needed of a run."""

    id: str
    folder: Any

    def wait(self, timeout_s: float | None = None) -> Any:
        """Wait until it has ended, and return its record."""

    def pull(self, paths: Sequence[str], to: Path) -> Any:
        """Copy paths of its folder to another, below its id."""


Start = Callable[["Workload", str], StartedRun]
FindRun = Callable[[str], StartedRun]


class CatalogLauncher(Protocol):
    """What a catalog asks of launch."""

    def start(self, workload: Workload, target: str) -> StartedRun:
        """Start a workload on a target."""

    def find(self, ref: str) -> StartedRun:
        """Return the run that a user means."""

    def catalog_of(self, pod: str) -> str:
        """Return the address of the catalog that a pod's file names, or refuse a pod that names none."""

    def history(self) -> Keep:
        """Return how much of a dataset's history the home's settings keep."""
