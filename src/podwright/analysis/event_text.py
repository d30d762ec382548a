"""Events in words. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podwright.analysis.ranks import Story, exit_words
from podwright.runs.events import (
    AttemptStarted,
    CheckpointSeen,
    DeviceSeen,
    Event,
    Fenced,
    FilesKept,
    RankFailed,
    RankHung,
    Recognised,
    Staged,
    StagingProgress,
    Thinned,
)
from podwright.theme import words

_SEEN = {"xid": "XID", "ecc": "ECC error", "oom": "out of memory", "throttle": "throttled", "gpu_lost": "GPU lost"}
_SOFTWARE = {"python": "Python", "torch": "torch", "cuda": "CUDA", "nccl": "NCCL", "cudnn": "cuDNN", "driver": "driver"}
_COMMON = frozenset({"time", "epoch", "node", "sequence"})


@dataclass(frozen=True)
class Moment:
    """One event as a row of a table."""

    at: str
    clock: str
    where: str
    kind: str
    text: str


def moment(event: Event, story: Story) -> Moment:
    """Return an event with when, where and what."""
    text = _TEXT.get(event.kind, _plain)(event)
    kind = event.kind.replace("_", " ")
    if isinstance(event, DeviceSeen):
        kind = _SEEN.get(event.what or "", "seen")
    if isinstance(event, RankFailed):
        text = _because(failure(event, story), event.why)
    return Moment(
        at=words.duration(story.span.at(event.time)),
        clock=words.clock(event.time),
        where=story.name(event.place),
        kind=kind,
        text=text,
    )


def failure(event: RankFailed, story: Story) -> str:
    """Return `rank 3 on dgx002 exited with 1 after 41 s; ranks 0-2, 4-15 were stopped`."""
    parts = ["a rank" if event.rank is None else f"rank {event.rank}"]
    if event.at_node is not None:
        parts.append(f"on {story.name(event.at_node)}")
    parts.append(f"was killed by {event.signal}" if event.signal else f"exited with {event.code}")
    parts += _lasted("after", event.after_s)
    return " ".join(parts) + _stopped(event.stopped)


def _lasted(word: str, seconds: float | None) -> list[str]:
    """Return `after 41 s`; nothing when nobody told how long it was."""
    if seconds is None:
        return []
    return [f"{word} {words.duration(seconds)}"]


def _stopped(ranks: tuple[int, ...]) -> str:
    if not ranks:
        return ""
    if len(ranks) == 1:
        return f"; rank {ranks[0]} was stopped"
    return f"; ranks {words.fold(ranks)} were stopped"


def seen(event: DeviceSeen) -> str:
    """Return `gpu 3: XID 48, double bit ECC error`."""
    lead = _SEEN.get(event.what or "", event.what or "something")
    if event.value is not None:
        lead = f"{lead} {words.number(float(event.value))}"
    body = event.text or lead
    if event.what == "xid" and event.text and not event.text.startswith("XID"):
        body = f"{lead}: {event.text}"
    return ": ".join(part for part in (event.device, body) if part)


def hang(event: RankHung) -> str:
    """Return `rank 3 was silent for 10m 00s`."""
    [how_long] = _lasted("for", event.silent_s) or ["for too long"]
    return _because(f"rank {event.rank} was silent {how_long}", event.why)


def _because(text: str, reason: str) -> str:
    return ": ".join(part for part in (text, reason) if part)


def _staged(event: Staged) -> str:
    parts = []
    if event.size_bytes is not None:
        parts.append(words.quantity(event.size_bytes, "bytes"))
    parts += _lasted("in", event.took_s)
    if not parts:
        return f"{event.what} staged"
    return f"{event.what} staged, {' '.join(parts)}{staged_from(event)}"


def staged_from(event: Staged) -> str:
    """Return how fast data came to a node, and from where; nothing of code, or of what was there already."""
    came = (event.from_source or 0) + (event.from_peers or 0)
    if not came or not event.took_s:
        return ""
    origins = {"source": event.from_source, "other nodes": event.from_peers, "the cache": event.reused}
    shares = [f"{words.quantity(size, 'bytes')} from {name}" for name, size in origins.items() if size]
    return f", {words.quantity(came / event.took_s, 'bytes')}/s: {', '.join(shares)}"


def _staging(event: StagingProgress) -> str:
    here, of = (words.quantity(size or 0, "bytes") for size in (event.size_bytes, event.of))
    return f"data: {here} of {of} are there"


def _go(event: AttemptStarted) -> str:
    return " ".join([f"attempt {event.attempt}: world size {event.world_size}", *_lasted("proven in", event.took_s)])


def _checkpoint(event: CheckpointSeen) -> str:
    if event.size_bytes is None:
        return str(event.name)
    return f"{event.name}, {words.quantity(event.size_bytes, 'bytes')}"


def _thinned(event: Thinned) -> str:
    if event.text:
        return event.text
    return f"{event.what} kept every {words.number(event.to_s)} s instead of {words.number(event.from_s)} s"


def _fenced(event: Fenced) -> str:
    epoch = list(event.by) if event.by else None
    return f"a newer attempt {epoch} of job {event.job} holds the lease"


def _kept(event: FilesKept) -> str:
    parts = [f"{event.files or 0} files, {words.quantity(event.size_bytes or 0.0, 'bytes')}, as results/workdir"]
    if event.left_count:
        parts.append(f"{event.left_count} left out")
    return ", ".join(parts)


def _plain(event: Event) -> str:
    """Tell an event field by field."""
    own = {name.removeprefix("at_"): value for name, value in vars(event).items() if name not in _COMMON}
    return ", ".join(f"{name} {value}" for name, value in own.items())


def versions_text(versions: Mapping[str, Any]) -> str:
    """Return `Python 3.11.7, torch 2.3.0, CUDA 12.4`, as far as it is known."""
    named = [f"{title} {versions[name]}" for name, title in _SOFTWARE.items() if versions.get(name)]
    return ", ".join(named) or "software that could not be found"


def _recognised(event: Recognised) -> str:
    names = ", ".join(f"{row.get('name')} (by a {row.get('how')})" for row in event.names)
    return f"read from the output of rank {event.rank}: {names}"


_TEXT: Mapping[str, Callable[[Any], str]] = {
    "pilot": lambda event: f"pilot {event.version} started on {event.host}, Python {event.python}",
    "staged": _staged,
    "staging": _staging,
    "joined": lambda event: f"{event.host} joined, of {event.of}",
    "go": _go,
    "ready": lambda event: f"all {event.world_size} ranks were seen",
    "rank": lambda event: f"rank {event.rank} started, pid {event.pid}",
    "result": lambda event: ", ".join(f"{name} {words.number(value, 4)}" for name, value in event.values.items()),
    "recognised": _recognised,
    "event_files": lambda event: f"read from event files of TensorBoard: {', '.join(event.values)}",
    # The event's own time is counted from the start of its attempt: the row has that of the run's clock.
    "goal": lambda event: f"{words.metric_name(str(event.metric))} {words.number(event.value)}",
    "checkpoint": _checkpoint,
    "rank_end": lambda event: f"rank {event.rank} ended with {exit_words(event)}",
    "hang": hang,
    "slow": lambda event: event.text,
    "software": lambda event: f"ranks start with {versions_text(vars(event))}",
    "stack": lambda event: f"rank {event.rank} was ended where it was: {' / '.join(event.lines[:3])}",
    "retry": lambda event: _because(f"attempt {event.attempt} next", event.why),
    "seen": seen,
    "sensor": lambda event: f"{event.name} cannot be read: {event.error}",
    "signal": lambda event: f"{event.name} received",
    "fenced": _fenced,
    "alone": lambda event: f"ranks ended: {event.why}",
    "given_back": lambda event: f"given back: {event.why}",
    "requeued": lambda event: f"stopped, and to be started again: {event.why}",
    "rdma": lambda event: f"memlock_bytes {event.memlock_bytes}, capabilities {list(event.capabilities)}",
    "thinned": _thinned,
    "workdir": _kept,
    "end": lambda event: _because(event.state, event.reason),
    "node_end": lambda event: (
        f"node {event.at_node}, restart {event.restart}, code {event.code}, signal {event.signal}"
    ),
}
