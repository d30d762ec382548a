"""What the runs of a pod cost this month, by the runs of this home and those that colleagues share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podwright.costs.budgets import Charge, Month, Spending, spending
from podwright.launch import find, recent, records_anyway
from podwright.launch.shared_runs import EVERYBODY, listed

if TYPE_CHECKING:
    from podwright.launch import Session
    from podwright.runs import Record, RunFolder
    from podwright.spec import Pod


def spent(session: Session, pod: Pod, now: float) -> Spending:
    """Return what the teams of a pod spent this month; a run that still goes on counts with what it held so far."""
    month = Month.of(now)
    return spending(pod, _charges(session, pod, month), now)


def _charges(session: Session, pod: Pod, month: Month) -> Iterator[Charge]:
    for record in recent(session, None):
        if _concerns(record, pod, month):
            run = find(session, record.id)
            whole, points = records_anyway(run)
            folders = {part.id: part.folder for part in run.parts()}
            for part in points or [whole]:
                yield from _charge(part, folders.get(part.id), pod, month.now)
    for record in listed(session.home, EVERYBODY):
        if _concerns(record, pod, month):
            # Who its owner is says the folder, and the team of that person says the pod, not what they wrote.
            team = pod.team_of(record.user)
            yield from _charge(replace(record, team=team.name if team else None), None, pod, month.now)


def _concerns(record: Record, pod: Pod, month: Month) -> bool:
    """Tell whether a run went to this pod and may have held its nodes this month."""
    is_here = record.target.partition(":")[0] == pod.name
    return is_here and (record.ended_at is None or record.ended_at >= month.began)


def _charge(record: Record, folder: RunFolder | None, pod: Pod, now: float) -> Iterator[Charge]:
    if record.started_at is None:
        return
    ended = record.ended_at or now
    yield Charge(record.team, record.started_at, ended, record.cost or _cost(record, folder, pod, ended))


def _cost(record: Record, folder: RunFolder | None, pod: Pod, ended: float) -> dict[str, Any] | None:
    """Return what a run without a cost has cost up to now, as far as its own folder tells."""
    from podwright.costs.run_costs import cost_of_run

    if folder is None:
        return None
    return cost_of_run(folder, replace(record, ended_at=ended), pod).as_cost()
