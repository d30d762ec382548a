"""`bench`: suites of runs, their scores, and published results beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.prove.published import PublishedResult, Standing
    from podwright.prove.score import Score
    from podwright.spec.problems import Refusal


def bench_score_command(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs of one benchmark, a file for each run.")],
    as_json: AsJson = False,
) -> int:
    """Print the olympic mean of a set of logs; 1 where it has none."""
    from podwright.prove.score import score_files

    score = score_files(logs)
    if as_json:
        output.print_json(score.as_json())
    else:
        print("\n".join(score_page(score)))
    return int(score.minutes is None)


def score_page(score: Score) -> Iterator[str]:
    """Lay the score out: the sentence first, then each run with its parts."""
    from podwright.prove.published import NOT_VERIFIED

    name = score.benchmark or "these runs"
    if score.minutes is not None:
        sentence = f"{name}: {score.minutes:.2f} minutes, best and worst of {len(score.runs)} runs dropped"
    else:
        sentence = f"{name}: {_why_none(score)}"
    yield from output.aligned("score", sentence, sys.stdout)
    yield from output.aligned("note", NOT_VERIFIED, sys.stdout)
    yield ""
    rows = []
    for file, run in zip(score.files, score.runs, strict=True):
        parts = (run.minutes, run.init_minutes, run.train_minutes, run.eval_minutes, run.epochs, run.minutes_per_epoch)
        reached = "yes" if run.reached else "no"
        rows.append([*map(_minutes, parts[:1]), reached, *map(_minutes, parts[1:]), Path(file).name])
    head = ["minutes", "reached", "init", "train", "eval", "epochs", "min/epoch", "log"]
    yield from output.table(head, rows, output.width_of(sys.stdout))


def _why_none(score: Score) -> str:
    missed = sum(not run.reached for run in score.runs)
    if missed > 1:
        return f"no score: {missed} of {len(score.runs)} runs did not reach the target, and one may"
    return f"no score: {figures.count(len(score.runs), 'run')}, and three are the least"


def _minutes(value: float | None) -> str:
    if value is None:
        return figures.NONE
    if isinstance(value, int):
        return str(value)
    return f"{value:.3f}"


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
    from podwright.prove.published import select

    results = select(benchmark, system, round_name)
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
    from podwright.prove.published import published
    from podwright.spec.findings import one_of
    from podwright.spec.problems import refuse

    names = sorted({result.benchmark for result in published()})
    if benchmark is not None and benchmark not in names:
        return refuse(f"there is no benchmark {benchmark!r}", hint=one_of(benchmark, "benchmark", names))
    asked = " ".join(filter(None, (benchmark, system, round_name)))
    return refuse(f"nothing published fits {asked!r}", hint="`podwright bench published` lists all")


def published_page(results: Sequence[PublishedResult]) -> Iterator[str]:
    """Lay published results out, each with how far its own runs lie apart."""
    from podwright.prove.published import NOT_VERIFIED

    rows = []
    for result in results:
        low, high = result.spread
        spread = f"{low:+.1%} {high:+.1%}"
        numbers = (str(result.chips), f"{result.minutes:.2f}", str(len(result.runs)), spread)
        rows.append([result.round, result.benchmark, result.submitter, *numbers, result.system])
    head = ["round", "benchmark", "by", "chips", "minutes", "n", "spread", "system"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    yield ""
    note = f"worked out from the published logs; {NOT_VERIFIED}\nspread: the fastest and slowest run to the score"
    yield from output.aligned("note", note, sys.stdout)


def _standings(ref: str, results: Sequence[PublishedResult]) -> list[Standing]:
    from podwright.launch import Session
    from podwright.prove.published import stand
    from podwright.prove.sides import side_of
    from podwright.spec.problems import Refusal

    with Session.open() as session:
        try:
            side = side_of(session, ref, "time_to_train_s")
        except Refusal:
            side = side_of(session, ref)
    minutes = [sample / 60 for sample in side.samples]
    return [stand(minutes, result) for result in results]


def standing_page(standings: Sequence[Standing]) -> Iterator[str]:
    """Lay out how far a time is from each published one, and what it can prove."""
    from podwright.prove.published import NOT_VERIFIED

    first = standings[0]
    count = figures.count(first.comparison.n[1], "run")
    yield from output.aligned("own", f"{first.minutes:.2f} minutes, {count}", sys.stdout)
    yield from output.aligned("note", NOT_VERIFIED, sys.stdout)
    yield ""
    rows = []
    for standing in standings:
        result, (low, high) = standing.result, standing.result.spread
        where = [result.round, result.benchmark, f"{result.minutes:.2f}", slower_text(standing.slower)]
        rows.append([*where, f"{low:+.1%} {high:+.1%}", standing.comparison.verdict, result.system])
    head = ["round", "benchmark", "minutes", "own", "spread", "verdict", "system"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    if first.comparison.n[1] < 2:
        yield ""
        text = "a single run cannot tell speed from luck: it may be the epochs that\nit happened to need"
        yield from output.aligned("mind", text, sys.stdout)


def slower_text(share: float) -> str:
    """Return `6.13% slower` or `2.29% faster`."""
    return f"{abs(share):.2%} {'slower' if share > 0 else 'faster'}"
