"""The GPUs a run may see: which they are, what is read of them, and what is noticed: XID, ECC, throttling, loss."""

from __future__ import annotations

import collections
import functools
import threading
from ctypes import c_void_p
from typing import Any, Callable, Iterator, NamedTuple, Optional, Union

from ..metrics import period_of
from ..system.numbers import whole_number
from . import nvml
from .nvml import Nvml, NvmlError, Xid
from .proc import Reading, Scope, numa_node
from .xids import meaning_of

_WAIT_MS = 2000
# What comes and goes all the time is said again only after this long.
_QUIET_S = 60.0
_ALL_OF_A_CONTAINER = ("", "all", "none", "void")
_THROTTLES = (
    (0x08, "clocks are held down by hardware"),
    (0x20, "clocks are held down by the driver: too hot"),
    (0x40, "clocks are held down by hardware: too hot"),
    (0x80, "clocks are held down by hardware: power brake"),
)
# Stands for corrected memory errors where throttling has its bit.
_ECC = 0


class Gpu(NamedTuple):
    """One GPU or MIG slice; `is_board` where it stands for its board, whose power and faults are counted once."""

    label: str
    handle: c_void_p
    board: c_void_p
    is_board: bool


class GpuMetric(NamedTuple):
    """How one metric is read; `of_slice` where a MIG slice has its own figure."""

    metric: str
    of_slice: bool
    read: Callable[[Nvml, c_void_p], Optional[float]]


ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
THROTTLE = "nvmlDeviceGetCurrentClocksEventReasons"
ECC = "nvmlDeviceGetTotalEccErrors"
GPU_METRICS = (
    GpuMetric("utilization_percent", False, lambda lib, gpu: lib.utilization(gpu, "gpu")),
    GpuMetric("memory_percent", False, lambda lib, gpu: lib.utilization(gpu, "memory")),
    GpuMetric("memory_used_bytes", True, lambda lib, gpu: lib.memory(gpu)[0]),
    GpuMetric("temperature_celsius", False, lambda lib, gpu: lib.uint("nvmlDeviceGetTemperature", gpu, 0)),
    GpuMetric("memory_temperature_celsius", False, lambda lib, gpu: lib.field(gpu, 82)),
    GpuMetric("power_watts", False, lambda lib, gpu: lib.uint("nvmlDeviceGetPowerUsage", gpu, factor=1e-3)),
    GpuMetric("power_instant_watts", False, lambda lib, gpu: lib.field(gpu, 186, factor=1e-3)),
    GpuMetric("energy_joules_total", False, lambda lib, gpu: lib.ulonglong(ENERGY, gpu, factor=1e-3)),
    GpuMetric("sm_clock_mhz", False, lambda lib, gpu: lib.uint("nvmlDeviceGetClockInfo", gpu, 1)),
    GpuMetric("memory_clock_mhz", False, lambda lib, gpu: lib.uint("nvmlDeviceGetClockInfo", gpu, 2)),
    GpuMetric("throttle_reasons", False, lambda lib, gpu: lib.ulonglong(THROTTLE, gpu)),
    GpuMetric("ecc_corrected_total", False, lambda lib, gpu: lib.ulonglong(ECC, gpu, 0, 0)),
    GpuMetric("ecc_uncorrected_total", False, lambda lib, gpu: lib.ulonglong(ECC, gpu, 1, 0)),
    GpuMetric("pcie_replay_total", False, lambda lib, gpu: lib.uint("nvmlDeviceGetPcieReplayCounter", gpu)),
    GpuMetric("pcie_sent_bytes_total", False, lambda lib, gpu: lib.counter(gpu, 197)),
    GpuMetric("pcie_received_bytes_total", False, lambda lib, gpu: lib.counter(gpu, 198)),
    # NVLink counts in KiB.
    GpuMetric("nvlink_sent_bytes_total", False, lambda lib, gpu: lib.field(gpu, 138, nvml.ALL_LINKS, 1024.0)),
    GpuMetric("nvlink_received_bytes_total", False, lambda lib, gpu: lib.field(gpu, 139, nvml.ALL_LINKS, 1024.0)),
    GpuMetric("processes", True, lambda lib, gpu: lib.processes(gpu)),
)


def choose(uuids: list[str], cuda: Optional[str], nvidia: Optional[str]) -> list[Union[int, str]]:
    """Return which of the GPUs that NVML shows belong to the run: an index of `uuids`, or the name of a MIG slice.

    CUDA's variable is the narrower one and wins. In a container NVIDIA's variable may number the GPUs of the machine
    outside; its numbers say something only where NVML shows more GPUs than it lists.
    """
    if cuda is not None:
        return _listed(cuda, uuids)
    everything: list[Union[int, str]] = list(range(len(uuids)))
    if nvidia is None or nvidia in _ALL_OF_A_CONTAINER:
        return everything
    names = nvidia.split(",")
    by_number = whole_number(names[0].strip()) is not None
    if by_number and len(names) >= len(uuids):
        return everything
    return _listed(nvidia, uuids)


def _listed(text: str, uuids: list[str]) -> list[Union[int, str]]:
    chosen: list[Union[int, str]] = []
    for item in text.split(","):
        name = item.strip()
        if name.startswith("MIG-"):
            chosen.append(name)
            continue
        index = _index_of(name, uuids)
        if index is None:
            # CUDA ends its list at the first name it does not know.
            break
        chosen.append(index)
    return chosen


def _index_of(name: str, uuids: list[str]) -> Optional[int]:
    """Return the GPU with this number, or the only one whose UUID begins with this name."""
    number = whole_number(name)
    if number is not None and number < len(uuids) and name == str(number):
        return number
    fits = [index for index, uuid in enumerate(uuids) if name.startswith("GPU-") and uuid.startswith(name)]
    return None if len(fits) != 1 else fits[0]


class GpuSensors:
    """The GPUs of a run, read and watched."""

    def __init__(self, scope: Scope, say: Callable[..., None]) -> None:
        self._scope = scope
        self._say = say
        self._lib = Nvml(scope.nvml)
        self._gpus: list[Gpu] = []
        self._broken: set[tuple[str, str]] = set()
        self._said: set[str] = set()
        self._notices = Notices(say)
        self._watcher: Optional[XidWatcher] = None
        self.driver: Optional[str] = None

    def open(self) -> None:
        """Find the GPUs; a machine without NVIDIA's library has none, and that is no fault."""
        try:
            self._lib.open()
        except OSError:
            return
        self.driver = self._lib.driver()
        handles = self._lib.handles()
        uuids = [self._lib.uuid(handle) for handle in handles]
        visible = self._scope.variable
        for chosen in choose(uuids, visible("CUDA_VISIBLE_DEVICES"), visible("NVIDIA_VISIBLE_DEVICES")):
            if isinstance(chosen, str):
                self._gpus.append(self._slice(chosen, uuids))
            else:
                self._gpus.append(Gpu(str(chosen), handles[chosen], handles[chosen], True))
        self._watch()

    def _slice(self, name: str, uuids: list[str]) -> Gpu:
        handle = self._lib.handle_of(name)
        board = self._lib.board_of(handle)
        index = uuids.index(self._lib.uuid(board))
        # The first slice of a board stands for the board.
        boards = {gpu.label.split("/")[0] for gpu in self._gpus}
        first = str(index) not in boards
        return Gpu("%d/%d" % (index, self._lib.instance_of(handle)), handle, board, first)

    def _watch(self) -> None:
        boards = [gpu for gpu in self._gpus if gpu.is_board]
        if not boards:
            return
        try:
            events = self._lib.xid_set([gpu.board for gpu in boards])
        except NvmlError as error:
            self._say("sensor", name="gpu.xid", error=str(error))
            return
        self._watcher = XidWatcher(self._lib, events)
        self._watcher.start()

    def close(self) -> None:
        """Let the library go, unless the watcher still sleeps in it: then the end of the process does."""
        if self._watcher is None or self._watcher.stop():
            self._lib.close()
        self._gpus.clear()

    def readings(self) -> Iterator[Reading]:
        """Yield one reading for the metrics of each period, over all GPUs."""
        if not self._gpus:
            return
        by_period: dict[float, list[GpuMetric]] = collections.defaultdict(list)
        for row in GPU_METRICS:
            by_period[period_of("gpu.N." + row.metric)].append(row)
        for period_s, rows in sorted(by_period.items()):
            yield Reading("gpu", period_s, functools.partial(self._read, rows))
        if self._watcher:
            yield Reading("gpu.xid", 0.0, self._read_xids)

    def _read(self, rows: list[GpuMetric], now: float) -> dict[str, float]:
        values: dict[str, float] = {}
        for gpu in list(self._gpus):
            for row in rows:
                has_it = gpu.is_board or row.of_slice
                if not has_it or (gpu.label, row.metric) in self._broken:
                    continue
                value = self._ask(gpu, row)
                # It was lost just now: there is no use in asking further.
                if gpu not in self._gpus:
                    break
                if value is not None:
                    values["gpu.%s.%s" % (gpu.label, row.metric)] = value
                    self._notices.look(gpu.label, row.metric, int(value), now)
        return values

    def _ask(self, gpu: Gpu, row: GpuMetric) -> Optional[float]:
        handle = gpu.handle if row.of_slice else gpu.board
        try:
            return row.read(self._lib, handle)
        except NvmlError as error:
            if error.code in (nvml.GPU_LOST, nvml.RESET_REQUIRED):
                self._gpus.remove(gpu)
                self._say("seen", what="gpu_lost", device="gpu " + gpu.label, value=error.code, text=str(error))
                return None
            self._broken.add((gpu.label, row.metric))
            if row.metric not in self._said:
                self._said.add(row.metric)
                self._say("sensor", name="gpu." + row.metric, error=str(error))
            return None

    def _read_xids(self, now: float) -> dict[str, float]:
        assert self._watcher is not None
        for xid in self._watcher.take():
            label = next((gpu.label for gpu in self._gpus if gpu.board.value == xid.handle), "?")
            text = meaning_of(xid.number)
            self._say("seen", what="xid", device="gpu " + label, value=xid.number, text=text)
        if self._watcher.error is not None:
            raise self._watcher.error
        return {}

    def describe(self) -> list[dict[str, Any]]:
        """Return what each GPU is."""
        return [self._about(gpu) for gpu in self._gpus]

    def _about(self, gpu: Gpu) -> dict[str, Any]:
        pci = self._lib.pci(gpu.board)
        index: Union[int, str, None] = whole_number(gpu.label)
        if index is None:
            index = gpu.label
        return {
            "index": index,
            "name": self._lib.name(gpu.handle),
            "uuid": self._lib.uuid(gpu.handle),
            "memory_bytes": int(self._lib.memory(gpu.handle)[1] or 0),
            "numa": numa_node(self._scope.path("/sys/bus/pci/devices/%s" % pci)),
            "pci": pci,
        }


class Notices:
    """What is worth a `seen` event in the readings: errors that grew, and throttling that began."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._counts: dict[tuple[str, str], int] = {}
        self._last: dict[tuple[str, int], float] = {}

    def look(self, gpu: str, metric: str, value: int, now: float) -> None:
        """Say what is worth it in one reading."""
        if metric == "throttle_reasons":
            self._throttle(gpu, value, now)
        elif metric == "ecc_uncorrected_total":
            self._grown(gpu, metric, value, "uncorrectable")
        elif metric == "ecc_corrected_total":
            self._corrected(gpu, value, now)

    def _corrected(self, gpu: str, value: int, now: float) -> None:
        """Say that errors were corrected, those of a while together: they may come all the time."""
        said_at = self._last.get((gpu, _ECC), float("-inf"))
        if now - said_at >= _QUIET_S and self._grown(gpu, "ecc_corrected_total", value, "corrected"):
            self._last[gpu, _ECC] = now

    def _grown(self, gpu: str, metric: str, value: int, kind: str) -> bool:
        more = value - self._counts.get((gpu, metric), value)
        self._counts[gpu, metric] = value
        if more > 0:
            text = "1 %s ECC error" % kind if more == 1 else "%d %s ECC errors" % (more, kind)
            self._say("seen", what="ecc", device="gpu " + gpu, value=more, text=text)
        return more > 0

    def _throttle(self, gpu: str, reasons: int, now: float) -> None:
        for bit, text in _THROTTLES:
            if not reasons & bit:
                continue
            if now - self._last.get((gpu, bit), float("-inf")) > _QUIET_S:
                self._say("seen", what="throttle", device="gpu " + gpu, value=bit, text=text)
            # Noted also where nothing is said: only throttling that stayed away for a while begins again.
            self._last[gpu, bit] = now


class XidWatcher(threading.Thread):
    """Sleeps in NVML until an XID arrives and keeps it until it is taken: events are written by one thread only."""

    def __init__(self, lib: Nvml, events: c_void_p) -> None:
        super().__init__(name="xid", daemon=True)
        self.error: Optional[NvmlError] = None
        self._lib = lib
        self._events = events
        self._ended = False
        self._arrived: collections.deque[Xid] = collections.deque()

    def run(self) -> None:
        while not self._ended:
            try:
                xid = self._lib.wait_xid(self._events, _WAIT_MS)
            except NvmlError as error:
                self.error = error
                return
            if xid is not None:
                self._arrived.append(xid)

    def take(self) -> Iterator[Xid]:
        while self._arrived:
            yield self._arrived.popleft()

    def stop(self) -> bool:
        """End the watch; return whether it has ended already, which a run does not wait for."""
        self._ended = True
        self.join(0.01)
        if not self.is_alive():
            self._lib.free_set(self._events)
        return not self.is_alive()
