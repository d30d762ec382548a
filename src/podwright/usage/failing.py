"""Which nodes of a pod its failures have in common, by the runs of this home and those that colleagues share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.analysis.lemons import LemonNode, lemons
from podwright.launch import recent
from podwright.launch.shared_runs import EVERYBODY, listed

if TYPE_CHECKING:
    from podwright.launch import Session
    from podwright.runs import Record
    from podwright.spec import Pod

MAX_FAILURES = 50
_FAILED = ("failed", "lost")


def lemon_nodes(session: Session, pod: Pod, most: int = MAX_FAILURES) -> list[LemonNode]:
    """Return how the last failures of a pod are spread over its nodes; a run that knows no hosts says nothing."""
    failed = [record for record in recent(session, None) if _is_failure(record, pod)]
    failed += [record for record in listed(session.home, EVERYBODY) if _is_failure(record, pod)]
    newest = sorted(failed, key=lambda record: record.ended_at or record.created_at)[-most:]
    known = set(pod.hosts())
    groups = [known.intersection(record.hosts) for record in newest]
    nodes = sum(len(group.hosts) for group in pod.nodes if "compute" in group.roles)
    return lemons([hosts for hosts in groups if hosts], nodes or len(known))


def _is_failure(record: Record, pod: Pod) -> bool:
    return record.state in _FAILED and record.target.partition(":")[0] == pod.name and bool(record.hosts)
