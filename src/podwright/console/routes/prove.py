"""Suites: what their newest round came to, whether anything became slower, and how a workload scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podwright import prove, report
from podwright.console.web.answers import Answer, JsonAnswer, Page
from podwright.console.web.route import Nothing, Visit
from podwright.spec.problems import Refusal, refuse

SCALES = "scale-"
"""How the suites begin that measure one workload at several sizes; their kind follows."""
LOOKS = {"clean": "succeeded", "slower": "failed", "broken": "failed", "not proven": "missed"}


@dataclass(frozen=True)
class SuiteNamed:
    """A suite."""

    suite: str


@dataclass(frozen=True)
class GateAsked:
    """A suite, what of its runs is judged, and how far apart is still the same."""

    suite: str
    metric: str = "duration_s"
    margin: str = "3%"
    better: str = ""

    def request(self) -> prove.GateRequest:
        """Return it as the door of proofs is asked."""
        return prove.GateRequest(prove.Measure(self.metric, prove.margin_of(self.margin)), self.better or None)


@dataclass(frozen=True)
class SuiteRow:
    """A suite as the list shows it; `why` is what keeps the gate from judging it."""

    result: prove.SuiteResult
    verdict: str = ""
    look: str = "pending"
    why: str = ""


def _folder(visit: Visit, name: str) -> prove.SuiteFolder:
    try:
        return prove.known_suite(visit.desk.session.home, name)
    except Refusal as refusal:
        raise Refusal(refusal.problems, exit_code=1) from None


def _result(visit: Visit, name: str) -> prove.SuiteResult:
    return prove.suite_result(_folder(visit, name))


def list_suites(visit: Visit, asked: Nothing) -> Answer:
    """Return what the newest round of each suite came to, as `bench run --json` has it of one."""
    return JsonAnswer([_result(visit, name).as_json() for name in prove.suite_names(visit.desk.session.home)])


def show_suite(visit: Visit, asked: SuiteNamed) -> Answer:
    """Return what the newest round of a suite came to, as `bench run --json` has it."""
    return JsonAnswer(_result(visit, asked.suite).as_json())


def gate_of_suite(visit: Visit, asked: GateAsked) -> Answer:
    """Return what the gate says of a suite, as `bench gate --json` has it."""
    return JsonAnswer(_judged(visit, asked).as_json())


def scaling_of_suite(visit: Visit, asked: SuiteNamed) -> Answer:
    """Return how a workload scales, as `bench scale --json` has it."""
    curve = _curve(_result(visit, asked.suite))
    if curve is None:
        raise refuse(f"{asked.suite} measures no scaling", "`podwright bench scale` does", "suite", exit_code=1)
    return JsonAnswer(curve.as_json())


def _judged(visit: Visit, asked: GateAsked) -> prove.GateVerdict:
    folder = _folder(visit, asked.suite)
    size = folder.journal.path.stat().st_size
    return visit.desk.kept(
        ("gate", asked, size), lambda: prove.judge_suite(visit.desk.session, folder, asked.request())
    )


def _curve(result: prove.SuiteResult) -> prove.ScalingCurve | None:
    kind = result.folder.name.removeprefix(SCALES).partition("-")[0]
    if not result.folder.name.startswith(SCALES) or not any(cell.runs for cell in result.cells):
        return None
    return prove.scaling_curve(result.cells, kind)


def prove_page(visit: Visit, asked: Nothing) -> Answer:
    """Show all suites, each with the gate's verdict."""
    suites = [_row(visit, name) for name in prove.suite_names(visit.desk.session.home)]
    bad = [row.result.folder.name for row in suites if row.look == "failed"]
    verdict = "No suite is slower than it was."
    if not suites:
        verdict = "Nothing is measured over time yet."
    elif bad:
        verdict = f"{', '.join(bad)} {'is' if len(bad) == 1 else 'are'} slower or broken."
    return Page("prove", {"title": "Prove", "suites": suites, "verdict": verdict})


def _row(visit: Visit, name: str) -> SuiteRow:
    result = _result(visit, name)
    try:
        verdict = _judged(visit, GateAsked(name)).verdict
    except Refusal as refusal:
        return SuiteRow(result, why=str(refusal.problems[0]))
    return SuiteRow(result, verdict, LOOKS.get(verdict, "pending"))


def suite_page(visit: Visit, asked: GateAsked) -> Answer:
    """Show a suite: the gate's verdict, its rounds, how it scales, times of all cells, what may be concluded."""
    result = _result(visit, asked.suite)
    view: dict[str, Any] = {"problems": (), "gate": None, "history": [], "look": "pending", "metric": asked.metric}
    try:
        gate = _judged(visit, asked)
        view |= {"gate": gate, "look": LOOKS.get(gate.verdict, "pending")}
        view["sentence"] = prove.gate_sentence(gate)
        view["history"] = report.history_of(result.folder, gate)
    except Refusal as refusal:
        view["problems"] = refusal.problems
    size = result.folder.journal.path.stat().st_size
    shown = visit.desk.kept(
        ("suite", asked.suite, size),
        lambda: report.view_of_suite(visit.desk.session, result.folder, _curve(result)),
    )
    return Page("suite", {**shown.view, **view, "result": result, "asked": asked})
