"""Following a run to its end, and what is said about it then; shared by all commands that do so."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from podwright.cli.commands.report import write_report
from podwright.cli.terminal import figures, output, verdict
from podwright.cli.terminal.live import Line, View, elapsed, picture, view_for
from podwright.cli.terminal.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from podwright.launch import Run

LEAST_PAUSE_S, MOST_PAUSE_S = 1.0, 5.0


def follow(run: Run, write: Callable[[list[Run]], Path] = write_report) -> dict[str, Any]:
    """Show a run until it has ended and say how; return its JSON document. `write` writes its report.

    Ctrl-C ends the following and not the run; the last line then says how to take it up again.
    """
    threading.Thread(target=_warm_up).start()
    try:
        with view_for(sys.stderr) as view:
            if run.points():
                _follow_points(run, view)
            else:
                _follow_one(run, view)
        document = run_document(run)
        _say_end(run, document)
        _say_report(run, write)
        if document["state"] == "succeeded":
            output.say("next", f"podwright show {run.id}")
    except KeyboardInterrupt:
        say_left([run.id])
        raise
    return document


def _warm_up() -> None:
    """Import what sealing and the report will need while the run is at work, and not after it.

    The thread is no daemon: one that is cut off in the middle of an import may crash the interpreter's end.
    """
    with contextlib.suppress(Exception):
        import podwright.report  # noqa: F401
        from podwright.runs.seal import prepare

        prepare()


def run_document(run: Run) -> dict[str, Any]:
    """Return the JSON document of a run; a parent has its points in it."""
    record, points = run.records()
    document: dict[str, Any] = record.as_json()
    if points:
        document["points"] = [point.as_json() for point in points]
    return document


def codes_of(document: dict[str, Any], unfinished: int = 0) -> list[int]:
    """Return the exit codes of a run, or of all points of a parent; 3 for one whose target could not be asked."""
    if "errors" in document:
        return [verdict.UNREACHABLE]
    states = [point["state"] for point in document.get("points", ())] or [document["state"]]
    return [verdict.CODES.get(state, unfinished) for state in states]


def say_left(ids: Iterable[str]) -> None:
    """Say how to take runs up again that go on without this command; the last line a user sees."""
    print("", file=sys.stderr)
    for name in ids:
        print(f"podwright attach {name}", file=sys.stderr, flush=True)


def introduce(run: Run, document: dict[str, Any]) -> None:
    """Say what was started and where."""
    asked = run.folder.asked
    launcher = asked.workload.get("launcher", "ranks")
    shape = f"{figures.count(asked.nodes, 'node')} x {figures.count(asked.ranks_per_node, 'rank')}, {launcher}"
    if document.get("points"):
        shape += f", {figures.count(len(document['points']), 'point')}"
    output.say("run", f"{run.id} on {document['target']}: {shape}")


def _follow_one(run: Run, view: View) -> None:
    record = run.record()
    progress = Progress(record.as_json(), record.goal)
    for change in run.watch():
        for word, text in progress.take(change.record.as_json(), change.events, change.samples):
            view.say(word, text)
        view.show(lambda width: picture(progress, elapsed(progress.record), width), progress.news())


def _follow_points(parent: Run, view: View) -> None:
    """Follow the points of a matrix or a repeat: a line for each that ends, and a count of all."""
    ended: set[str] = set()
    while True:
        began = time.monotonic()
        whole, points = parent.records()
        records = [point.as_json() for point in points]
        for record in records:
            if record["state"] in verdict.FINAL and record["id"] not in ended:
                ended.add(record["id"])
                view.say(*_point_line(record))
        if len(ended) == len(records):
            return
        view.show(partial(points_picture, whole.state, records), _counts(records))
        # Asking about many points takes time; most of it shall be left to them.
        pause_s = 2 * (time.monotonic() - began)
        time.sleep(max(LEAST_PAUSE_S, min(pause_s, MOST_PAUSE_S)))


def _point_line(record: dict[str, Any]) -> tuple[str, str]:
    word, text = verdict.sentence(record, None)
    varied = record.get("matrix") or {}
    name = " ".join([record["id"], *(f"{field}={figures.value(value)}" for field, value in varied.items())])
    return word, f"{name}: {text}"


def points_picture(state: str, records: list[dict[str, Any]], width: int) -> list[Line]:
    """Draw how many points are in which state, and a bar of those that have ended."""
    ended = sum(record["state"] in verdict.FINAL for record in records)
    done, rest = figures.bar(ended / len(records), 20)
    counts = output.clip(_counts(records), width - output.WORD_WIDTH - 22)
    return [[(f"{state:<{output.WORD_WIDTH}}", state), (done, "bar"), (rest, "dim"), (f"  {counts}", "")]]


def _counts(records: list[dict[str, Any]]) -> str:
    states = [record["state"] for record in records]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))


def _say_end(run: Run, document: dict[str, Any]) -> None:
    if document["state"] in ("failed", "lost") and not document.get("points"):
        for word, text in verdict.explanation(document, run.explain()):
            output.say(word, text)
    else:
        output.say(*verdict.sentence(document, run.record().goal))


def _say_report(run: Run, write: Callable[[list[Run]], Path]) -> None:
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
