"""Asks management controllers for power and inlet temperature, many at once, and serves what they said to Prometheus.

It runs on the monitoring host: compute nodes have neither a way to controllers nor the secret.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.clients.redfish import Redfish
from podwright.clients.redfish_channel import Object
from podwright.spec.problems import Refusal
from podwright.telemetry.page import Labels, MetricSample, page
from podwright.telemetry.server import MetricsServer, add_place, place_of

BMC_PORT = 9838
PERIOD_S = 30.0
_AT_ONCE, _ROUNDS = 16, 3
_KINDS = {
    "podwright_bmc_up": ("gauge", "Whether the host's management controller answered."),
    "podwright_bmc_power_watts": ("gauge", "What the host draws, as its management controller measures it."),
    "podwright_bmc_inlet_celsius": ("gauge", "Temperature of the air that the host takes in."),
}
_INTAKES = ("Intake", "Inlet", "Ambient")


def measured(controller: Redfish, host: str) -> dict[str, float]:
    """Return what a controller measures of its host, by the names of series; what it does not measure is left out."""
    system = controller.system(host)
    found: dict[str, float] = {}
    for link in system.get("Links", {}).get("Chassis", []):
        chassis = controller.get(link["@odata.id"])
        for name, value in _of_chassis(controller, chassis):
            found.setdefault(name, value)
    return found


def _of_chassis(controller: Redfish, chassis: Object) -> Iterator[tuple[str, float]]:
    """Yield readings, those of the newer tables first: controllers of before 2020 have the older alone."""
    for table, read in _TABLES:
        path = chassis.get(table, {}).get("@odata.id")
        if isinstance(path, str):
            yield from read(controller.get(path))


def _environment(table: Object) -> Iterator[tuple[str, float]]:
    yield from _number("podwright_bmc_power_watts", table.get("PowerWatts", {}).get("Reading"))


def _power(table: Object) -> Iterator[tuple[str, float]]:
    for row in table.get("PowerControl", [])[:1]:
        yield from _number("podwright_bmc_power_watts", row.get("PowerConsumedWatts"))


def _thermal(table: Object) -> Iterator[tuple[str, float]]:
    for row in table.get("Temperatures", []):
        words = f"{row.get('PhysicalContext', '')} {row.get('Name', '')}"
        if any(word.lower() in words.lower() for word in _INTAKES):
            yield from _number("podwright_bmc_inlet_celsius", row.get("ReadingCelsius"))


def _number(name: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value)


_TABLES: tuple[tuple[str, Callable[[Object], Iterator[tuple[str, float]]]], ...] = (
    ("EnvironmentMetrics", _environment),
    ("Power", _power),
    ("Thermal", _thermal),
)


@dataclass
class BmcPoller:
    """All controllers of a pod; what one said is told for three rounds at most."""

    controllers: Mapping[str, Redfish]
    clock: Callable[[], float] = time.monotonic
    _said: dict[str, tuple[float, dict[str, float]]] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    def round(self) -> None:
        """Ask all of them once; one that hangs holds up one of sixteen for as long as its patience."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            list(threads.map(self._ask, self.controllers))

    def _ask(self, host: str) -> None:
        try:
            self._said[host] = self.clock(), measured(self.controllers[host], host)
            self._failed.discard(host)
        except (Refusal, KeyError, TypeError, AttributeError):
            self._failed.add(host)

    def text(self, open_metrics: bool = False) -> str:
        """Return the page."""
        return page(_KINDS, self._samples(), open_metrics)

    def _samples(self) -> Iterator[MetricSample]:
        now = self.clock()
        for host in self.controllers:
            labels: Labels = (("host", host),)
            at, values = self._said.get(host, (float("-inf"), {}))
            is_fresh = host not in self._failed and now - at <= _ROUNDS * PERIOD_S
            if host in self._said or host in self._failed:
                yield MetricSample("podwright_bmc_up", labels, float(is_fresh))
            for name, value in values.items() if is_fresh else ():
                yield MetricSample(name, labels, value)


def controllers_of(settings: Mapping[str, Any]) -> dict[str, Redfish]:
    """Return the controllers that settings name; each secret is a file of its own."""
    return {
        host: Redfish(row["address"], Path(row["login"]).read_text().strip(), row["certificates"])
        for host, row in settings.items()
    }


def main(arguments: list[str]) -> None:
    """Take the words of `bmcs.py`."""
    parser = argparse.ArgumentParser(prog="bmcs.py", description="Tell Prometheus what management controllers measure.")
    parser.add_argument("--settings", required=True, help="what `pod up` wrote: hosts and their controllers")
    add_place(parser, f"127.0.0.1:{BMC_PORT}")
    given = parser.parse_args(arguments)
    try:
        poller = BmcPoller(controllers_of(json.loads(Path(given.settings).read_text())))
        with MetricsServer(place_of(given.listen), poller.text) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            while True:
                began = time.monotonic()
                poller.round()
                time.sleep(max(PERIOD_S - (time.monotonic() - began), 1.0))
    except (ValueError, OSError) as error:
        raise SystemExit(f"bmcs.py: {error}") from None
