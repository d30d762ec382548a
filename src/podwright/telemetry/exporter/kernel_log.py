"""XID errors as the kernel tells them: DCGM's last value sticks, hides the second of a kind and misses some."""

from __future__ import annotations

import collections
import os
import re
import subprocess
import threading
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..page import Labels, MetricSample
from .jobs import Owner

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.\d)?\): (\d{1,4})\b")
_STAMP = re.compile(r"(\d{9,11}\.\d+) ")
_MAX_LINE, _MAX_WAITING, _MAX_READ = 65536, 10_000, 16 << 20
_ACTIONS = {
    "restart_run": "8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 94 96-105 126-135 139",
    "reset": "46 62 64 95 109 110 119 120 136 140 143 155 156 158",
    "reboot": "79",
    "service": "78 142",
    "note": "37 38 43 44 63 66 67 92 93 106 107 121 137 141 152 153 157 160 161",
}
"""What NVIDIA's catalogue asks for after an XID; all others are to be looked at: 48, 74 and 154 by their own text."""


def _by_number() -> Iterator[Tuple[int, str]]:
    for action, text in _ACTIONS.items():
        for word in text.split():
            first, _, last = word.partition("-")
            yield from ((number, action) for number in range(int(first), int(last or first) + 1))


def action_of(number: int) -> str:
    """Return what is to be done after an XID."""
    return _BY_NUMBER.get(number, "check")


_BY_NUMBER = dict(_by_number())


class XidLine(NamedTuple):
    """One error that the kernel told: of which GPU, by its PCI address, and when."""

    pci: str
    number: int
    at: float


def parse(line: str, now: float) -> Optional[XidLine]:
    """Return the XID of a line of the kernel's log; a line without a time of its own is of now."""
    found = _XID.search(line)
    if found is None:
        return None
    stamp = _STAMP.match(line)
    domain, _, rest = found[1].lower().partition(":")
    return XidLine("%04x:%s.0" % (int(domain, 16), rest), int(found[2]), float(stamp[1]) if stamp else now)


class LogFile:
    """A file that the kernel's log is written to; one that is begun anew is read from its start."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number: Optional[int] = None
        self._rest = b""
        self._at: Tuple[int, int] = (0, 0)

    def lines(self) -> List[str]:
        """Return the lines that are whole and new; of very many the first, and at the next look those behind them."""
        about = os.stat(self._path)
        inode, offset = self._at
        if inode != about.st_ino or about.st_size < offset:
            inode, offset, self._rest = about.st_ino, 0, b""
        with open(self._path, "rb") as file:
            file.seek(offset)
            data = file.read(_MAX_READ)
        self._at = (inode, offset + len(data))
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_MAX_LINE:]
        return [line.decode("utf-8", "replace") for line in whole]

    def close(self) -> None:
        """Hold nothing: the file is opened anew for every look."""


class KernelJournal:
    """The kernel's lines of systemd's journal, of this boot: one journalctl that goes on, as each start costs more."""

    def __init__(self, command: Tuple[str, ...] = ("journalctl",)) -> None:
        how = ("--quiet", "--boot", "--follow", "--no-tail", "--output=short-unix", "_TRANSPORT=kernel")
        self._command = (*command, *how)
        self._arrived: "collections.deque[str]" = collections.deque(maxlen=_MAX_WAITING)
        self._process: Optional["subprocess.Popen[str]"] = None
        self._follower: Optional[threading.Thread] = None

    def lines(self) -> List[str]:
        """Return the lines since the last look; an OSError where journalctl has ended, which is then started again."""
        if self._follower is None:
            self._follower = self._started()
        elif not self._follower.is_alive() and not self._arrived:
            self.close()
            raise OSError("journalctl has ended")
        return [self._arrived.popleft() for _ in range(len(self._arrived))]

    def _started(self) -> threading.Thread:
        process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
        )
        self._process = process
        thread = threading.Thread(target=self._follow, args=(process,), name="journal", daemon=True)
        thread.start()
        return thread

    def _follow(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if _XID.search(line):
                self._arrived.append(line)

    def close(self) -> None:
        """End journalctl."""
        if self._process is not None and self._follower is not None:
            self._process.kill()
            self._process.wait()
            self._follower.join()
            assert self._process.stdout is not None
            self._process.stdout.close()
        self._process = self._follower = None


class XidCounts:
    """How often the kernel told of each XID of each GPU, with the run that held the GPU when it came."""

    def __init__(
        self, lines: Callable[[], List[str]], gpu_of: Callable[[str], str], owner_of: Callable[[str], Owner]
    ) -> None:
        self._lines, self._gpu_of, self._owner_of = lines, gpu_of, owner_of
        self._counts: Dict[Tuple[str, int, Owner], Tuple[int, float]] = {}
        self._last: Dict[str, int] = {}
        self.is_first = True

    @property
    def last(self) -> Dict[str, int]:
        """Return the last XID of each GPU."""
        return {self._gpu_of(pci): number for pci, number in self._last.items()}

    def read(self, now: float) -> List[MetricSample]:
        """Take in what is new; what was told before the first look is of nobody who holds a GPU now."""
        wall = time.time()
        for line in self._lines():
            xid = parse(line, wall)
            if xid is not None:
                self._count(xid)
        self.is_first = False
        return list(self._told())

    def _count(self, xid: XidLine) -> None:
        owner = Owner() if self.is_first else self._owner_of(self._gpu_of(xid.pci))
        key = (xid.pci, xid.number, owner)
        count, _ = self._counts.get(key, (0, 0.0))
        self._counts[key] = (count + 1, xid.at)
        self._last[xid.pci] = xid.number

    def _told(self) -> Iterator[MetricSample]:
        for (pci, number, owner), (count, at) in self._counts.items():
            # A GPU that was found later has its own number by now.
            gpu: Labels = (("gpu", self._gpu_of(pci)), ("xid", str(number)), ("action", action_of(number)))
            labels = (*gpu, *owner.labels())
            yield MetricSample("podwright_gpu_xid_errors_total", labels, float(count))
            yield MetricSample("podwright_gpu_xid_last_timestamp_seconds", labels, at)
