"""Following a run to its end, and what is said about it then; shared by all commands that do so."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import figures, output, verdict
from podwright.cli.terminal.live import Line, View, elapsed, picture, view_for
from podwright.cli.terminal.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from podwright.launch import Run
    from podwright.runs import Record

    WriteReport = Callable[[list[Run]], Path]

LEAST_PAUSE_S, MOST_PAUSE_S = 1.0, 5.0


def follow(run: Run, write: WriteReport) -> tuple[Record, list[Record]]:
    """Show a run until it has ended, write its report and say how it ended; return its record and its points'.

    Ctrl-C ends the following and not the run; the last line then says how to take it up again.
    """
    threading.Thread(target=_warm_up).start()
    try:
        with view_for(sys.stderr) as view:
            if run.points():
                _follow_points(run, view)
            else:
                _follow_one(run, view)
        record, points = run.records()
        _say_end(run, record, points)
        _say_report(run, write)
        if record.state == "succeeded":
            output.say("next", f"podwright show {run.id}")
    except KeyboardInterrupt:
        say_left([run.id])
        raise
    return record, points


def _warm_up() -> None:
    """Import what sealing and the report will need while the run is at work, and not after it.

    The thread is no daemon: one that is cut off in the middle of an import may crash the interpreter's end.
    """
    with contextlib.suppress(Exception):
        import podwright.report  # noqa: F401
        from podwright.runs.seal import prepare

        prepare()


def document_of(record: Record, points: Sequence[Record]) -> dict[str, Any]:
    """Return the JSON document of a run; a parent has its points in it."""
    document: dict[str, Any] = record.as_json()
    if points:
        document["points"] = [point.as_json() for point in points]
    return document


def codes_of(record: Record, points: Sequence[Record], unfinished: int = 0) -> list[int]:
    """Return the exit codes of a run, or of all points of a parent."""
    return [verdict.CODES.get(part.state, unfinished) for part in points or [record]]


def say_left(ids: Iterable[str]) -> None:
    """Say how to take runs up again that go on without this command; the last line a user sees."""
    print("", file=sys.stderr)
    for name in ids:
        print(f"podwright attach {name}", file=sys.stderr, flush=True)


def introduce(run: Run, points: int) -> None:
    """Say what was started and where."""
    asked = run.folder.asked
    several = asked.nodes * asked.ranks_per_node > 1
    launcher = asked.workload.get("launcher") or ("ranks" if several else "plain")
    shape = f"{figures.count(asked.nodes, 'node')} x {figures.count(asked.ranks_per_node, 'rank')}, {launcher}"
    if points:
        shape += f", {figures.count(points, 'point')}"
    output.say("run", f"{run.id} on {asked.target}: {shape}")


def say_gaps(run: Run) -> None:
    """Say what the target does not give a run that was just started; all parts of a job lack the same."""
    for sentence in run.parts()[0].folder.gaps():
        output.say("missing", sentence)


def _follow_one(run: Run, view: View) -> None:
    record = run.record()
    progress = Progress(record, record.goal)
    for change in run.watch(patient=False):
        for word, text in progress.take(change.record, change.events, change.samples):
            view.say(word, text)
        view.show(lambda width: picture(progress, elapsed(progress.record), width), progress.news())


def _follow_points(parent: Run, view: View) -> None:
    """Follow the points of a matrix or a repeat: a line for each that ends, and a count of all."""
    from podwright.launch import refuse_silence

    ended: set[str] = set()
    while True:
        began = time.monotonic()
        whole, points = parent.records()
        refuse_silence(whole)
        for point in points:
            if point.is_final and point.id not in ended:
                ended.add(point.id)
                view.say(*_point_line(point))
        if len(ended) == len(points):
            return
        view.show(partial(points_picture, whole.state, points), _counts(points))
        # Asking about many points takes time; most of it shall be left to them.
        pause_s = 2 * (time.monotonic() - began)
        time.sleep(max(LEAST_PAUSE_S, min(pause_s, MOST_PAUSE_S)))


def _point_line(point: Record) -> tuple[str, str]:
    word, text = verdict.sentence(point, None)
    varied = [f"{name}={figures.value(value)}" for name, value in (point.matrix or {}).items()]
    return word, f"{' '.join([point.id, *varied])}: {text}"


def points_picture(state: str, points: Sequence[Record], width: int) -> list[Line]:
    """Draw how many points are in which state, and a bar of those that have ended."""
    ended = sum(point.is_final for point in points)
    done, rest = figures.bar(ended / len(points), 20)
    counts = output.clip(_counts(points), width - output.WORD_WIDTH - 22)
    return [[(f"{state:<{output.WORD_WIDTH}}", state), (done, "bar"), (rest, "dim"), (f"  {counts}", "")]]


def _counts(points: Sequence[Record]) -> str:
    states = [point.state for point in points]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))


def _say_end(run: Run, record: Record, points: Sequence[Record]) -> None:
    if record.state in ("failed", "lost") and not points:
        for word, text in verdict.explanation(record, run.explain()):
            output.say(word, text)
    else:
        output.say(*verdict.sentence(record, record.goal, len(points)))


def _say_report(run: Run, write: WriteReport) -> None:
    """Write the report and say where it is; a report that cannot be written does not change how the run ended."""
    try:
        path = write([run])
    except Exception as error:
        output.say("report", f"could not be written: {type(error).__name__}: {error}")
        return
    output.say("report", path.resolve().as_uri())


@contextlib.contextmanager
def held_interrupt() -> Iterator[None]:
    """Hold the first Ctrl-C back until a run has been handed over: half a start would have no id to name.

    A second Ctrl-C is not held back.
    """
    import signal

    pressed: list[int] = []

    def hold(number: int, frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
