"""Sensors, each in a thread of its own: one that fails or hangs is a metric, and takes from the page only its own."""

from __future__ import annotations

import sys
import threading
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional

from ..page import Labels, MetricSample

Read = Callable[[float], List[MetricSample]]
_GRACE = 3
"""Readings are shown for as long as this many periods, and at least as many seconds."""
_WORD_S = 600.0


class PanelSensor(NamedTuple):
    """What is read every `period_s`: `read(now)` returns all of its samples, or raises."""

    name: str
    period_s: float
    read: Read


class Look(NamedTuple):
    """What came of a reading, and when."""

    at: float
    took_s: float
    samples: List[MetricSample]


class SensorThread(threading.Thread):
    """Reads one sensor for ever; a driver that hangs holds up nobody else."""

    def __init__(self, sensor: PanelSensor, ended: threading.Event) -> None:
        super().__init__(name=sensor.name, daemon=True)
        self.sensor, self._ended = sensor, ended
        self.look: Optional[Look] = None
        self.error = ""
        self.looked = threading.Event()
        self._told = float("-inf")

    def run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(due - time.monotonic(), 0.0)):
            self.once()
            self.looked.set()
            # After a reading that took longer than a period the next one is due now; the lost ones are not caught up.
            due = max(due + self.sensor.period_s, time.monotonic())

    def once(self) -> None:
        """Read now; a failure is told, but not at every reading."""
        began = time.monotonic()
        try:
            samples = self.sensor.read(began)
        except Exception as error:  # whatever a sensor meets is its own affair
            self.error = str(error) or type(error).__name__
            self._tell(began)
            return
        self.look, self.error = Look(time.monotonic(), time.monotonic() - began, samples), ""

    def _tell(self, now: float) -> None:
        if now - self._told >= _WORD_S:
            self._told = now
            print("%s: %s" % (self.sensor.name, self.error), file=sys.stderr, flush=True)

    def fresh(self, now: float) -> Optional[Look]:
        """Return the last reading, unless it failed since or is too old to be told."""
        look, lasts_s = self.look, _GRACE * max(self.sensor.period_s, 1.0)
        return None if look is None or self.error or now - look.at > lasts_s else look


class Panel:
    """All sensors of a host."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._threads: Dict[str, SensorThread] = {}

    def add(self, sensor: PanelSensor) -> None:
        """Begin to read a sensor; one of the same name stays as it is."""
        with self._lock:
            if sensor.name not in self._threads:
                thread = self._threads[sensor.name] = SensorThread(sensor, self._ended)
                thread.start()

    def is_fresh(self, name: str, now: float) -> bool:
        """Return whether a sensor answered in time."""
        thread = self._threads.get(name)
        return thread is not None and thread.fresh(now) is not None

    def samples(self, now: float) -> Iterator[MetricSample]:
        """Yield the samples of all sensors that answered in time, and for each whether it did."""
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            look = thread.fresh(now)
            labels: Labels = (("sensor", thread.sensor.name),)
            yield MetricSample("podwright_exporter_sensor_up", labels, float(look is not None))
            if thread.look is not None:
                yield MetricSample("podwright_exporter_sensor_age_seconds", labels, round(now - thread.look.at, 3))
                yield MetricSample("podwright_exporter_sensor_took_seconds", labels, round(thread.look.took_s, 6))
            if look is not None:
                yield from look.samples

    def wait(self, seconds: float) -> None:
        """Wait until all sensors have looked once, and those that they found."""
        end, waited_for = time.monotonic() + seconds, 0
        while waited_for < len(self._threads):
            threads = list(self._threads.values())
            waited_for = len(threads)
            for thread in threads:
                thread.looked.wait(max(0.0, end - time.monotonic()))

    def wait_for(self, name: str, seconds: float) -> None:
        """Wait until a sensor has looked once."""
        self._threads[name].looked.wait(seconds)

    def close(self) -> None:
        """End all threads but those that hang: the end of the process does those."""
        self._ended.set()
