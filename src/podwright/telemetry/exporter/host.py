"""The host itself: CPU, memory by NUMA node, and the energy of its CPU packages."""

from __future__ import annotations

import re
import resource
from typing import Callable, Dict, Iterator, List

from ...pilot.sensors import hardware, proc
from ...pilot.sensors.proc import Files, Scope
from ...pilot.system.plain_files import names_in, read_text
from ..page import Labels, MetricSample

_NAMES = {
    "cpu_percent": ("podwright_host_cpu_ratio", 0.01),
    "memory_used_bytes": ("podwright_host_memory_used_bytes", 1.0),
    "cpu_energy_joules_total": ("podwright_host_cpu_energy_joules_total", 1.0),
}
_MEMORY = re.compile(r"(MemTotal|MemFree):\s+(\d+) kB")
_NODE_MEMORY = {"MemTotal": "podwright_host_numa_memory_bytes", "MemFree": "podwright_host_numa_memory_free_bytes"}


class HostSensor:
    """What the kernel counts of the whole host, whichever control group the exporter is in."""

    def __init__(self, scope: Scope) -> None:
        self._scope, files = scope, Files()
        self._reads: List[Callable[[float], Dict[str, float]]] = [
            proc.machine_cpu(scope, files),
            proc.machine_memory(scope, files),
            *(reading.read for reading in hardware.energy_readings(scope, files)),
        ]

    def read(self, now: float) -> List[MetricSample]:
        """Read all of it."""
        samples = []
        for read in self._reads:
            for key, value in read(now).items():
                name, factor = _NAMES[key]
                samples.append(MetricSample(name, (), value * factor))
        return [*samples, *self._plain(), *self._numa()]

    def _plain(self) -> Iterator[MetricSample]:
        load = read_text(self._scope.path("/proc/loadavg")).split()
        if load:
            yield MetricSample("podwright_host_load1", (), float(load[0]))
        for key, kib in _MEMORY.findall(read_text(self._scope.path("/proc/meminfo"), 512)):
            if key == "MemTotal":
                yield MetricSample("podwright_host_memory_bytes", (), float(kib) * 1024)

    def _numa(self) -> Iterator[MetricSample]:
        folder = self._scope.path("/sys/devices/system/node")
        for name in sorted(names_in(folder)):
            if not re.match(r"node\d+\Z", name):
                continue
            labels: Labels = (("node", name[4:]),)
            for key, kib in _MEMORY.findall(read_text("%s/%s/meminfo" % (folder, name), 1024)):
                yield MetricSample(_NODE_MEMORY[key], labels, float(kib) * 1024)
            misses = re.search(r"^numa_miss (\d+)", read_text("%s/%s/numastat" % (folder, name)), re.MULTILINE)
            if misses is not None:
                yield MetricSample("podwright_host_numa_misses_total", labels, float(misses[1]))


def own_cost() -> Iterator[MetricSample]:
    """Yield what the exporter itself has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield MetricSample("podwright_exporter_cpu_seconds_total", (), round(used.ru_utime + used.ru_stime, 3))
    pages = read_text("/proc/self/statm").split()
    if len(pages) > 1:
        yield MetricSample("podwright_exporter_memory_bytes", (), float(int(pages[1]) * proc.PAGE_BYTES))
