"""What a catalog of datasets is handed of launch: runs that it starts or a user names, and the catalogs of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.data import Keep
from podwright.launch import Session, find, pods, start
from podwright.launch.settings import read_settings
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch import Run
    from podwright.spec import Workload


class SessionLauncher:
    """Answers a catalog out of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def start(self, workload: Workload, target: str) -> Run:
        """Start a workload on a target."""
        return start(self._session, workload, target)

    def find(self, ref: str) -> Run:
        """Return the run that a user means."""
        return find(self._session, ref)

    def history(self) -> Keep:
        """Return how much of a dataset's history the home's settings keep."""
        kept = read_settings(self._session.home.path).history
        return Keep(kept.keep, kept.bytes)

    def catalog_of(self, pod: str) -> str:
        """Return the address of the catalog that a pod's file names, or refuse a pod that names none."""
        described = pods.find(self._session.home, pod)
        if described.catalog is None:
            message, hint = f"the pod {described.name} has none", "write `catalog: clickhouse://HOST:8123/DATABASE`"
            raise refuse(message, hint=hint, field="catalog", file=str(described.path))
        return described.catalog
