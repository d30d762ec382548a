"""Samples what a run uses on this node: CPU, memory, disk, network, InfiniBand, GPUs, energy, and each rank.

Nothing here makes a run fail: a sensor that breaks is one `sensor` event and is then never asked again.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import Any, Callable, Iterable, Optional

from ..metrics import metric_of
from ..protocol import KEY_KIND, KEY_TIME, KEY_VALUES
from . import hardware, proc
from .gpus import GpuSensors
from .proc import Reading, Scope
from .rank_tree import RankTrees


class _Slot:
    """A reading and when it is next due."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.due = float("-inf")


class Sampler:
    """Finds the sensors of this node and reads each as often as it is cheap.

    `say(kind, **fields)` writes an event; it is only ever called by the thread that calls the sampler. Ranks may be
    watched and forgotten by another thread.
    """

    def __init__(self, say: Callable[..., None], period_s: float = 1.0, scope: Optional[Scope] = None) -> None:
        self._say = say
        self._period_s = period_s
        self._scope = scope or Scope()
        self._files = proc.Files()
        self._trees = RankTrees(self._scope)
        self._gpus = GpuSensors(self._scope, say)
        self._slots: list[_Slot] = []

    def open(self) -> None:
        """Find the sensors there are; what is missing is left out, what is broken is said."""
        scope, files = self._scope, self._files
        self._find("cpu", lambda: proc.cpu_readings(scope, files))
        self._find("memory", lambda: proc.memory_readings(scope, files))
        self._find("disk", lambda: proc.disk_readings(scope, files))
        self._find("network", lambda: proc.net_readings(scope, files))
        self._find("cpu energy", lambda: hardware.energy_readings(scope, files))
        self._find("infiniband", lambda: hardware.InfinibandPorts(scope, files, self._say).readings())
        self._find("oom", lambda: hardware.oom_readings(scope, files, self._say))
        self._find("ranks", self._trees.readings)
        self._try("gpu", self._gpus.open, None)
        self._find("gpu", self._gpus.readings)

    def watch_rank(self, rank: int, pid: int) -> None:
        """Sample the process tree under `pid` as rank `rank`."""
        self._trees.watch(rank, pid)

    def forget_ranks(self) -> None:
        """Sample no rank any more."""
        self._trees.forget()

    def sample(self, now: float) -> dict[str, float]:
        """Read what is due at `now`, a time of the monotonic clock."""
        values: dict[str, float] = {}
        for slot in list(self._slots):
            if now >= slot.due:
                # Half a tick early is in time: ticks come a little late or a little early.
                slot.due = now + slot.reading.period_s - self._period_s / 2
                self._ask(slot, now, values)
        return values

    def final(self) -> dict[str, float]:
        """Read everything once more, also what is seldom read."""
        for slot in self._slots:
            slot.due = float("-inf")
        return self.sample(time.monotonic())

    def close(self) -> None:
        """Let go of every file and library."""
        self._slots.clear()
        self._trees.forget()
        self._files.close()
        self._try("gpu", self._gpus.close, None)

    def describe(self) -> dict[str, Any]:
        """Return what this node offers the run, as the `pilot` event reports it."""
        return {
            # Half a CPU of a quota counts as one.
            "cpus": self._try("cpus", lambda: math.ceil(proc.cpu_count(self._scope)), os.cpu_count() or 1),
            "memory_bytes": self._try("memory size", lambda: proc.memory_total(self._scope), 0),
            "gpus": self._try("gpu", self._gpus.describe, []),
            "driver": self._gpus.driver,
            "nics": self._try("nics", lambda: [port for port, _ in hardware.ib_ports(self._scope)], []),
            "kernel": os.uname().release,
        }

    def _find(self, name: str, readings: Callable[[], Iterable[Reading]]) -> None:
        self._slots += self._try(name, lambda: [_Slot(reading) for reading in readings()], [])

    def _ask(self, slot: _Slot, now: float, values: dict[str, float]) -> None:
        try:
            values.update(slot.reading.read(now))
        except Exception as error:
            self._slots.remove(slot)
            self._broken(slot.reading.name, error)

    def _try(self, name: str, ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except Exception as error:
            self._broken(name, error)
            return otherwise

    def _broken(self, name: str, error: Exception) -> None:
        self._say("sensor", name=name, error=_words(error))


def _words(error: Exception) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    return "%s: %s" % (error.strerror.lower(), error.filename) if error.filename else error.strerror.lower()


def main(argv: list[str]) -> int:
    """Sample this machine for a while and show the last value of every metric."""
    # Only this needs it, and a run should not wait for it.
    import argparse

    parser = argparse.ArgumentParser(prog="sample", description="Sample this machine and show what was read.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to sample (default: 5)")
    parser.add_argument("--out", help="append what is read to this file, as JSON lines")
    options = parser.parse_args(argv)
    with open(options.out or os.devnull, "a") as out:
        values = _watch(options.seconds, lambda line: print(json.dumps(line), file=out, flush=True))
    print("\n".join(_table(values)))
    return 0


def _watch(seconds: float, write: Callable[[dict[str, Any]], None]) -> dict[str, float]:
    def say(kind: str, **fields: Any) -> None:
        print("%s: %s" % (kind, json.dumps(fields)), file=sys.stderr)
        write({KEY_TIME: time.time(), KEY_KIND: kind, **fields})

    sampler = Sampler(say)
    sampler.open()
    write({KEY_TIME: time.time(), KEY_KIND: "pilot", **sampler.describe()})
    last: dict[str, float] = {}
    start = time.monotonic()
    for tick in range(int(seconds) + 1):
        time.sleep(max(0.0, start + min(tick, seconds) - time.monotonic()))
        values = sampler.sample(time.monotonic())
        write({KEY_TIME: time.time(), KEY_VALUES: values})
        last.update(values)
    values = sampler.final()
    write({KEY_TIME: time.time(), KEY_VALUES: values})
    sampler.close()
    return {**last, **values}


def _table(values: dict[str, float]) -> list[str]:
    width = max(map(len, values), default=len("METRIC"))
    lines = ["%-*s  %20s  %s" % (width, "METRIC", "VALUE", "UNIT")]
    for name, value in values.items():
        metric = metric_of(name)
        unit = metric.unit if metric else ""
        shown = "%d" % value if value == int(value) else "%.2f" % value
        lines.append("%-*s  %20s  %s" % (width, name, shown, unit))
    return lines
