"""`bench`: suites of runs, how they scale, what became slower, scores of logs, and published results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podwright import mlperf
from podwright.cli.commands.pod.pods import read_pod
from podwright.cli.commands.prove.gate_pages import gate_page, price_text
from podwright.cli.commands.prove.mlperf_pages import published_page, score_page, standing_page
from podwright.cli.commands.prove.suites import scale_page, suite_page
from podwright.cli.options import AsJson, Target, WorkloadFile, complete_file
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.mlperf import PublishedResult, Standing
    from podwright.prove import GateRequest, GateVerdict, ProofPrice, TrialEnded
    from podwright.spec.problems import Refusal

Metric = Annotated[str, typer.Option("--metric", metavar="NAME", help="What is judged.")]
Better = Annotated[
    Literal["higher", "lower"] | None,
    typer.Option("--better", help="Which way the metric is good: its name may not say."),
]
Margin = Annotated[str, typer.Option("--margin", metavar="SHARE", help="How far apart is still the same.")]


def bench_run_command(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="The suite's file.", autocompletion=complete_file)],
    again: Annotated[bool, typer.Option("--again", help="Begin a new round where the last is complete.")] = False,
    prices: Annotated[
        str | None,
        typer.Option("--prices", metavar="POD", help="A pod whose prices the report takes for runs that have none."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run what the newest round lacks, print its cells and write the report; 1 where a cell lacks runs."""
    from podwright.costs import check_priced
    from podwright.launch import Session
    from podwright.prove import plan_suite, run_suite
    from podwright.report import write_suite_report

    plan = plan_suite(suite)
    priced = read_pod(prices) if prices else None
    if priced is not None:
        check_priced(priced)
    with Session.open() as session:
        result = run_suite(session, plan, again, say_ended)
        report = write_suite_report(session, result.folder, prices=priced)
    if as_json:
        output.print_json(result.as_json())
    else:
        print("\n".join(suite_page(result, output.width_of(sys.stdout))))
    output.say("report", report.as_uri())
    return int(bool(result.missing))


def say_ended(trial: TrialEnded) -> None:
    """Say how a run ended, and whose it was."""
    order = f"{trial.number}/{trial.count}" if trial.count else ""
    output.say(trial.state, "  ".join(filter(None, [order, trial.name, trial.run])))


def bench_scale_command(
    workload: WorkloadFile,
    sizes: Annotated[str, typer.Option("--sizes", metavar="N,N,...", help="Numbers of nodes.")] = "1,2,4",
    weak: Annotated[
        bool, typer.Option("--weak", help="The work grows with the nodes; left out: it stays the same.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Runs of each size.")] = 5,
    on: Target = "local",
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="What is measured.")] = "duration_s",
    again: Annotated[bool, typer.Option("--again", help="Measure again what was measured before.")] = False,
    as_json: AsJson = False,
) -> int:
    """Measure a workload at several sizes; in turn and resumable, like a suite."""
    from podwright.launch import Session
    from podwright.prove import ScaleRequest, plan_scaling, run_suite, scaling_curve
    from podwright.report import write_suite_report

    request = ScaleRequest(workload, _sizes(sizes), "weak" if weak else "strong", repeats, on)
    plan = plan_scaling(request)
    with Session.open() as session:
        result = run_suite(session, plan, again, say_ended)
        curve = scaling_curve(result.cells, request.kind, metric)
        report = write_suite_report(session, result.folder, curve)
    if as_json:
        output.print_json(curve.as_json())
    else:
        print("\n".join(scale_page(curve)))
    output.say("report", report.as_uri())
    return int(len(curve.sizes) < len(plan.cells))


def _sizes(text: str) -> tuple[int, ...]:
    from podwright.spec.problems import refuse

    numbers = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in numbers):
        raise refuse(f"{text!r} are no numbers of nodes", hint="write them like `1,2,4`", field="--sizes")
    return tuple(map(int, numbers))


def bench_gate_command(
    suite: Annotated[
        str,
        typer.Argument(metavar="SUITE", help="A suite's file: a new round is run; a name: its history alone."),
    ],
    margin: Margin = "3%",
    metric: Metric = "duration_s",
    better: Better = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="ROUND,...", help="Rounds it is held against; left out: all since then."),
    ] = None,
    until: Annotated[
        Literal["proven"] | None, typer.Option("--until", help="Run more of what is not proven, within --budget.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="N", help="With --until: 20runs, 2h or 50EUR at most.")
    ] = None,
    allow: Annotated[
        Literal["not-proven"] | None, typer.Option("--allow", help="A verdict that ends with 0 as well.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say clean, slower, broken or not proven; only the first ends with 0."""
    from podwright.prove import GateRequest, Measure, margin_of

    request = GateRequest(Measure(metric, margin_of(margin)), better, _rounds(baseline))
    _check_until(until, budget, suite)
    verdict = _judge(suite, request, budget)
    if as_json:
        output.print_json(verdict.as_json())
    else:
        print("\n".join(gate_page(verdict, output.width_of(sys.stdout))))
    allowed = {"clean", (allow or "clean").replace("-", " ")}
    return int(verdict.verdict not in allowed)


def _judge(suite: str, request: GateRequest, budget: str | None) -> GateVerdict:
    from podwright.launch import Session
    from podwright.prove import budget_of, judge_suite, known_suite, run_gate, run_gate_until_proven

    with Session.open() as session:
        if budget is not None:
            limit, say = budget_of(budget), (say_ended, say_price)
            return run_gate_until_proven(session, Path(suite), request, limit, say)
        if _is_file(suite):
            return run_gate(session, Path(suite), request, say_ended)
        return judge_suite(session, known_suite(session.home, suite), request)


def _is_file(suite: str) -> bool:
    return suite.endswith((".yaml", ".yml"))


def _rounds(text: str | None) -> tuple[int, ...]:
    from podwright.spec.problems import refuse

    words = [word.strip() for word in text.split(",")] if text is not None else []
    if not all(word.isdecimal() and 0 < int(word) < 10**9 for word in words):
        raise refuse(f"{text!r} are no rounds", hint="write them like `3,4`", field="--baseline")
    return tuple(map(int, words))


def _check_until(until: str | None, budget: str | None, suite: str) -> None:
    from podwright.spec.problems import refuse

    if (until is None) != (budget is None):
        hint = "write `--until proven --budget 20runs`, or 2h, or 50EUR"
        raise refuse("one wants the other", hint=hint, field="--budget" if budget is None else "--until")
    if until is not None and not _is_file(suite):
        hint = "name the suite's file: a new round is run, and more of it"
        raise refuse("a name shows the history alone", hint=hint, field="--until")


def say_price(price: ProofPrice) -> None:
    """Say what the next look takes, before it."""
    output.say("price", price_text(price))


def bench_accept_command(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's name.")],
    cell: Annotated[str, typer.Argument(metavar="CELL", help="As many parts of its name as tell it from the others.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why the new level is right.")],
    margin: Margin = "3%",
    metric: Metric = "duration_s",
    better: Better = None,
    as_json: AsJson = False,
) -> None:
    """Note that a cell's level has changed for a good reason; later rounds are held against the new one."""
    from podwright.launch import Session
    from podwright.prove import GateRequest, Measure, accept_change, margin_of

    request = GateRequest(Measure(metric, margin_of(margin)), better)
    with Session.open() as session:
        change = accept_change(session, suite, cell, reason, request)
    if as_json:
        return output.print_json(change.as_json())
    text = f"{change.key.name} from round {change.round} on: {change.reason}"
    return print("\n".join(output.aligned("accepted", text, sys.stdout)))


def bench_system_command(
    pod: Annotated[
        str, typer.Argument(metavar="POD", help="A pod's file, or a known pod's name.", autocompletion=complete_file)
    ],
    submitter: Annotated[str, typer.Option("--submitter", metavar="NAME", help="Who hands it in.")] = "",
    framework: Annotated[str, typer.Option("--framework", metavar="NAME", help="Such as PyTorch 2.4.")] = "",
    system: Annotated[str, typer.Option("--os", metavar="NAME", help="The operating system.")] = "",
) -> None:
    """Print the system description as MLPerf's checker wants it."""
    output.print_json(mlperf.describe_system(read_pod(pod), submitter, framework, system))


def bench_score_command(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs of one benchmark, a file for each run.")],
    as_json: AsJson = False,
) -> int:
    """Print the olympic mean of a set of logs; 1 where it has none, 2 where MLPerf's checker refuses a log."""
    score = mlperf.score_files(logs)
    if as_json:
        output.print_json(score.as_json())
    else:
        print("\n".join(score_page(score)))
    if score.refused:
        return 2
    return int(score.minutes is None)


def bench_published_command(
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", metavar="NAME", help="Of this benchmark: resnet, ssd, bert, ...")
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Whose system has this in its name: dgx1.")
    ] = None,
    round_name: Annotated[
        str | None, typer.Option("--round", metavar="ROUND", help="Of this round: v0.6, v5.1, ...")
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option("--beside", metavar="A", help="Place a run, a cell or a file of samples (seconds) beside them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List published results; `--beside` says how far a time of one's own is from each."""
    results = mlperf.select_results(benchmark, system, round_name)
    if not results:
        raise _none_such(benchmark, system, round_name)
    if beside is None:
        if as_json:
            return output.print_json([result.as_json() for result in results])
        return print("\n".join(published_page(results)))
    standings = _standings(beside, results)
    if as_json:
        return output.print_json([standing.as_json() for standing in standings])
    return print("\n".join(standing_page(standings)))


def _none_such(benchmark: str | None, system: str | None, round_name: str | None) -> Refusal:
    from podwright.spec.nearest import one_of
    from podwright.spec.problems import refuse

    names = sorted({result.benchmark for result in mlperf.published_results()})
    if benchmark is not None and benchmark not in names:
        return refuse(f"there is no benchmark {benchmark!r}", hint=one_of(benchmark, "benchmark", names))
    asked = " ".join(filter(None, (benchmark, system, round_name)))
    return refuse(f"nothing published fits {asked!r}", hint="`podwright bench published` lists all")


def _standings(ref: str, results: Sequence[PublishedResult]) -> list[Standing]:
    from podwright.launch import Session
    from podwright.prove import side_of
    from podwright.spec.problems import Refusal

    with Session.open() as session:
        try:
            side = side_of(session, ref, "time_to_train_s")
        except Refusal:
            side = side_of(session, ref)
    minutes = [sample / 60 for sample in side.samples]
    return [mlperf.standing_of(minutes, result) for result in results]
