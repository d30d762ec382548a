"""`bench`: suites of runs, how they scale, what became slower, scores of logs, and published results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import mlperf
from podwright.cli.commands.pod.pods import read_pod
from podwright.cli.commands.prove.mlperf_pages import published_page, score_page, standing_page
from podwright.cli.commands.prove.suites import gate_page, scale_page, suite_page
from podwright.cli.options import AsJson, Target, WorkloadFile, complete_file
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.mlperf import PublishedResult, Standing
    from podwright.prove import TrialEnded
    from podwright.spec.problems import Refusal

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
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="What is judged.")] = "duration_s",
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=2, help="How many of the latest rounds are judged.")
    ] = 6,
    as_json: AsJson = False,
) -> int:
    """Say what became slower and since which image; 1 where anything did."""
    from podwright.launch import Session
    from podwright.prove import Measure, judge_suite, margin_of

    measure = Measure(metric, margin_of(margin))
    with Session.open() as session:
        verdict = judge_suite(session, suite, measure, rounds, say_ended)
    if as_json:
        output.print_json(verdict.as_json())
    else:
        print("\n".join(gate_page(verdict, output.width_of(sys.stdout))))
    return int(bool(verdict.findings))


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
    """Print the olympic mean of a set of logs; 1 where it has none."""
    score = mlperf.score_files(logs)
    if as_json:
        output.print_json(score.as_json())
    else:
        print("\n".join(score_page(score)))
    return int(score.minutes is None)


def bench_published_command(
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", metavar="NAME", help="Of this benchmark: resnet, ssd, bert, ...")
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Whose system has this in its name: dgx1.")
    ] = None,
    round_name: Annotated[str | None, typer.Option("--round", metavar="ROUND", help="v0.6 or v0.7.")] = None,
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
