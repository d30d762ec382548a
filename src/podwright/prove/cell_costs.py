"""What a cell of a suite cost."""

from __future__ import annotations

from podwright.costs import RunBill, runs_bill
from podwright.launch import Session, find
from podwright.prove.suite_folder import find_cell
from podwright.spec import Pod
from podwright.spec.problems import refuse


def cell_bill(session: Session, ref: str, pod: Pod | None = None) -> RunBill:
    """Return what a cell of a suite cost: its results pay for the runs that failed, and warm-ups are none of it."""
    cell = find_cell(session.home, ref)
    ended = [trial.run for trial in cell.trials if trial.state and not trial.warmup]
    if not ended:
        raise refuse(f"no run of {cell.name} is over", hint=f"`podwright bench run` goes on with {cell.suite}")
    return runs_bill(cell.name, [find(session, run) for run in ended], pod)
