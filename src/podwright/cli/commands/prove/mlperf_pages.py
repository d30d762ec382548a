"""How scores of MLPerf logs and published results are laid out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podwright import mlperf
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.mlperf import PublishedResult, Score, Standing


_MAX_WARNINGS = 6


def score_page(score: Score) -> Iterator[str]:
    """Lay the score out: the sentence first, then each run with its parts."""
    name = score.benchmark or "these runs"
    if score.minutes is not None:
        sentence = f"{name}: {score.minutes:.2f} minutes, {_dropped(score)} of {len(score.runs)} runs dropped"
    else:
        sentence = f"{name}: {_why_none(score)}"
    yield from output.aligned("score", sentence, sys.stdout)
    yield from output.aligned("note", mlperf.NOT_VERIFIED, sys.stdout)
    yield ""
    rows = []
    for file, run in zip(score.files, score.runs, strict=True):
        parts = (run.minutes, run.init_minutes, run.train_minutes, run.eval_minutes, run.epochs, run.minutes_per_epoch)
        reached = "yes" if run.reached else "no"
        rows.append([*map(_minutes, parts[:1]), reached, *map(_minutes, parts[1:]), Path(file).name])
    head = ["minutes", "reached", "init", "train", "eval", "epochs", "min/epoch", "log"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    yield from _warnings(score)


def _dropped(score: Score) -> str:
    return "best and worst" if score.dropped == 1 else f"the {score.dropped} best and worst"


def _warnings(score: Score) -> Iterator[str]:
    shown = sorted(score.warnings, key=lambda warning: not warning.refuses)[:_MAX_WARNINGS]
    lines = []
    for warning in shown:
        place = Path(warning.file).name + (f":{warning.line}" if warning.line else "")
        lines.append(output.wrapped(f"{place}: {warning.rule}", 70))
    more = len(score.warnings) - len(shown)
    if more:
        lines.append(f"and {more} more: --json has all")
    if lines:
        yield ""
        yield from output.aligned("warnings", "\n".join(lines), sys.stdout)


def _why_none(score: Score) -> str:
    if score.refused:
        files = {Path(warning.file).name for warning in score.warnings if warning.refuses}
        return f"no score: MLPerf's checker refuses {', '.join(sorted(files))}"
    missed = sum(not run.reached for run in score.runs)
    if missed > score.dropped:
        return f"no score: {missed} of {len(score.runs)} runs did not reach the target, and {_may(score)}"
    return f"no score: {figures.count(len(score.runs), 'run')}, and {2 * score.dropped + 1} are the least"


def _may(score: Score) -> str:
    return "one may" if score.dropped == 1 else f"{score.dropped} may"


def _minutes(value: float | None) -> str:
    if value is None:
        return figures.NONE
    if isinstance(value, int):
        return str(value)
    return f"{value:.3f}"


def published_page(results: Sequence[PublishedResult]) -> Iterator[str]:
    """Lay published results out, each with how far its own runs lie apart."""
    rows = []
    for result in results:
        numbers = (str(result.chips), f"{result.minutes:.2f}", str(len(result.runs) or figures.NONE), _spread(result))
        rows.append([result.round, result.benchmark, result.submitter, *numbers, result.system])
    head = ["round", "benchmark", "by", "chips", "minutes", "n", "spread", "system"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    yield ""
    note = (
        f"worked out from the published logs; {mlperf.NOT_VERIFIED}\nspread: the fastest and slowest run to the score;"
        " without n: a submitter's own table"
    )
    yield from output.aligned("note", note, sys.stdout)


def _spread(result: PublishedResult) -> str:
    """Return the fastest and the slowest run to the score; a dash where the runs are not known."""
    if result.spread is None:
        return figures.NONE
    low, high = result.spread
    return f"{low:+.1%} {high:+.1%}"


def standing_page(standings: Sequence[Standing]) -> Iterator[str]:
    """Lay out how far a time is from each published one, and what it can prove."""
    first = standings[0]
    count = figures.count(first.comparison.n[1], "run")
    yield from output.aligned("own", f"{first.minutes:.2f} minutes, {count}", sys.stdout)
    yield from output.aligned("note", mlperf.NOT_VERIFIED, sys.stdout)
    yield ""
    rows = []
    for standing in standings:
        result = standing.result
        where = [result.round, result.benchmark, f"{result.minutes:.2f}", slower_text(standing.slower)]
        rows.append([*where, _spread(result), standing.comparison.verdict, result.system])
    head = ["round", "benchmark", "minutes", "own", "spread", "verdict", "system"]
    yield from output.table(head, rows, output.width_of(sys.stdout))
    if first.comparison.n[1] < 2:
        yield ""
        text = "a single run cannot tell speed from luck: it may be the epochs that\nit happened to need"
        yield from output.aligned("mind", text, sys.stdout)


def slower_text(share: float) -> str:
    """Return `6.13% slower` or `2.29% faster`."""
    return f"{abs(share):.2%} {'slower' if share > 0 else 'faster'}"
