"""The GPUs of a host: found, read in turn, noticed when they are lost, and told by every vocabulary there is."""

from __future__ import annotations

import itertools
from ctypes import c_void_p
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...pilot.sensors.nvml import NvmlError
from ...pilot.sensors.proc import Scope, numa_node
from ...pilot.system.plain_files import names_in, read_text
from ..page import Labels, MetricSample
from .cards import GONE, NEVER, Cards, Holder
from .readings import FAST_S, GPM, READINGS, SLOW_S, CardReading, throttled

Values = Dict[str, float]
_BOARD = ""


class GpuIdentity(NamedTuple):
    """One GPU, or a MIG slice of one, as others name it."""

    gpu: str
    mig: str
    profile: str
    uuid: str
    pci: str
    model: str
    driver: str
    numa: str

    def info(self) -> MetricSample:
        """Return what is told of it once."""
        labels = tuple((name, value) for name, value in self._asdict().items())
        return MetricSample("podwright_gpu_info", labels, 1.0)


class Board:
    """One GPU with its slices: what it is, its last values, and who holds it. Read by one thread."""

    def __init__(self, lib: Cards, index: int, scope: Scope) -> None:
        self.index, self._lib, self._scope = str(index), lib, scope
        self._handle = lib.handles()[index]
        self.devices: Dict[str, GpuIdentity] = {}
        self.values: Dict[str, Values] = {}
        self.holders: Dict[str, List[Holder]] = {}
        self.is_lost = False
        self.links: List[bool] = []
        self._slices: Dict[str, c_void_p] = {}
        self._never: Dict[str, bool] = {}
        self._due: Dict[str, float] = {}
        self._activity: Dict[str, Activity] = {}
        self.describe()

    def describe(self) -> None:
        """Find out what it is and which slices it has: an operator may cut it anew at any time."""
        lib = self._lib
        pci, driver = lib.pci(self._handle), lib.driver()
        numa = numa_node(self._scope.path("/sys/bus/pci/devices/%s" % pci))
        place = (pci, lib.name(self._handle), driver, "" if numa is None else str(numa))
        devices = {_BOARD: GpuIdentity(self.index, "", "", lib.uuid(self._handle), *place)}
        slices = {str(lib.instance_of(handle)): handle for handle in lib.slices(self._handle)}
        for mig, handle in slices.items():
            devices[mig] = GpuIdentity(self.index, mig, lib.profile(handle, self._handle), lib.uuid(handle), *place)
        self.devices, self._slices = devices, slices
        self.values = {mig: self.values.get(mig, {}) for mig in devices}
        has_gpm = lib.has_gpm(self._handle)
        self._activity = {mig: self._activity.get(mig) or Activity(lib, mig) for mig in devices if has_gpm}

    def read(self, now: float) -> List[MetricSample]:
        """Read what is due; a GPU that is gone is told as such, and asked again."""
        try:
            if self._is_due("devices", 60.0, now):
                self.describe()
            for row in READINGS:
                if row.key not in self._never and self._is_due(row.key, row.period_s, now):
                    self._ask(row)
            if self._is_due("activity", SLOW_S, now):
                self._look_at_activity()
            if self._is_due("links", SLOW_S, now):
                self._look_at_links()
            if self._is_due("holders", FAST_S, now):
                self.holders = {mig: self._lib.holders(handle) for mig, handle in self._parts()}
            self.is_lost = False
        except NvmlError as error:
            if error.code not in GONE:
                raise
            self.is_lost = True
            self.values, self.holders, self.links = {mig: {} for mig in self.values}, {}, []
            self._due.clear()
        return []

    def _is_due(self, what: str, period_s: float, now: float) -> bool:
        if now < self._due.get(what, float("-inf")):
            return False
        # Half a second early is in time: ticks come a little late or a little early.
        self._due[what] = now + period_s - FAST_S / 2
        return True

    def _parts(self) -> Iterator[Tuple[str, c_void_p]]:
        yield _BOARD, self._handle
        yield from self._slices.items()

    def _ask(self, row: CardReading) -> None:
        for mig, handle in self._parts():
            if mig and not row.of_slice:
                break
            try:
                value = row.read(self._lib, handle)
            except NvmlError as error:
                if error.code in GONE:
                    raise
                if error.code in NEVER:
                    self._never[row.key] = True
                self._forget(mig, row.key)
                return
            if isinstance(value, dict):
                self.values[mig].update(value)
            elif value is not None:
                self.values[mig][row.key] = value
            else:
                self._forget(mig, row.key)

    def _forget(self, mig: str, key: str) -> None:
        """Keep no value that can no longer be read; those of several keys are told until they can be read again."""
        self.values[mig].pop(key, None)

    def _look_at_activity(self) -> None:
        for mig, activity in self._activity.items():
            values = activity.take(self._handle)
            if "nvlink_sent_bytes_per_second" in values and "nvlink_received_bytes_per_second" in values:
                both = values["nvlink_sent_bytes_per_second"] + values["nvlink_received_bytes_per_second"]
                values["nvlink_bytes_per_second"] = both
            self.values[mig].update(values)

    def _look_at_links(self) -> None:
        if "links" in self._never:
            return
        try:
            count = int(self._lib.field(self._handle, 91) or 0)
            self.links = self._lib.links(self._handle, count)
        except NvmlError as error:
            if error.code in GONE:
                raise
            self._never["links"] = error.code in NEVER
            self.links = []
            return
        self.values[_BOARD].update(nvlink_links=float(count), nvlink_links_active=float(sum(self.links)))

    def told(self) -> Iterator[Tuple[GpuIdentity, Values]]:
        """Yield every device with its values; why a clock is low is told by reason, too."""
        for mig, device in self.devices.items():
            values = self.values.get(mig, {})
            if "throttle_reasons" in values:
                values = {**values, **throttled(values["throttle_reasons"])}
            yield device, values

    def pids(self) -> List[int]:
        """Return the processes that hold it or a slice of it."""
        held = itertools.chain.from_iterable(self.holders.values())
        return [holder.pid for holder in held]

    def states(self) -> Iterator[MetricSample]:
        """Yield what is told of its links."""
        for number, is_up in enumerate(self.links):
            labels: Labels = (("gpu", self.index), ("link", str(number)))
            yield MetricSample("podwright_gpu_nvlink_up", labels, float(is_up))


class Activity:
    """What GPM counted between two looks at a GPU or a slice."""

    def __init__(self, lib: Cards, mig: str) -> None:
        self._lib, self._instance = lib, int(mig) if mig else None
        self._before: Optional[c_void_p] = None
        self._after: Optional[c_void_p] = None

    def take(self, handle: c_void_p) -> Values:
        """Return the shares and rates since the last look; none at the first."""
        fresh = self._after or self._lib.gpm_sample()
        self._lib.take_gpm(handle, self._instance, fresh)
        before, self._before = self._before, fresh
        self._after = before
        if before is None:
            return {}
        found = self._lib.gpm_between(before, fresh, tuple(GPM))
        return {GPM[number][0]: value * GPM[number][1] for number, value in found.items()}


def gpus_on_bus(scope: Scope) -> int:
    """Return how many of NVIDIA's GPUs PCIe shows: one that has fallen off is missing here or with the driver."""
    folder, count = scope.path("/sys/bus/pci/devices"), 0
    for name in names_in(folder):
        vendor = read_text("%s/%s/vendor" % (folder, name)).strip()
        kind = read_text("%s/%s/class" % (folder, name)).strip()
        count += vendor == "0x10de" and kind[:6] in ("0x0300", "0x0302")
    return count
