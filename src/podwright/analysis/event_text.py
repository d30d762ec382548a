"""Events in words. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podwright.analysis.data import Event
from podwright.analysis.ranks import Story, exit_words
from podwright.theme import words

_SEEN = {"xid": "XID", "ecc": "ECC error", "oom": "out of memory", "throttle": "throttled", "gpu_lost": "GPU lost"}


@dataclass(frozen=True)
class Moment:
    """One event as a row of a table."""

    at: str
    clock: str
    where: str
    kind: str
    text: str


def moment(event: Event, story: Story) -> Moment:
    """An event with when, where and what."""
    t = float(event.get("t") or story.span.start)
    kind = str(event.get("k") or "event")
    describe = _TEXT.get(kind, _plain)
    where = event.get("node") if kind in ("failed", "hang", "joined") else event.get("n")
    return Moment(
        at=words.duration(t - story.span.start),
        clock=words.clock(t),
        where=story.name(where),
        kind=(_SEEN.get(str(event.get("what")), "seen") if kind == "seen" else kind.replace("_", " ")),
        text=describe(event),
    )


def failure(event: Event) -> str:
    """`rank 3 on dgx002 exited with 1 after 41 s; ranks 0-2, 4-15 were stopped`."""
    rank, host = event.get("rank"), event.get("host")
    who = f"rank {rank}" if rank is not None else "a rank"
    where = f" on {host}" if host else ""
    signal, code = event.get("signal"), event.get("code")
    how = f"was killed by {signal}" if signal else f"exited with {code}"
    after = event.get("after_s")
    when = f" after {words.duration(float(after))}" if isinstance(after, int | float) else ""
    return f"{who}{where} {how}{when}{_stopped(event.get('stopped'))}"


def _stopped(ranks: object) -> str:
    stopped = [rank for rank in ranks if isinstance(rank, int)] if isinstance(ranks, list) else []
    if not stopped:
        return ""
    if len(stopped) == 1:
        return f"; rank {stopped[0]} was stopped"
    return f"; ranks {words.fold(stopped)} were stopped"


def seen(event: Event) -> str:
    """`gpu 3: XID 48, double bit ECC error`."""
    what = _SEEN.get(str(event.get("what")), str(event.get("what") or "something"))
    value, text, device = event.get("value"), event.get("text"), event.get("device")
    lead = f"{what} {words.number(float(value))}" if isinstance(value, int | float) else what
    body = str(text) if text else lead
    if event.get("what") == "xid" and text and not str(text).startswith("XID"):
        body = f"{lead}: {text}"
    return f"{device}: {body}" if device not in (None, "") else body


def hang(event: Event) -> str:
    """`rank 3 was silent for 10m 00s`."""
    silent = event.get("silent_s")
    how_long = words.duration(float(silent)) if isinstance(silent, int | float) else "too long"
    why = event.get("why")
    return f"rank {event.get('rank')} was silent for {how_long}" + (f": {why}" if why else "")


def _pilot(event: Event) -> str:
    return f"pilot {event.get('version') or ''} started on {event.get('host')}, Python {event.get('python')}"


def _staged(event: Event) -> str:
    took, size = event.get("took_s"), event.get("bytes")
    parts = [words.quantity(float(size), "bytes")] if isinstance(size, int | float) else []
    parts += [f"in {words.duration(float(took))}"] if isinstance(took, int | float) else []
    return f"{event.get('what')} staged" + (f", {' '.join(parts)}" if parts else "")


def _go(event: Event) -> str:
    took = event.get("took_s")
    proven = f" proven in {words.duration(float(took))}" if isinstance(took, int | float) else ""
    return f"attempt {event.get('attempt')}: world size {event.get('world_size')}{proven}"


def _checkpoint(event: Event) -> str:
    size = event.get("bytes")
    return f"{event.get('name')}" + (
        f", {words.quantity(float(size), 'bytes')}" if isinstance(size, int | float) else ""
    )


def _goal(event: Event) -> str:
    took = event.get("took_s")
    after = f" after {words.duration(float(took))}" if isinstance(took, int | float) else ""
    return f"{words.metric_name(str(event.get('metric')))} {words.score(_number(event.get('value')))}{after}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _result(event: Event) -> str:
    values = event.get("values")
    pairs = values.items() if isinstance(values, Mapping) else ()
    return ", ".join(f"{name} {words.number(_number(value), 4)}" for name, value in pairs)


def _plain(event: Event) -> str:
    own = {name: value for name, value in event.items() if name not in ("t", "e", "n", "q", "k")}
    return ", ".join(f"{name} {value}" for name, value in own.items())


_TEXT: Mapping[str, Callable[[Event], str]] = {
    "pilot": _pilot,
    "staged": _staged,
    "joined": lambda event: f"{event.get('host')} joined, of {event.get('of')}",
    "go": _go,
    "ready": lambda event: f"all {event.get('world_size')} ranks were seen",
    "rank": lambda event: f"rank {event.get('rank')} started, pid {event.get('pid')}",
    "result": _result,
    "goal": _goal,
    "checkpoint": _checkpoint,
    "rank_end": lambda event: f"rank {event.get('rank')} ended with {exit_words(event)}",
    "failed": lambda event: failure(event) + (f": {event['why']}" if event.get("why") else ""),
    "hang": hang,
    "retry": lambda event: f"attempt {event.get('attempt')} next" + (f": {event['why']}" if event.get("why") else ""),
    "seen": seen,
    "sensor": lambda event: f"{event.get('name')} cannot be read: {event.get('error')}",
    "signal": lambda event: f"{event.get('name')} received",
    "fenced": lambda event: f"a newer attempt {event.get('by')} of job {event.get('job')} holds the lease",
    "given_back": lambda event: f"given back: {event.get('why')}",
    "requeued": lambda event: f"stopped, and to be started again: {event.get('why')}",
    "thinned": lambda event: f"{event.get('what')} kept every {event.get('to_s')} s instead of {event.get('from_s')} s",
    "end": lambda event: f"{event.get('state')}" + (f": {event['reason']}" if event.get("reason") else ""),
}
