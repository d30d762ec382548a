"""The gate that runs: a new round of a suite, and more of it until a verdict is proven or the budget is spent."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

from podwright.analysis.comparison import looks
from podwright.launch import Session
from podwright.prove.gate import BROKEN, GateRequest, GateVerdict, check_direction, judge_suite
from podwright.prove.price import ProofPrice, RunCost, cost_of_record, priced
from podwright.prove.suite_folder import CellKey, SuiteFolder
from podwright.prove.suites import (
    Progress,
    SuitePlan,
    TrialEnded,
    alone,
    ignore,
    in_turn,
    plan_suite,
    run_suite,
    run_trial,
)
from podwright.spec.problems import Refusal, refuse, short
from podwright.spec.quantity import duration_s

LOOKS = 3
"""How often a round is looked at: with its repeats, twice and four times as many."""
_RUNS = re.compile(r"(\d+)\s*runs?", re.ASCII)
_MONEY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Z]{3})", re.ASCII)


@dataclass(frozen=True)
class Budget:
    """What proving may take: one of runs, seconds, or an amount of a currency."""

    runs: float = math.inf
    seconds: float = math.inf
    amount: float = math.inf
    currency: str = ""


def budget_of(text: str) -> Budget:
    """Return the budget that `20runs`, `2h` or `50EUR` means."""
    runs, money = _RUNS.fullmatch(text.strip()), _MONEY.fullmatch(text.strip())
    if runs is not None and int(runs[1]):
        return Budget(runs=int(runs[1]))
    if money is not None and float(money[1]):
        return Budget(amount=float(money[1]), currency=money[2])
    seconds = 0.0
    with suppress(Refusal):
        seconds = duration_s(text)
    if seconds <= 0:
        raise refuse(f"{short(text)!r} is no budget", hint="write it like `20runs`, `2h` or `50EUR`", field="--budget")
    return Budget(seconds=seconds)


Priced = Callable[[ProofPrice], None]


def run_gate(session: Session, path: Path, request: GateRequest, progress: Progress = ignore) -> GateVerdict:
    """Run a new round of a suite's file, and judge it."""
    plan = plan_suite(path)
    check_direction(request)
    folder = run_suite(session, plan, again=True, progress=progress).folder
    return judge_suite(session, folder, request)


def run_gate_until_proven(
    session: Session, path: Path, request: GateRequest, budget: Budget, say: tuple[Progress, Priced]
) -> GateVerdict:
    """Run a new round, then more of each cell that is not proven, look by look; each look's price is said before it.

    How often it may be looked at is fixed before the first run, and each look has its part of the chance of an error.
    """
    progress, say_price = say
    plan, request = plan_suite(path), replace(request, looks=LOOKS)
    check_direction(request)
    folder = run_suite(session, plan, again=True, progress=progress).folder
    spent = _Spent(session, folder, time.monotonic())
    repeats = plan.suite.repeats
    for count in looks(repeats, repeats * 2 ** (LOOKS - 1))[1:LOOKS]:
        verdict = judge_suite(session, folder, request)
        due = _due(plan, folder, verdict, count)
        if verdict.verdict == BROKEN or not due:
            return verdict
        price = spent.price(sum(due.values()))
        if budget.currency and (price.amount is None or price.currency != budget.currency):
            why = f"prices are in {price.currency}" if price.currency else "these runs have no price"
            raise refuse(why, hint="give the budget in runs or in time: `20runs`, `2h`", field="--budget")
        say_price(price)
        with alone(folder):
            for key in in_turn(due, plan.suite.order):
                if spent.is_over(budget):
                    return judge_suite(session, folder, request)
                run_id, state = run_trial(session, folder, plan.cells[key], key, folder.round())
                spent.runs.append(run_id)
                progress(TrialEnded(key.name, run_id, state))
    return judge_suite(session, folder, request)


def _due(plan: SuitePlan, folder: SuiteFolder, verdict: GateVerdict, count: int) -> dict[CellKey, int]:
    """Return how many runs each cell lacks that is not proven; a first round has nothing that it could be held to."""
    open_cells = {cell.history[-1].key for cell in verdict.undecided if len(cell.history) > 1}
    have = {cell.key: len(cell.runs) for cell in folder.cells()}
    due = {key: count - have.get(key, 0) for key in plan.cells if key in open_cells}
    return {key: lacking for key, lacking in due.items() if lacking > 0}


class _Spent:
    """What proving took so far."""

    def __init__(self, session: Session, folder: SuiteFolder, began: float) -> None:
        self.session, self.folder, self.began = session, folder, began
        self.runs: list[str] = []

    def price(self, runs: int) -> ProofPrice:
        """Return what so many runs take by those of the newest round."""
        cells = self.folder.cells()
        seconds = list(chain.from_iterable(cell.values("duration_s") for cell in cells))
        costs = list(map(self._cost, chain.from_iterable(cell.runs for cell in cells)))
        return priced(runs, fmean(seconds or [0.0]) * runs, costs)

    def _cost(self, run: str) -> RunCost:
        home = self.session.home
        return cost_of_record(home.read_anyway(run)) if home.has(run) else (None, "")

    def is_over(self, budget: Budget) -> bool:
        """Tell whether the next run would go beyond the budget."""
        paid = sum(self._cost(run)[0] or 0.0 for run in self.runs)
        each = self.price(1)
        return (
            len(self.runs) + 1 > budget.runs
            or time.monotonic() - self.began + each.seconds > budget.seconds
            or paid + (each.amount or 0.0) > budget.amount
        )
