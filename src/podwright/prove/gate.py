"""The gate of a suite: four verdicts on its newest round, none of which comes by accident."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from podwright.analysis.causes import Cause, causes_of
from podwright.analysis.comparison import MIN_DECIDED
from podwright.analysis.figures import less_is_better
from podwright.analysis.gate_rule import CLEAN, NOT_PROVEN, SLOWER, CellJudged, GateRule, judge_rounds
from podwright.launch import Session, commits_between
from podwright.prove.sides import DURATION, Measure, cell_traits
from podwright.prove.suite_folder import Accepted, Cell, CellKey, SuiteFolder, Trial, histories, known_suite
from podwright.spec.problems import refuse

BROKEN = "broken"
_WORST = (BROKEN, SLOWER, NOT_PROVEN, CLEAN)
MISSING = "missing"


@dataclass(frozen=True)
class GateRequest:
    """What is judged, which way is good, and by which rounds; without rounds: all since the last accepted change."""

    measure: Measure = DURATION
    better: str | None = None
    baseline: tuple[int, ...] = ()
    looks: int = 1
    """How often the newest round is looked at while runs are added to it."""


def check_direction(request: GateRequest) -> str:
    """Return `lower` or `higher`: what the user said, else the metric's name; refuse one that does not say."""
    if request.better in ("lower", "higher"):
        return request.better
    less = less_is_better(request.measure.metric)
    if less is None:
        hint = "say which: `--better higher` or `--better lower`"
        raise refuse(f"nobody knows which way {request.measure.metric} is good", hint=hint, field="--better")
    return "lower" if less else "higher"


@dataclass(frozen=True)
class BrokenCell:
    """Runs of a cell of the newest round that failed, are missing or missed their goal."""

    key: CellKey
    state: str
    count: int

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench gate` lists it."""
        return {"cell": self.key.name, "state": self.state, "count": self.count}


@dataclass(frozen=True)
class CellVerdict:
    """What the rule says of one cell, whose rounds these are."""

    name: str
    history: tuple[Cell, ...]
    judged: CellJudged
    causes: tuple[Cause, ...] = ()
    commits: tuple[str, ...] = ()

    @property
    def since(self) -> Cell | None:
        """Return the first round that was slower."""
        return None if self.judged.since is None else self.history[self.judged.since]

    @property
    def before(self) -> tuple[Cell, ...]:
        """Return the rounds that the newest, or the slower ones, were held against."""
        return self.history[: self.judged.since if self.judged.since is not None else -1]

    @property
    def same_version(self) -> bool:
        """Tell whether the image, or the code, is the one that was good: then it is not to blame."""
        since = self.since
        return since is not None and since.version == self.before[-1].version != ""

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench gate` lists it."""
        judged, since = self.judged, self.since
        row = {name: getattr(judged, name) for name in ("ratio", "interval", "p", "n", "needed", "smallest_seen")}
        row |= {"cell": self.name, "verdict": judged.verdict, "baseline": [cell.round for cell in self.before]}
        if since is None:
            return row
        first, last = (self.history[at].round for at in judged.between)
        return row | {
            "since": since.version or None,
            "round": since.round,
            "rounds": [first, last],
            "commits": list(self.commits),
            "same_version": self.same_version,
            "causes": [asdict(cause) for cause in self.causes],
        }


@dataclass(frozen=True)
class GateVerdict:
    """What the gate says of a suite."""

    suite: str
    rounds: int
    cells: tuple[CellVerdict, ...]
    broken: tuple[BrokenCell, ...]
    accepted: tuple[Accepted, ...]
    metric: str
    direction: str
    margin: float

    @property
    def verdict(self) -> str:
        """Return the worst that is said of any cell."""
        said = {cell.judged.verdict for cell in self.cells} | ({BROKEN} if self.broken else set())
        return next((word for word in _WORST if word in said), NOT_PROVEN)

    @property
    def findings(self) -> list[CellVerdict]:
        """Return the cells that became slower."""
        return [cell for cell in self.cells if cell.judged.verdict == SLOWER]

    @property
    def undecided(self) -> list[CellVerdict]:
        """Return the cells of which nothing is proven."""
        return [cell for cell in self.cells if cell.judged.verdict == NOT_PROVEN]

    @property
    def smallest_seen(self) -> float | None:
        """Return the smallest change that would have been found in whichever cell; None where one cannot find any."""
        known = [cell.judged.smallest_seen for cell in self.cells]
        return None if None in known or not known else max(filter(None, known))

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench gate`."""
        baseline: set[int] = set()
        for verdict in self.cells:
            baseline.update(cell.round for cell in verdict.before)
        return {
            "verdict": self.verdict,
            "findings": [cell.as_json() for cell in self.findings],
            "needed": max((cell.judged.needed or 0 for cell in self.undecided), default=0) or None,
            "smallest_seen": self.smallest_seen,
            "metric": self.metric,
            "direction": self.direction,
            "margin": self.margin,
            "baseline": sorted(baseline),
            "accepted": [change.as_json() for change in self.accepted],
            "broken": [cell.as_json() for cell in self.broken],
            "cells": [cell.as_json() for cell in self.cells],
            "suite": self.suite,
            "rounds": self.rounds,
        }


def judge_suite(session: Session, folder: SuiteFolder, request: GateRequest) -> GateVerdict:
    """Judge the newest round of a suite, cell by cell, by the rounds before it; nothing is run."""
    direction, metric, newest = check_direction(request), request.measure.metric, folder.round()
    known = histories(folder)
    _check_told(known, metric, folder.name)
    planned = {replace(key, image="") for key in folder.planned(newest)}
    # A cell that the suite's file has no more is not missing: somebody took it out.
    cells = {key: history for key, history in known.items() if not planned or key in planned}
    accepted = _last_accepted(folder, cells)
    rule = GateRule(direction == "lower", request.measure.margin, max(1, len(cells)), request.looks)
    verdicts = []
    for key, history in cells.items():
        since = accepted[key].round if key in accepted else 1
        rounds = _measured(history, metric, since, request.baseline)
        verdict = _judged(key, rounds, metric, rule, folder.name)
        verdicts.append(_explained(session, verdict))
    return GateVerdict(
        folder.name,
        max(map(len, cells.values()), default=0),
        tuple(verdicts),
        tuple(_broken(folder, known, newest)),
        tuple(accepted.values()),
        metric,
        direction,
        request.measure.margin,
    )


def _check_told(known: Mapping[CellKey, Sequence[Cell]], metric: str, suite: str) -> None:
    """Refuse a metric that no run told; of a suite that never succeeded there is another thing to say."""
    cells = chain.from_iterable(known.values())
    told = set(chain.from_iterable(cell.metrics() for cell in cells))
    if told and metric not in told:
        raise refuse(f"no run of {suite} told {metric}", hint=f"they told {', '.join(sorted(told))}", field="--metric")


def _last_accepted(folder: SuiteFolder, cells: Mapping[CellKey, object]) -> dict[CellKey, Accepted]:
    return {change.key: change for change in folder.accepted() if change.key in cells}


def _measured(history: Sequence[Cell], metric: str, since: int, baseline: Sequence[int]) -> list[Cell]:
    """Return the rounds that have samples: those since the last accepted change, or the pinned ones and the newest."""
    rounds = [cell for cell in history if _samples(cell, metric)]
    for cell in rounds:
        cell.check_pure()
    if not baseline:
        return [cell for cell in rounds if cell.round >= since]
    pinned = [cell for cell in rounds if cell.round in baseline and cell.round != history[-1].round]
    samples = sum(len(cell.values(metric)) for cell in pinned)
    if samples < MIN_DECIDED:
        message = f"{history[-1].key.name} has {samples} samples of {metric} in {_listed(baseline)}"
        raise refuse(message, hint=f"a baseline has {MIN_DECIDED} or more", field="--baseline")
    return [*pinned, rounds[-1]]


def _samples(cell: Cell, metric: str) -> list[float]:
    return [value for value in cell.values(metric) if 0 < value < math.inf]


def _listed(rounds: Sequence[int]) -> str:
    numbers = ", ".join(map(str, rounds))
    return f"round {numbers}" if len(rounds) == 1 else f"rounds {numbers}"


def _judged(key: CellKey, rounds: Sequence[Cell], metric: str, rule: GateRule, suite: str) -> CellVerdict:
    samples = [_samples(cell, metric) for cell in rounds]
    return CellVerdict(f"{suite}/{key.name}", tuple(rounds), judge_rounds(samples, rule))


def _explained(session: Session, verdict: CellVerdict) -> CellVerdict:
    """Return a slowdown with what differs since, and the commits that came between."""
    since = verdict.since
    if since is None:
        return verdict
    before = verdict.before[-1]
    causes = causes_of(cell_traits(session, before), cell_traits(session, since))
    good, bad = (_last_counted(cell) for cell in (before, since))
    commits: list[str] = []
    if good and bad and good.commit and bad.commit and bad.folder:
        commits = commits_between(Path(bad.folder), good.commit, bad.commit)
    return replace(verdict, causes=tuple(causes), commits=tuple(commits))


def _last_counted(cell: Cell) -> Trial | None:
    return next((trial for trial in reversed(cell.trials) if trial.counts), None)


def _broken(folder: SuiteFolder, known: Mapping[CellKey, Sequence[Cell]], newest: int) -> Iterator[BrokenCell]:
    """Yield what the newest round lacks; a failure that was made good since is none."""
    current = {cell.key: cell for cell in folder.cells(newest)}
    planned = folder.planned(newest) or _of_last_round(known, current)
    for key, due in planned.items():
        trials = [trial for trial in current[key].trials if not trial.warmup] if key in current else []
        ends = Counter(trial.end for trial in trials)
        good = ends.pop("succeeded", 0)
        if good >= due and not ends.get("missed its goal"):
            continue
        yield from (BrokenCell(key, state, count) for state, count in ends.items())
        lacking = due - good - ends.total()
        if lacking > 0:
            yield BrokenCell(key, MISSING, lacking)


def _of_last_round(known: Mapping[CellKey, Sequence[Cell]], current: Mapping[CellKey, Cell]) -> dict[CellKey, int]:
    """Return what a round of an old journal should have had: one good run of whatever ran before."""
    keys = {cell.key for cell in chain.from_iterable(known.values()) if not cell.key.image}
    return dict.fromkeys([*current, *sorted(keys - current.keys())], 1)


def accept_change(session: Session, suite: str, cell: str, reason: str, request: GateRequest) -> Accepted:
    """Note that a cell's level has changed for a good reason: later rounds are held against it.

    The new level begins with the last round that may have been its first: those before it may still be of the old one.
    """
    folder = known_suite(session.home, suite)
    if not reason.strip():
        raise refuse("says nothing", hint="write why, for whoever reads it in a year", field="--reason")
    verdicts = {verdict.name.partition("/")[2]: verdict for verdict in judge_suite(session, folder, request).cells}
    fitting = [name for name in verdicts if set(cell.strip("/").split("/")) <= set(name.split("/"))]
    if len(fitting) != 1:
        raise refuse(f"{suite} has {len(fitting)} cells {cell!r}", hint=f"its cells are {', '.join(verdicts)}")
    verdict = verdicts[fitting[0]]
    if not verdict.history:
        raise refuse(f"{fitting[0]} has no samples of {request.measure.metric}", field="--metric")
    changed = verdict.history[-1 if verdict.since is None else verdict.judged.between[1]]
    key = replace(changed.key, image="")
    folder.note("accepted", cell=asdict(key), round=changed.round, reason=reason)
    return Accepted(key, changed.round, reason)
