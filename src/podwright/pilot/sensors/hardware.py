"""Readings of CPU energy counters (RAPL) and InfiniBand ports out of /sys, and of processes killed for memory."""

from __future__ import annotations

import os
import re
from typing import Callable, Iterator, Tuple

from ..metrics import period_of
from ..system.plain_files import names_in, read_whole
from . import cgroup
from .proc import Files, Reading, Scope

_Rows = Tuple[Tuple[str, str], ...]
# InfiniBand counts data in words of four bytes.
_WORD_BYTES = 4
_IB_DATA = (("received_bytes_total", "port_rcv_data"), ("sent_bytes_total", "port_xmit_data"))
_IB_FAULTS = (
    ("transmit_wait_total", "port_xmit_wait"),
    ("link_downed_total", "link_downed"),
    ("symbol_error_total", "symbol_error"),
)
_OOM_PERIOD_S = 5.0
_OOM_KILL = re.compile(rb"\boom_kill (\d+)")


def energy_readings(scope: Scope, files: Files) -> Iterator[Reading]:
    """Yield the energy of the CPU packages.

    Zones inside and around a package count the same joules again and are left out.
    """
    folder = scope.path("/sys/class/powercap")
    zones = []
    for name in sorted(names_in(folder)):
        zone = os.path.join(folder, name)
        if re.match(r"intel-rapl:\d+$", name) and read_whole(os.path.join(zone, "name")).startswith(b"package"):
            range_uj = int(read_whole(os.path.join(zone, "max_energy_range_uj")))
            zones.append(Package(files.open(os.path.join(zone, "energy_uj"), 32), range_uj))
    if zones:
        yield Reading(
            "cpu energy",
            period_of("cpu_energy_joules_total"),
            lambda now: {"cpu_energy_joules_total": sum(zone.microjoules() for zone in zones) / 1e6},
        )


class Package:
    """One RAPL counter, which starts again at zero after some minutes; here it grows on."""

    def __init__(self, read: Callable[[], bytes], range_uj: int) -> None:
        self._read = read
        self._range_uj = range_uj
        self._last_uj = -1
        self._sum_uj = 0

    def microjoules(self) -> int:
        """Read the counter and return what it would be if it had never started again."""
        now_uj = int(self._read())
        if self._last_uj < 0:
            self._sum_uj = now_uj
        else:
            passed_uj = now_uj - self._last_uj
            if passed_uj < 0:
                passed_uj += self._range_uj
            self._sum_uj += passed_uj
        self._last_uj = now_uj
        return self._sum_uj


class InfinibandPorts:
    """The InfiniBand ports of this machine."""

    def __init__(self, scope: Scope, files: Files, say: Callable[..., None]) -> None:
        self._say = say
        self._data: list[tuple[str, Callable[[], bytes]]] = []
        self._faults: list[tuple[str, Callable[[], bytes]]] = []
        self._rates: list[tuple[str, Callable[[], bytes]]] = []
        self._downed: dict[str, int] = {}
        for port, folder in ib_ports(scope):
            self._data += _counters(port, folder, _IB_DATA, files)
            self._faults += _counters(port, folder, _IB_FAULTS, files)
            self._rates.append(("ib.%s.rate_gbps" % port, files.open(os.path.join(folder, "rate"), 64)))

    def readings(self) -> Iterator[Reading]:
        if self._rates:
            yield Reading("infiniband data", period_of("ib.DEV/PORT.received_bytes_total"), self._read_data)
            yield Reading("infiniband faults", period_of("ib.DEV/PORT.link_downed_total"), self._read_faults)
            yield Reading("infiniband rate", period_of("ib.DEV/PORT.rate_gbps"), self._read_rates)

    def _read_data(self, now: float) -> dict[str, float]:
        return {name: float(int(read()) * _WORD_BYTES) for name, read in self._data}

    def _read_faults(self, now: float) -> dict[str, float]:
        values = {name: float(int(read())) for name, read in self._faults}
        for name, value in values.items():
            if name.endswith(".link_downed_total"):
                self._notice(name.split(".", 2)[1], int(value))
        return values

    def _notice(self, port: str, downed: int) -> None:
        more = downed - self._downed.get(port, downed)
        self._downed[port] = downed
        if more > 0:
            text = "the link went down once" if more == 1 else "the link went down %d times" % more
            self._say("seen", what="link_down", device=port, value=more, text=text)

    def _read_rates(self, now: float) -> dict[str, float]:
        return {name: float(read().split(b" ", 1)[0]) for name, read in self._rates}


def ib_ports(scope: Scope) -> list[tuple[str, str]]:
    """Return every port as (DEV/PORT, folder)."""
    ports = []
    top = scope.path("/sys/class/infiniband")
    for device in sorted(names_in(top)):
        folder = os.path.join(top, device, "ports")
        for port in sorted(names_in(folder)):
            ports.append(("%s/%s" % (device, port), os.path.join(folder, port)))
    return ports


def _counters(port: str, folder: str, rows: _Rows, files: Files) -> list[tuple[str, Callable[[], bytes]]]:
    """Return (metric, reader) of the counters that this port has; not every card has all."""
    readers = []
    for name, file in rows:
        path = os.path.join(folder, "counters", file)
        if os.access(path, os.R_OK):
            readers.append(("ib.%s.%s" % (port, name), files.open(path, 32)))
    return readers


def oom_readings(scope: Scope, files: Files, say: Callable[..., None]) -> Iterator[Reading]:
    """Notice processes that the kernel killed for want of memory; there are no values of it."""
    path = scope.path("/proc/vmstat")
    for name in ("memory.events", "memory.oom_control"):
        group = cgroup.find("memory", scope.root, name)
        path = group.path(name) if group else path
    source = files.open(path, 16384)
    before: list[int] = []

    def read(now: float) -> dict[str, float]:
        match = _OOM_KILL.search(source())
        count = int(match.group(1)) if match else 0
        # What was killed before the first look was not of this run.
        more = count - before[0] if before else 0
        before[:] = [count]
        if more > 0:
            plural = "" if more == 1 else "es"
            text = "the kernel killed %d process%s for want of memory" % (more, plural)
            say("seen", what="oom", device="memory", value=more, text=text)
        return {}

    yield Reading("oom", _OOM_PERIOD_S, read)
