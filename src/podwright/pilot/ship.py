"""The ship role: sends a node's record through standard output, for engines whose nodes share no folder.

Events go at once, the rest every ten seconds, all within a budget: metrics thin out first, then logs stop; what is kept
back is enough for the end states and the last lines. What was thinned is told.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from .node import Paths
from .place import find_place
from .protocol import Epoch, Frame, Order, encode_frame, parse_line, read_order, record_name

EVENTS_S, REST_S = 0.5, 10.0
RESERVE_BYTES = 512 * 1024
PIECE_BYTES = 16 * 1024
THIN = ((0.25, 1.0), (0.5, 10.0), (1.0, 60.0))
"""(share of the budget used, seconds between metrics samples up to there)"""
LOG_SHARE = 0.5
TAIL_BYTES = 192 * 1024


class Shipper:
    def __init__(self, order: Order, folder: str, node: int, restart: int, out: Callable[[str], None]) -> None:
        self._folder, self._node, self._restart, self._out = folder, node, restart, out
        self._budget = order.frames_bytes
        self._used = self._log_used = 0
        self._seq = 0
        self._epoch: Epoch = (restart, 0)
        self._read: Dict[str, int] = {}
        self._written: Dict[str, int] = {}
        self._last_sample = 0.0
        self._period_s = 0.0
        self._log_stopped = False

    def events(self) -> None:
        self._send("events.jsonl", self._new("events.jsonl"))

    def rest(self) -> None:
        self._metrics()
        data = self._new("merged.log")
        if not self._log_stopped and self._log_used + len(data) > LOG_SHARE * self._budget:
            self._log_stopped = True
            self._note(what="log", text="the log is cut here; its last lines come at the end")
        if not self._log_stopped:
            self._log_used += len(data)
            self._send("merged.log", data)

    def final(self) -> None:
        """What the reserve is for: all events, and the last lines of a log that was cut."""
        self._budget += RESERVE_BYTES
        self.events()
        self._metrics()
        if self._log_stopped:
            path = os.path.join(self._folder, "merged.log")
            self._read["merged.log"] = max(self._read.get("merged.log", 0), os.path.getsize(path) - TAIL_BYTES)
        self._send("merged.log", self._new("merged.log"))

    def _new(self, name: str) -> bytes:
        """Whole lines that came since the last look; a log that was turned over starts anew."""
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                start = self._read.get(name, 0)
                if os.fstat(file.fileno()).st_size < start:
                    start = 0
                file.seek(start)
                data = file.read()
        except OSError:
            return b""
        whole = data.rfind(b"\n") + 1
        self._read[name] = start + whole
        return data[:whole]

    def _metrics(self) -> None:
        period_s = next((p for share, p in THIN if self._used <= share * self._budget), THIN[-1][1])
        if period_s != self._period_s:
            if self._period_s:
                self._note(what="metrics", from_s=self._period_s, to_s=period_s)
            self._period_s = period_s
        kept: List[bytes] = []
        for line in self._new("metrics.jsonl").splitlines(keepends=True):
            row = parse_line(line) or {}
            if row.get("t", 0.0) - self._last_sample >= period_s * 0.9:
                self._last_sample = row.get("t", 0.0)
                kept.append(line)
        self._send("metrics.jsonl", b"".join(kept))

    def _note(self, **fields: Any) -> None:
        row = {"t": round(time.time(), 3), "e": list(self._epoch), "n": self._node, "k": "thinned", **fields}
        self._send("ship.jsonl", json.dumps(row).encode() + b"\n")

    def _send(self, name: str, data: bytes) -> None:
        while data:
            piece = data[:PIECE_BYTES]
            line = self._encode(name, piece)
            while line is None:
                piece = piece[: len(piece) // 2]
                line = self._encode(name, piece)
            if self._used + len(line) > self._budget - RESERVE_BYTES:
                return
            self._out(line)
            self._used += len(line) + 1
            self._seq += 1
            self._written[name] = self._written.get(name, 0) + len(piece)
            data = data[len(piece) :]

    def _encode(self, name: str, piece: bytes) -> Optional[str]:
        file = f"{record_name(self._node, self._restart)}/{name}"
        return encode_frame(Frame(self._node, self._epoch, self._seq, file, self._written.get(name, 0), piece))


def main(order_file: str) -> int:
    order = read_order(order_file)
    place = find_place(os.environ, None)
    folder = Paths(order, order_file, place).record
    shipper = Shipper(order, folder, place.node, place.restart, lambda line: print(line, flush=True))
    stopped: List[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rest_at = 0.0
    while not stopped and not os.path.exists(os.path.join(folder, "closed")):
        shipper.events()
        if time.monotonic() >= rest_at:
            shipper.rest()
            rest_at = time.monotonic() + REST_S
        time.sleep(EVENTS_S)
    shipper.final()
    sys.stdout.flush()
    return 0
