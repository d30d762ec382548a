"""A run's folder: where its files are, and how they are read while they grow."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from podwright.files.sizes import bytes_below
from podwright.files.untrusted import open_untrusted, read_untrusted
from podwright.pilot.protocol import (
    PROGRESS,
    parse_lines,
    piece_of,
    pieces,
    read_piece,
    record_folders,
    whole_number,
)
from podwright.runs import fields
from podwright.runs.event_reader import parse_event, parse_sample
from podwright.runs.events import Event, Gap, PilotStarted, RankStarted, Sample, SoftwareFound, Submitted
from podwright.runs.metrics import METRICS_FILE, read_metrics
from podwright.runs.record import Asked, parse_asked
from podwright.runs.series import SERIES_FILE, ToldValue, has_lines, of_events, of_lines, read_series
from podwright.spec.problems import Refusal, refuse

Row = TypeVar("Row")
SOFTWARE = ("python", "torch", "cuda", "nccl", "cudnn")
Kind = TypeVar("Kind", bound=Event)

POD_FILE = Path("spec", "pod.yaml")
"""The run's own copy of its pod; the points of a matrix have their parent's."""


@dataclass(frozen=True)
class LogLine:
    """A line that a rank, or the launcher where `rank` is None, wrote on a node.

    `stream` is `o` or `e`, or `p` for the present state of a line that is still written over.
    """

    t: float
    node: int
    rank: int | None
    stream: str
    text: str


class RunFolder:
    """Reads only; the pilots and `launch` write."""

    def __init__(self, path: Path, stand_in: Asked | None = None, in_home: bool = False) -> None:
        self.path = path
        self._stand_in = stand_in
        """What is known of the run from elsewhere, where its own run.json cannot be read."""
        self._in_home = in_home
        """In a home the folder's name is the run's id; a copy that lies elsewhere may be called anything."""
        self._held: tuple[Event, ...] | None = None

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.path.name

    @property
    def job_path(self) -> Path:
        """Return the folder of the whole job, where all that its points share lies."""
        return self.path.parent / self.asked.job_id

    @cached_property
    def asked(self) -> Asked:
        """Return what was asked of the run."""
        if self._stand_in is not None:
            return self._stand_in
        self.refuse_stray()
        path = self.path / "run.json"
        try:
            asked = parse_asked(json.loads(read_untrusted(self.path, path.name)))
            if self._in_home and asked.id != self.id:
                raise ValueError("it is the file of another run")
            return asked
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        except (ValueError, RecursionError) as error:
            reason = str(error)
        raise refuse(f"{path} cannot be read: {reason}", hint="`podwright rm` removes the run")

    @property
    def strayed_to(self) -> Path | None:
        """Return where a home's entry leads that is a link to another place than a run of its name; else None.

        The folder of a run may lie where the nodes of a cluster see it, under the run's own name. A rank is the user,
        and can put any link there.
        """
        if not self._in_home or not self.path.is_symlink():
            return None
        try:
            real = self.path.resolve()
        except (OSError, RuntimeError):  # a link that leads to itself
            return self.path
        return None if real.name == self.id else real

    def refuse_stray(self) -> None:
        """Refuse an entry that leads elsewhere: nothing is read or written there."""
        real = self.strayed_to
        if real is not None:
            message = f"{self.path} is a link to {real}, which is no run of this name"
            raise refuse(message, hint="`podwright rm` removes the link and leaves what it leads to")

    def size_bytes(self) -> int:
        """Return the bytes of all that is in it; what other runs share with it counts for none of them."""
        return 0 if self.strayed_to else bytes_below(self.path.resolve())

    @property
    def is_readable(self) -> bool:
        """Return whether run.json is there and says what was asked; it may go while the run is at work."""
        try:
            return bool(self.asked) and (self.path / "run.json").exists()
        except Refusal:
            return False

    @property
    def record_path(self) -> Path:
        """Return the folder that the pilots write to."""
        return self.path / "record"

    @property
    def is_sealed(self) -> bool:
        """Return whether the run is over and its folder closed."""
        return (self.path / "record.json").exists()

    def client_events(self) -> list[Event]:
        """Return what clients did and saw, in the order they wrote it."""
        return Tail(self, parse_event, of_run=("client.jsonl",)).read()

    def gaps(self) -> list[str]:
        """Return what is said to be missing, of the record or of what the target should have given the run."""
        return [event.text for event in self.client_events() if isinstance(event, Gap)]

    @property
    def handle(self) -> str | None:
        """Return what the engine calls the run's job; None before it was submitted."""
        for event in reversed(self.client_events()):
            if isinstance(event, Submitted):
                return event.handle
        return None

    def events(self) -> Iterator[Event]:
        """Yield everything anybody wrote, pilots first."""
        return self.event_tail().rows() if self._held is None else iter(self._held)

    def holding(self, events: Iterable[Event]) -> RunFolder:
        """Return the same folder with these in place of its events: for who has read them and asks for kinds often."""
        folder = RunFolder(self.path, self._stand_in, self._in_home)
        folder._held = tuple(events)
        return folder

    def rank_processes(self, node: int) -> dict[int, int]:
        """Return the processes of a node's ranks in the last attempt, by rank, as the node numbers them."""
        started = [event for event in self.events_of(RankStarted) if event.node == node and event.pid is not None]
        last = max((event.epoch for event in started if event.epoch is not None), default=None)
        return {event.rank: event.pid for event in started if event.pid is not None and event.epoch == last}

    def versions(self) -> dict[int, dict[str, str]]:
        """Return by node what its ranks started with and the driver below them, by name."""
        versions: dict[int, dict[str, str]] = {}
        for event in self.events_of(PilotStarted, SoftwareFound):
            names = ("driver",) if isinstance(event, PilotStarted) else SOFTWARE
            found = {name: getattr(event, name) for name in names if getattr(event, name)}
            versions.setdefault(event.node, {}).update(found)
        return dict(sorted(versions.items()))

    def events_of(self, *kinds: type[Kind]) -> list[Kind]:
        """Return the events of these kinds, pilots' first."""
        return [event for event in self.events() if isinstance(event, kinds)]

    def event_tail(self) -> Tail[Event]:
        """Return a reader that gives each event once, as they come."""
        return Tail(self, parse_event, ("events.jsonl", "ship.jsonl"), ("engine.jsonl", "client.jsonl"))

    def sample_tail(self) -> Tail[Sample]:
        """Return a reader that gives each sample of a run that is not sealed once, as they come."""
        return Tail(self, parse_sample, ("metrics.jsonl",))

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics that the pilots wrote, node by node; from the Parquet file once the run is sealed."""
        sealed = self.path / METRICS_FILE
        if sealed.exists():
            return read_metrics(sealed)
        return self.sample_tail().rows()

    def series(self) -> Iterator[ToldValue]:
        """Yield every value that the ranks told, rank by rank; from the Parquet file once the run is sealed.

        A run of version 0.1 has no series: its events hold all values.
        """
        sealed = self.path / SERIES_FILE
        if sealed.exists():
            return read_series(sealed)
        if has_lines(self.record_path):
            return of_lines(self.record_path)
        return of_events(self.events())

    def saved_bytes(self) -> int:
        """Return how much of the run is saved here: results and checkpoints."""
        return sum(bytes_below(self.path / name, shared_too=True) for name in ("results", "checkpoints"))

    def log_files(self) -> list[tuple[int, Path]]:
        """Return (node, merged log) in the order of writing; an older half comes before the newer."""
        files = []
        self.refuse_stray()
        for node, _, path in record_folders(str(self.record_path)):
            for name in ("merged.log.1", "merged.log"):
                if Path(path, name).is_file():
                    files.append((node, Path(path, name)))
        return files

    def log_lines(self) -> Iterator[LogLine]:
        """Yield all nodes' lines in order of time; of one that is written over, as a progress bar, its last state."""
        streams = (self._lines_of(node, path) for node, path in self.log_files())
        return _settled(heapq.merge(*streams, key=lambda line: line.t))

    def _lines_of(self, node: int, path: Path) -> Iterator[LogLine]:
        for data in pieces(str(path)):
            yield from _log_lines(node, data)


def _settled(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Leave out the states of lines that were followed by another of the same rank."""
    open_lines: dict[tuple[int, int | None], LogLine] = {}
    for line in lines:
        if line.stream == PROGRESS:
            open_lines[line.node, line.rank] = line
        else:
            open_lines.pop((line.node, line.rank), None)
            yield line
    yield from sorted(open_lines.values(), key=lambda line: line.t)


def _log_lines(node: int, data: bytes) -> Iterator[LogLine]:
    for raw in data.splitlines():
        line = parse_log_line(node, raw)
        if line:
            yield line


def parse_log_line(node: int, raw: bytes) -> LogLine | None:
    """Return a line of a merged log, `SECONDS RANK STREAM TEXT`; None for any other line."""
    parts = raw.decode("utf-8", "replace").rstrip("\n").split(" ", 3)
    if len(parts) < 4:
        return None
    seconds, number, stream, text = parts
    rank = whole_number(number)
    if rank is None and number != "-":
        return None
    try:
        t = float(seconds)
    except ValueError:
        return None
    if fields.moment(t) is None:  # no date that could be shown
        return None
    return LogLine(t, node, rank, stream, text)


class Tail(Generic[Row]):
    """Reads what has come since the last reading, from files that may not be there yet.

    A row that `parse` cannot understand is left out and counted. A torn line is none: a write was cut off there.
    """

    def __init__(
        self,
        folder: RunFolder,
        parse: Callable[[object], Row | None],
        of_nodes: tuple[str, ...] = (),
        of_run: tuple[str, ...] = (),
    ) -> None:
        self._folder, self._parse = folder, parse
        self._of_nodes, self._of_run = of_nodes, of_run
        self._offsets: dict[str, int] = {}
        self.left_out = 0

    def read(self) -> list[Row]:
        """Return what has come since the last reading; all there is, when a file is shorter than what was read."""
        return list(self.rows())

    def rows(self) -> Iterator[Row]:
        """Yield what `read` returns, without holding it."""
        self.begin_anew()
        for path in self._paths():
            before = -1
            while self._offsets.get(path, 0) != before:
                before = self._offsets.get(path, 0)
                data, self._offsets[path] = read_piece(path, before)
                yield from self._understood(parse_lines(data))

    def begin_anew(self) -> bool:
        """Return whether a file is shorter than what was read of it: all that was read before counts no more."""
        is_anew = any(_size(path) < offset for path, offset in self._offsets.items())
        if is_anew:
            self._offsets, self.left_out = {}, 0
        return is_anew

    def _understood(self, lines: Iterable[object]) -> Iterator[Row]:
        for line in lines:
            row = self._parse(line)
            if row is None:
                self.left_out += 1
            else:
                yield row

    def _paths(self) -> Iterator[str]:
        if self._folder.strayed_to is not None:
            return
        for _, _, path in record_folders(str(self._folder.record_path)):
            for name in self._of_nodes:
                yield f"{path}/{name}"
        for name in self._of_run:
            yield str(self._folder.path / name)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a path here is a plain string, of which a home has thousands
    except OSError:
        return 0


class LogTail:
    """Follows the merged logs of all nodes; lines come in order of time within one reading.

    `last_bytes`: how much of each file is read that is there at the first reading; None: all of it.
    """

    def __init__(self, folder: RunFolder, last_bytes: int | None = None) -> None:
        self._folder, self._last_bytes = folder, last_bytes
        self._seen: dict[tuple[int, int], int] = {}

    def read(self) -> list[LogLine]:
        """Return the lines that have come since the last reading."""
        lines: list[LogLine] = []
        for node, path in self._folder.log_files():
            lines += self._fresh(node, path)
        self._last_bytes = None
        return sorted(lines, key=lambda line: line.t)

    def _fresh(self, node: int, path: Path) -> Iterator[LogLine]:
        """Yield what is new in a file, known by its inode: when the log is turned over, its name goes to a new one."""
        try:
            with open_untrusted(path.parent, path.name) as file:
                status = os.fstat(file.fileno())
                key, before = (status.st_dev, status.st_ino), -1
                if self._last_bytes is not None:  # a line that is cut there is no line, and is left out
                    self._seen[key] = max(0, status.st_size - self._last_bytes)
                while self._seen.get(key, 0) != before:
                    before = self._seen.get(key, 0)
                    data, self._seen[key] = piece_of(file, before)
                    yield from _log_lines(node, data)
        except OSError:
            return
