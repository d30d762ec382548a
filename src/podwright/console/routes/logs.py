"""Logs of a run: lines of all ranks, the bytes of one from any place, and a search that goes on where it stopped."""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from podwright import launch
from podwright.console.access.guard import FILE_POLICY
from podwright.console.routes.run import found
from podwright.console.web.answers import Answer, Blob, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.spec.problems import Refusal, refuse

FIRST_BYTES = 1 << 18
"""What a log page shows at first: the end of the log, however long it is."""
MAX_BYTES = 1 << 20
MAX_LINES = 5000
RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")


@dataclass(frozen=True)
class LinesRequest:
    """Lines of a run's log; of one rank where one is named, the last so many."""

    run: str
    rank: int | None = None
    tail: int = 1000


@dataclass(frozen=True)
class LogRequest:
    """A rank of a run."""

    run: str
    rank: int = 0


@dataclass(frozen=True)
class SearchRequest:
    """What is looked for in a rank's log, from where on."""

    run: str
    text: str
    rank: int = 0
    begin: int = 0


@dataclass(frozen=True)
class LogPageRequest:
    """The log page: a rank, the place it begins at, or what is looked for."""

    run: str
    rank: int = 0
    begin: int | None = None
    text: str = ""
    at: int = 0


def log_lines(visit: Visit, asked: LinesRequest) -> Answer:
    """Return the last lines of all ranks, or of one, as `logs --json` has them."""
    if not 1 <= asked.tail <= MAX_LINES:
        raise refuse(f"is {asked.tail}", f"1 to {MAX_LINES} lines", field="tail")
    run = found(visit, asked.run)
    lines = (line for line in run.folder.log_lines() if asked.rank in (None, line.rank))
    return JsonAnswer([asdict(line) for line in deque(lines, asked.tail)])


def log_bytes(visit: Visit, asked: LogRequest) -> Answer:
    """Return the bytes that a rank wrote; with a Range some of them, at most a MiB. X-Size is how many there are."""
    log = launch.RankBytes(found(visit, asked.run), asked.rank)
    begin, count = _range(visit.headers.get("range", ""), log.size)
    data = log.read(begin, count)
    headers = {"X-Size": str(log.size), "Accept-Ranges": "bytes", "Content-Security-Policy": FILE_POLICY}
    if begin >= log.size and log.size:
        return Blob(b"", "text/plain; charset=utf-8", 416, {**headers, "Content-Range": f"bytes */{log.size}"})
    if not data or (begin == 0 and len(data) == log.size):
        return Blob(data, "text/plain; charset=utf-8", 200, headers)
    part = f"bytes {begin}-{begin + len(data) - 1}/{log.size}"
    return Blob(data, "text/plain; charset=utf-8", 206, {**headers, "Content-Range": part})


def _range(header: str, size: int) -> tuple[int, int]:
    """Return where a part begins and how long it is at most; without a range it is the end."""
    match = RANGE.fullmatch(header.strip())
    if match is None:
        return max(0, size - FIRST_BYTES), FIRST_BYTES
    first, last, end = match.groups()
    if end is not None:
        count = min(int(end), MAX_BYTES)
        return max(0, size - count), count
    until = int(last) if last is not None else size
    return int(first), max(0, min(until + 1 - int(first), MAX_BYTES))


def search_log(visit: Visit, asked: SearchRequest) -> Answer:
    """Return lines that have a text, as far as one turn goes; `next` says where another goes on."""
    log = launch.RankBytes(found(visit, asked.run), asked.rank)
    return JsonAnswer(log.search(asked.text, max(0, asked.begin)).as_json())


def log_page(visit: Visit, asked: LogPageRequest) -> Answer:
    """Show a rank's log, its end first; or what was looked for in it."""
    run = found(visit, asked.run)
    view: dict[str, Any] = {
        "title": f"{run.id}: log",
        "run": run,
        "record": run.last_known(),
        "asked": asked,
        "problems": (),
    }
    shown: dict[str, Any] = {"hits": None, "lines": [], "begin": 0, "end": 0, "size": 0, "world": 0}
    try:
        log = launch.RankBytes(run, asked.rank)
        begin = max(0, log.size - FIRST_BYTES) if asked.begin is None else max(0, asked.begin)
        data = log.read(begin, FIRST_BYTES)
        shown |= {"begin": begin, "end": begin + len(data), "size": log.size, "world": log.world}
        shown["lines"] = _whole_lines(data, begin)
        if asked.text:
            shown["hits"] = log.search(asked.text, asked.at)
    except Refusal as refusal:
        view["problems"] = refusal.problems
    return Page("logs", {**view, **shown, "ranks": list(itertools.islice(range(shown["world"]), 512))})


def _whole_lines(data: bytes, begin: int) -> list[str]:
    """Return the lines of a piece; the torn first one is left out where it does not begin the log."""
    if begin and b"\n" in data:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace").splitlines()
