"""What a comparison says, in the sentences that commands and pages share. Pure."""

from __future__ import annotations

from podwright.analysis.comparison import outliers
from podwright.prove.compare import SidesCompared
from podwright.prove.gate import GateVerdict
from podwright.theme import words

_HUGE = 1e4
_TOO_MANY = 1000


def pair_sentence(pair: SidesCompared) -> str:
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
    if is_time(pair.metric):
        return f"takes {apart:.1%} {'longer' if more else 'less time'} than"
    return f"is {apart:.1%} {'higher' if more else 'lower'} than"


def is_time(metric: str) -> bool:
    """Tell whether a metric is a time, of which less is better."""
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


def p_text(pair: SidesCompared, none: str = words.NONE) -> str:
    """Return p as papers print it; `none` where too few samples leave it open."""
    p = pair.comparison.p
    if p is None:
        return none
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.2g}"


def method_text(pair: SidesCompared) -> str:
    """Say how they were compared, what that could have shown, and what speaks against it."""
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
            lines.append(f"{words.count(odd, 'run')} of {side.name} {verb} far from the others, and counts")
    return "\n".join(lines)


def gate_sentence(verdict: GateVerdict) -> str:
    """Say in one sentence what the gate found."""
    place = f"{words.count(len(verdict.cells), 'cell')} over {words.count(verdict.rounds, 'round')}"
    place += f" of {verdict.suite}"
    said = {
        "broken": f"the newest round is not whole: {place}",
        "slower": f"{len(verdict.findings)} of {place} became worse",
        "clean": f"nothing became worse by more than {verdict.margin:.1%}: {place}",
        "not proven": f"{len(verdict.undecided)} of {place} may have become worse, or not",
    }
    if verdict.verdict == "not proven" and verdict.rounds < 2:
        return f"a first round has nothing to be held against: {place}"
    return said[verdict.verdict]
