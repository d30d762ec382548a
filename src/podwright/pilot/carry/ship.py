"""The ship role: sends a node's record through standard output, for engines whose nodes share no folder.

Events go at once, the rest every ten seconds, all within a budget: metrics and series thin out first, then logs stop;
what is kept back is enough for the end states and the last lines. What was thinned is reported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from ..protocol import (
    CLOSED,
    KEY_EPOCH,
    KEY_KIND,
    KEY_NODE,
    KEY_OF,
    KEY_TIME,
    Epoch,
    Frame,
    Order,
    encode_frame,
    json_line,
    parse_line,
    parse_lines,
    read_order,
    read_piece,
    record_name,
    series_files,
)
from ..ranks.thinning import Thinner, is_thinnable, period_at
from ..system.node_identity import identify_node
from ..system.paths import Paths
from ..system.sealed import order_path

EVENTS_S, REST_S = 0.5, 10.0
RESERVE_BYTES = 512 * 1024
PIECE_BYTES = 16 * 1024
THIN = ((0.25, 1.0), (0.5, 10.0), (1.0, 60.0))
"""(share of the budget used, seconds between metrics samples up to there)"""
SERIES_THIN = ((0.1, 0.0), (0.15, 1.0), (0.2, 60.0))
"""(share of the budget used by series, seconds between two lines of a rank up to there); beyond the last none come."""
LOG_SHARE = 0.5
SERIES_S = 1.0
"""How long the series of all ranks may take at a look; of what comes beyond it the last lines go, and all count."""
SERIES_LINES = 256
"""Lines of a series after which its budget is looked at again."""
TAIL_BYTES = 192 * 1024
BACKLOG_BYTES = 128 * 1024
AT_ONCE = ("events.jsonl", "ship.jsonl")
"""Files that may use half of the reserve before the end: a state change is worth more than what it is kept for."""


class Shipper:
    """Sends one node's record within the order's budget."""

    def __init__(
        self,
        order: Order,
        folder: str,
        node: int,
        restart: int,
        out: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._node, self._restart, self._out = folder, node, restart, out
        self._monotonic = monotonic
        self._budget = order.frames_bytes
        self._used = self._log_used = 0
        self._seq = 0
        self._epoch: Epoch = (restart, 0)
        self._read: Dict[str, int] = {}
        self._written: Dict[str, int] = {}
        self._last_sample = 0.0
        self._period_s = 0.0
        self._log_stopped = self._metrics_stopped = self._is_final = False
        self._backlog = b""
        self._results: Dict[str, Thinner] = {}
        self._series: Dict[str, Thinner] = {}
        self._series_used = self._series_rows = self._series_sent = 0
        self._series_s = 0.0
        self._series_cut: Set[str] = set()

    def events(self) -> None:
        """Send new events; what finds no room is held, the newest of it, until the end."""
        self._thin()
        data = self._backlog + b"".join(self._worth_sending(self._new("events.jsonl")))
        self._backlog = _last_lines(self._send("events.jsonl", data), BACKLOG_BYTES)

    def _worth_sending(self, data: bytes) -> Iterator[bytes]:
        """Yield lines; once metrics thin out results do, added up meanwhile so that each last value comes."""
        for line in data.splitlines(keepends=True):
            row = parse_line(line) or {}
            is_result = row.get(KEY_KIND) == "result" and is_thinnable(row, "values")
            if not is_result or self._period_s <= THIN[0][1]:
                yield line
                continue
            thinner = self._results.setdefault(str(row.get("rank")), Thinner(key="values"))
            thinner.period_s = self._period_s
            due = thinner.take(row)
            if due is not None:
                yield json_line(due)

    def rest(self) -> None:
        """Send new metrics, series and log lines, as far as their budget goes."""
        self._metrics()
        deadline = self._monotonic() + SERIES_S
        for _, path in series_files(self._folder):
            self._send_series(os.path.basename(path), deadline)
        if self._log_stopped:
            return
        data = self._new("merged.log")
        unsent = data
        if self._log_used + len(data) <= LOG_SHARE * self._budget:
            unsent = self._send("merged.log", data)
        self._log_used += len(data) - len(unsent)
        if unsent:
            self._log_stopped = True
            self._read["merged.log"] -= len(unsent)
            self._note(what="log", text="the log is cut here; its last lines come at the end")

    def final(self) -> None:
        """Send what the reserve is for: all events, and the last lines of a log that was cut."""
        self.events()
        self.rest()
        self._is_final = True
        self._end_series()
        rests = (thinner.rest() for thinner in self._results.values())
        self._backlog += b"".join(json_line(row) for row in rests if row is not None)
        self.events()
        if self._log_stopped:
            self._send("merged.log", _last_lines(self._new("merged.log"), TAIL_BYTES))

    def _send_series(self, name: str, deadline: float) -> None:
        """Send what a rank reported since the last look, further and further apart as the budget of series is used up.

        Where that would take long only the last line of a piece is looked at: the end of a run waits for what is sent.
        """
        thinner = self._series.setdefault(name, Thinner())
        for data in self._pieces(name):
            rows = parse_lines(data) if self._monotonic() < deadline else last_row(data)
            lines: List[bytes] = []
            for row in filter(is_thinnable, rows):
                self._series_rows += row.get(KEY_OF, 1)
                thinner.period_s = self._series_s
                due = thinner.take(row)
                if due is not None:
                    lines.append(json_line(due))
                if len(lines) >= SERIES_LINES:
                    self._put_series(name, lines)
                    lines = []
            self._put_series(name, lines)

    def _put_series(self, name: str, lines: List[bytes]) -> None:
        """Send lines while there is budget for series, and see how far apart the next ones are."""
        before = self._used
        if self._series_used <= SERIES_THIN[-1][0] * self._budget or self._is_final:
            # A newline first: of the lines before these only a part may have found room.
            unsent = self._send(name, b"\n" * (name in self._series_cut) + b"".join(lines))
            self._series_cut = self._series_cut | {name} if unsent else self._series_cut - {name}
            self._series_sent += len(lines) - unsent.count(b"\n")
        self._series_used += self._used - before
        period_s = period_at(self._series_used / self._budget, SERIES_THIN)
        if period_s != self._series_s:
            self._note(what="series", from_s=self._series_s, to_s=period_s)
            self._series_s = period_s

    def _end_series(self) -> None:
        """Send the last values of each rank, and report how many lines did not go."""
        for name, thinner in self._series.items():
            row = thinner.rest()
            if row is not None:
                self._put_series(name, [json_line(row)])
        if self._series_sent < self._series_rows:
            sent = f"node {self._node} sent {self._series_sent} of the {self._series_rows} lines"
            self._note(what="series", text=f"{sent} that its ranks reported")

    def _new(self, name: str) -> bytes:
        """Return whole lines that came since the last look; a log that was turned over starts again."""
        return b"".join(self._pieces(name))

    def _pieces(self, name: str) -> Iterator[bytes]:
        """Yield whole lines that came since the last look, in pieces."""
        before = -1
        while self._read.get(name, 0) != before:
            before = self._read.get(name, 0)
            data, self._read[name] = read_piece(os.path.join(self._folder, name), before)
            yield data

    def _thin(self) -> None:
        period_s = period_at(self._used / self._budget, THIN)
        if period_s != self._period_s:
            if self._period_s:
                self._note(what="metrics", from_s=self._period_s, to_s=period_s)
            self._period_s = period_s

    def _metrics(self) -> None:
        self._thin()
        lines: List[bytes] = []
        for line in self._new("metrics.jsonl").splitlines(keepends=True):
            row = parse_line(line) or {}
            if row.get(KEY_TIME, 0.0) - self._last_sample >= self._period_s * 0.9:
                self._last_sample = row.get(KEY_TIME, 0.0)
                lines.append(line)
        if self._send("metrics.jsonl", b"".join(lines)) and not self._metrics_stopped:
            self._metrics_stopped = True
            self._note(what="metrics", text="the budget is used up: no more metrics come")

    def _note(self, **fields: Any) -> None:
        at = {KEY_TIME: round(time.time(), 3), KEY_EPOCH: list(self._epoch), KEY_NODE: self._node}
        self._send("ship.jsonl", json_line({**at, KEY_KIND: "thinned", **fields}))

    def _room(self, name: str) -> int:
        if self._is_final:
            return self._budget - self._used
        reserve = RESERVE_BYTES // 2 if name in AT_ONCE else RESERVE_BYTES
        return self._budget - reserve - self._used

    def _send(self, name: str, data: bytes) -> bytes:
        """Send in pieces; return what the budget has no room for."""
        while data:
            piece = data[:PIECE_BYTES]
            line = self._encode(name, piece)
            # Its size is known only once it is packed.
            while line is None:
                piece = piece[: len(piece) // 2]
                line = self._encode(name, piece)
            if len(line) >= self._room(name):
                break
            self._out(line)
            self._used += len(line) + 1
            self._seq += 1
            self._written[name] = self._written.get(name, 0) + len(piece)
            data = data[len(piece) :]
        return data

    def _encode(self, name: str, piece: bytes) -> Optional[str]:
        file = f"{record_name(self._node, self._restart)}/{name}"
        return encode_frame(Frame(self._node, self._epoch, self._seq, file, self._written.get(name, 0), piece))


def last_row(data: bytes) -> Iterator[Dict[str, Any]]:
    """Yield the last of some lines of a series as one that stands for all of them."""
    start = data.rfind(b"\n", 0, -1) + 1
    for row in parse_lines(data[start:]):
        yield {**row, KEY_OF: data.count(b"\n")}


def _last_lines(data: bytes, limit_bytes: int) -> bytes:
    """Return the last whole lines; the newline before them ends a line of which only the start was sent."""
    return data if len(data) <= limit_bytes else b"\n" + data[-limit_bytes:].partition(b"\n")[2]


def main(argv: List[str]) -> int:
    order_file = argv[0]
    order = read_order(order_path(order_file))
    identity = identify_node(os.environ)
    folder = Paths(order, order_file, identity).record
    shipper = Shipper(order, folder, identity.node, identity.restart, lambda line: print(line, flush=True))
    stopped: List[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rest_at = 0.0
    while not stopped and not os.path.exists(os.path.join(folder, CLOSED)):
        shipper.events()
        if time.monotonic() >= rest_at:
            shipper.rest()
            rest_at = time.monotonic() + REST_S
        time.sleep(EVENTS_S)
    shipper.final()
    sys.stdout.flush()
    return 0
