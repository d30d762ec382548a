"""Following a run to its end, and what is said about it then; shared by all commands that do so."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from podwright import launch, report
from podwright.cli.terminal import figures, output, verdict
from podwright.cli.terminal.live import View, elapsed, foot, picture, view_for
from podwright.cli.terminal.program import ProgramOutput
from podwright.cli.terminal.progress import Progress
from podwright.cli.terminal.status import Line

if TYPE_CHECKING:
    from pathlib import Path

    from podwright.launch import Run, RunRecords
    from podwright.runs import Record

    WriteReport = Callable[[list[Run]], Path]

MIN_PAUSE_S, MAX_PAUSE_S = 1.0, 5.0


@dataclass(frozen=True)
class Watching:
    """What of a run is shown beside its status: the output of these ranks (None: of all), or nothing if `quiet`.

    `last_bytes` of what was written before are shown too; None: all. With `as_json` stdout is the document's alone.
    """

    ranks: frozenset[int] | None = frozenset({0})
    quiet: bool = False
    last_bytes: int | None = None
    as_json: bool = False


RANK_0 = Watching()


def follow(run: Run, write: WriteReport, watching: Watching = RANK_0) -> RunRecords:
    """Show a run until it has ended, write its report and say how it ended; return its records.

    Ctrl-C ends the following and not the run; the last line then says how to take it up again.
    """
    threading.Thread(target=_warm_up).start()
    try:
        with view_for(sys.stderr, sys.stderr if watching.as_json else None) as view:
            if run.points():
                _follow_points(run, view)
            elif watching.quiet:
                _follow_quietly(run, view)
            else:
                _follow_one(run, view, watching)
        records = run.records()
        _say_end(run, *records)
        _say_report(run, write)
        if records.record.state == "succeeded":
            output.say("next", f"podwright show {run.id}")
    except KeyboardInterrupt:
        say_left([run.id])
        raise
    return records


def _warm_up() -> None:
    """Import what sealing and the report will need while the run is at work, and not after it.

    The thread is no daemon: one that is cut off in the middle of an import may crash the interpreter's end.
    """
    with contextlib.suppress(Exception):
        from podwright.runs.seal import prepare

        prepare()
        report.write_report.__name__  # noqa: B018 - a door loads what is behind it when it is asked for it


def codes_of(records: RunRecords, unfinished: int = 0) -> list[int]:
    """Return the exit codes of a run, or of all points of a parent."""
    return [verdict.CODES.get(part.state, unfinished) for part in records.points or [records.record]]


def say_left(ids: Iterable[str]) -> None:
    """Say that runs go on without this command, and how to take them up again; the last line a user sees."""
    ids = list(ids)
    print("", file=sys.stderr)
    if ids:
        output.say("left", f"{'the run goes' if len(ids) == 1 else 'the runs go'} on; to come back:")
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


def _follow_one(run: Run, view: View, watching: Watching) -> None:
    """Show what the program says, and below it the status."""
    record = run.record()
    progress, tail = Progress(record, record.goal), run.log_tail(watching.last_bytes)
    program = ProgramOutput(watching.ranks, record.world_size)
    for change in run.watch(patient=False):
        lines = tail.read()
        progress.take(change.record, (), change.samples)
        for event in sorted(change.events, key=lambda event: event.time):
            sentences = progress.take(change.record, [event], ())
            if sentences:  # what the program said before comes before it
                count = bisect_right(lines, event.time, key=lambda line: line.t)
                view.write(program.take(lines[:count]))
                lines = lines[count:]
            _say_all(view, sentences)
        view.write(program.take(lines))
        view.show(lambda width: foot(progress, elapsed(progress.record), program.open_line, width), progress.news())
    view.write([*program.take(tail.read()), *program.rest()])


def _say_all(view: View, sentences: Iterable[tuple[str, str]]) -> None:
    for word, text in sentences:
        view.say(word, text)


def _follow_quietly(run: Run, view: View) -> None:
    record = run.record()
    progress = Progress(record, record.goal)
    for change in run.watch(patient=False):
        _say_all(view, progress.take(change.record, change.events, change.samples))
        view.show(lambda width: picture(progress, elapsed(progress.record), width), progress.news())


def _follow_points(parent: Run, view: View) -> None:
    """Follow the points of a matrix or a repeat: a line for each that ends, and a count of all."""
    ended: set[str] = set()
    while True:
        began = time.monotonic()
        record, points = parent.records()
        launch.refuse_silence(record)
        for point in points:
            if point.is_final and point.id not in ended:
                ended.add(point.id)
                view.say(*_point_line(point))
        if len(ended) == len(points):
            return
        view.show(partial(points_picture, record.state, points), _counts(points))
        # Asking about many points takes time; most of it shall be left to them.
        pause_s = 2 * (time.monotonic() - began)
        time.sleep(max(MIN_PAUSE_S, min(pause_s, MAX_PAUSE_S)))


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
