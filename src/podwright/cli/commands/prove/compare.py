"""`compare`: whether B takes as long as A, how sure that is, and what differs between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podwright import prove
from podwright.cli.commands.prove.bench import say_ended, say_price
from podwright.cli.commands.prove.suites import between, seconds
from podwright.cli.options import AsJson, complete_run
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.launch import Session
    from podwright.prove import CellsCompared, Measure, Side, SidesCompared

_STRIP = 24
_MAX_CAUSES = 8

Refs = Annotated[
    list[str],
    typer.Argument(
        metavar="A B...",
        help="Runs with --repeat, cells (SUITE/CELL), or files with samples; or one SUITE, with --by.",
        autocompletion=complete_run,
    ),
]


def compare_command(
    refs: Refs,
    margin: Annotated[str, typer.Option("--margin", metavar="SHARE", help="How far apart is still the same.")] = "3%",
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="What is compared: a time, or a result that ranks reported.")
    ] = "duration_s",
    by: Annotated[
        Literal["target", "runtime", "size", "image", "workload"] | None,
        typer.Option("--by", help="Compare the cells of a suite that differ in this alone."),
    ] = None,
    until: Annotated[
        Literal["proven"] | None, typer.Option("--until", help="Run both again, in turn, until it is decided.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=5, help="With --until: at most so many runs a side.")
    ] = 30,
    as_json: AsJson = False,
) -> int:
    """Say same, different or not proven; only the first is exit code 0."""
    from podwright.launch import Session
    from podwright.prove import Measure, compare_cells, compare_refs, known_suite, margin_of

    measure = Measure(metric, margin_of(margin))
    with Session.open() as session:
        if by is not None:
            suite = known_suite(session.home, _only(refs))
            return _print_cells(compare_cells(session, suite, by, measure), as_json)
        if until is not None:
            compared = [_until_proven(session, refs, measure, limit)]
        else:
            compared = compare_refs(session, refs, measure)
    if as_json:
        output.print_one_or_all([pair.as_json() for pair in compared])
    else:
        print("\n\n".join("\n".join(page(pair, output.width_of(sys.stdout))) for pair in compared))
    return exit_code(compared)


def _until_proven(session: Session, refs: Sequence[str], measure: Measure, limit: int) -> SidesCompared:
    from podwright.prove import Effort, compare_until_proven

    return compare_until_proven(session, refs, measure, Effort(limit, say_ended, say_price))


def exit_code(compared: Sequence[SidesCompared]) -> int:
    """Return 0 only where all are the same."""
    return int(any(pair.comparison.verdict != "same" for pair in compared))


def _only(refs: Sequence[str]) -> str:
    from podwright.spec.problems import refuse

    if len(refs) > 1:
        raise refuse("compares within one suite", hint="name one suite, and nothing else", field="--by")
    return refs[0]


def _print_cells(compared: CellsCompared, as_json: bool) -> int:
    if as_json:
        output.print_json(compared.as_json())
    else:
        print("\n".join(suite_table(compared.pairs)))
    return exit_code(compared.pairs)


def suite_table(pairs: Sequence[SidesCompared]) -> Iterator[str]:
    """Lay out a row for each pair of cells."""
    rows = []
    for pair in pairs:
        numbers = [f"{pair.comparison.n[0]}/{pair.comparison.n[1]}", prove.ratio_text(pair), _p(pair)]
        names = [side.name.partition("/")[2] for side in (pair.b, pair.a)]
        rows.append([pair.comparison.verdict, *numbers, " to ".join(names)])
    yield from output.table(["verdict", "n", "ratio", "p", "of"], rows, output.width_of(sys.stdout))


def _p(pair: SidesCompared) -> str:
    return prove.p_text(pair, figures.NONE)


def page(pair: SidesCompared, width: int | None) -> Iterator[str]:
    """Lay a comparison out: the sentence first, then both sides, where the time went, and what differs."""
    comparison = pair.comparison
    for word, text in (
        (comparison.verdict, prove.pair_sentence(pair)),
        ("ratio", f"{prove.ratio_text(pair)}, p {_p(pair)}, margin {comparison.margin:.3g}"),
        ("method", prove.method_text(pair)),
        ("measured", f"{pair.metric}; median, 95 % interval of the median, each run as a dot"),
    ):
        yield from output.aligned(word, text, sys.stdout)
    yield ""
    yield from _sides(pair)
    yield ""
    yield from _steps(pair)
    yield from _causes(pair, width)


def _sides(pair: SidesCompared) -> Iterator[str]:
    values = [*pair.a.samples, *pair.b.samples]
    low, high = min(values), max(values)
    rows = []
    for letter, side in (("A", pair.a), ("B", pair.b)):
        name = f"{side.name} ({letter})" if pair.a.name == pair.b.name else side.name
        rows.append(
            [output.clip(name, 22), str(len(side.samples)), *_middle(pair.metric, side), _strip(side, low, high)]
        )
    yield from output.table(["side", "n", "median", "95 % interval", ""], rows)
    for side in (pair.a, pair.b):
        if side.left_out:
            yield from output.aligned("left out", f"{side.left_out}, of {side.name}", sys.stdout)


def _middle(metric: str, side: Side) -> tuple[str, str]:
    from statistics import median

    from podwright.analysis.bootstrap import median_interval

    show = seconds if prove.is_time(metric) else "{:.4g}".format
    return show(median(side.samples)), between(median_interval(side.samples), show)


def _strip(side: Side, low: float, high: float) -> str:
    """Draw each sample as a dot from the least of both sides to the greatest; more in one place are a colon."""
    span = (high - low) or 1.0
    places = [round((sample - low) / span * (_STRIP - 1)) for sample in side.samples]
    marks = {0: " ", 1: "."}
    return "|" + "".join(marks.get(places.count(place), ":") for place in range(_STRIP)) + "|"


def _steps(pair: SidesCompared) -> Iterator[str]:
    known = [step for step in pair.steps if step.apart_s is not None]
    if not known:
        yield from output.aligned("steps", "not reported", sys.stdout)
        return
    lines = []
    for step in pair.steps:
        if step.a is None or step.b is None:
            lines.append(f"{step.name:<17}not reported")
        else:
            lines.append(f"{step.name:<17}{step.a:9.2f} s {step.b:9.2f} s {step.b - step.a:+9.2f} s")
    yield from output.aligned("steps", "\n".join(lines), sys.stdout)


def _causes(pair: SidesCompared, width: int | None) -> Iterator[str]:
    if not pair.a.traits or not pair.b.traits:
        yield from output.aligned("differs", "not known: there is no run behind the samples", sys.stdout)
        return
    texts = [output.clip(cause.text, (width or 80) - output.WORD_WIDTH) for cause in pair.causes]
    more = len(texts) - _MAX_CAUSES
    if more > 0:
        texts[_MAX_CAUSES:] = [f"and {more} more: --json has all"]
    yield from output.aligned("differs", "\n".join(texts) or "nothing that was recorded", sys.stdout)
