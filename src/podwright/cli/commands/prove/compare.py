"""`compare`: whether B takes as long as A, how sure that is, and what differs between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podwright.cli.commands.prove.bench import say_ended, say_price
from podwright.cli.commands.prove.suites import between, seconds
from podwright.cli.options import AsJson, complete_run
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.launch import Session
    from podwright.prove import CellsCompared, Measure, Side, SidesCompared

_STRIP = 24
_MAX_CAUSES, _TOO_MANY = 8, 1000
_HUGE = 1e4

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
        numbers = [f"{pair.comparison.n[0]}/{pair.comparison.n[1]}", ratio_text(pair), p_text(pair)]
        names = [side.name.partition("/")[2] for side in (pair.b, pair.a)]
        rows.append([pair.comparison.verdict, *numbers, " to ".join(names)])
    yield from output.table(["verdict", "n", "ratio", "p", "of"], rows, output.width_of(sys.stdout))


def ratio_text(pair: SidesCompared) -> str:
    """Return the ratio with its interval where there is one."""
    comparison = pair.comparison
    ratio = _ratio(comparison.ratio or 0.0)
    if comparison.interval is None:
        return ratio
    low, high = comparison.interval
    return f"{ratio} ({_ratio(low)} to {_ratio(high)})"


def _ratio(ratio: float) -> str:
    """Return three places of a ratio; of one that is beyond all sense its size."""
    return f"{ratio:.3f}" if ratio < _HUGE else f"{ratio:.3g}"


def p_text(pair: SidesCompared) -> str:
    """Return p as papers print it."""
    p = pair.comparison.p
    if p is None:
        return figures.NONE
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.2g}"


def page(pair: SidesCompared, width: int | None) -> Iterator[str]:
    """Lay a comparison out: the sentence first, then both sides, where the time went, and what differs."""
    comparison = pair.comparison
    for word, text in (
        (comparison.verdict, sentence(pair)),
        ("ratio", f"{ratio_text(pair)}, p {p_text(pair)}, margin {comparison.margin:.3g}"),
        ("method", _method(pair)),
        ("measured", f"{pair.metric}; median, 95 % interval of the median, each run as a dot"),
    ):
        yield from output.aligned(word, text, sys.stdout)
    yield ""
    yield from _sides(pair)
    yield ""
    yield from _steps(pair)
    yield from _causes(pair, width)


def _method(pair: SidesCompared) -> str:
    """Say how they were compared, what that could have shown, and what speaks against it."""
    from podwright.analysis.comparison import outliers

    comparison = pair.comparison
    text = "unpaired"
    if comparison.method == "paired":
        text = "pair by pair: they were made in turns"
    if comparison.smallest_seen is not None:
        text += f"; a difference of {comparison.smallest_seen:.1%} would have been seen"
    lines = [text]
    if pair.in_blocks:
        lines.append("one side was made before the other: what drifted looks like a difference;")
        lines.append("a suite, or --until proven, makes them in turns")
    for side in (pair.a, pair.b):
        odd = len(outliers(side.samples))
        if odd:
            verb = "lies" if odd == 1 else "lie"
            lines.append(f"{figures.count(odd, 'run')} of {side.name} {verb} far from the others, and counts")
    return "\n".join(lines)


def sentence(pair: SidesCompared) -> str:
    """Say in one sentence what is known."""
    comparison, a, b = pair.comparison, pair.a.name, pair.b.name
    if comparison.verdict == "not proven":
        return _why_open(pair)
    apart = abs((comparison.ratio or 1.0) - 1)
    if comparison.verdict == "same":
        return f"{b} is as {a}: {apart:.1%} apart, proven to be within {comparison.margin:.0%}"
    return f"{b} {_how_apart(pair, apart)} {a}"


def _how_apart(pair: SidesCompared, apart: float) -> str:
    more = (pair.comparison.ratio or 1.0) > 1
    if apart > _HUGE:
        return f"is {apart:.3g} times"
    if _is_time(pair.metric):
        return f"takes {apart:.1%} {'longer' if more else 'less time'} than"
    return f"is {apart:.1%} {'higher' if more else 'lower'} than"


def _is_time(metric: str) -> bool:
    return metric.endswith("_s") and not metric.endswith("_per_s")


def _why_open(pair: SidesCompared) -> str:
    n, needed = pair.comparison.n, pair.comparison.needed
    if min(n) < 2:
        return "a single run says nothing of how much runs differ; repeat both"
    if min(n) < 4:
        return f"of fewer than four runs nothing is proven; about {needed} a side would decide"
    if needed is None or needed <= min(n):
        return "they may be the same or differ; more runs would tell"
    if needed > _TOO_MANY:
        return "they differ too much among themselves; a wider --margin, or a quieter machine"
    return f"too few runs to tell; about {needed} a side would decide"


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

    show = seconds if _is_time(metric) else "{:.4g}".format
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
