"""The GPUs a run may see: which they are, what is read of them, and what is noticed: XID, ECC, throttling, loss."""

from __future__ import annotations

import collections
import threading
from ctypes import c_void_p
from typing import Any, Callable, Iterator, NamedTuple, Optional, Union

from . import nvml
from .nvml import Nvml, NvmlError, Xid
from .proc import Reading, Scope
from .sensors import period_of

_WAIT_MS = 2000
# What comes and goes all the time is said again only after this long.
_QUIET_S = 60.0
_THROTTLES = (
    (0x08, "clocks are held down by hardware"),
    (0x20, "clocks are held down by the driver: too hot"),
    (0x40, "clocks are held down by hardware: too hot"),
    (0x80, "clocks are held down by hardware: power brake"),
)
_XIDS = {
    13: "a kernel raised an exception",
    31: "a kernel touched memory that is not mapped",
    32: "bad data in the command stream",
    38: "fault in the driver's firmware",
    43: "the program's work on the GPU was stopped after a fault",
    45: "the program's work on the GPU was cleared away",
    48: "uncorrectable memory error",
    61: "fault in the GPU's microcontroller",
    62: "the GPU's microcontroller stopped",
    63: "a bad memory row was noted, to be replaced at the next reset",
    64: "a bad memory row could not be noted",
    68: "fault in the video processor",
    69: "bad command of a kernel",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many corrected memory errors",
    94: "uncorrectable memory error, contained to one program",
    95: "uncorrectable memory error that touches every program on the GPU",
    109: "a change of programs on the GPU took too long",
    119: "the GPU's system processor does not answer",
    120: "fault in the GPU's system processor",
    140: "memory error that could not be recovered",
    143: "the GPU could not be started",
    154: "the GPU asks to be recovered",
}


class Gpu(NamedTuple):
    """One GPU or MIG slice; `whole` where it stands for its board, whose power and faults are counted once."""

    label: str
    handle: c_void_p
    board: c_void_p
    whole: bool


class GpuMetric(NamedTuple):
    """How one metric is read; `of_slice` where a MIG slice has its own figure."""

    metric: str
    of_slice: bool
    read: Callable[[Nvml, c_void_p], Optional[float]]


GPU_METRICS = (
    GpuMetric("utilization_percent", False, lambda lib, gpu: lib.utilization(gpu)),
    GpuMetric("memory_percent", False, lambda lib, gpu: lib.memory_utilization(gpu)),
    GpuMetric("memory_used_bytes", True, lambda lib, gpu: lib.memory(gpu)[0]),
    GpuMetric("temperature_celsius", False, lambda lib, gpu: lib.temperature(gpu)),
    GpuMetric("memory_temperature_celsius", False, lambda lib, gpu: lib.field(gpu, 82)),
    GpuMetric("power_watts", False, lambda lib, gpu: lib.power_w(gpu)),
    GpuMetric("power_instant_watts", False, lambda lib, gpu: lib.field(gpu, 186, factor=1e-3)),
    GpuMetric("energy_joules_total", False, lambda lib, gpu: lib.energy_j(gpu)),
    GpuMetric("sm_clock_mhz", False, lambda lib, gpu: lib.clock_mhz(gpu, 1)),
    GpuMetric("memory_clock_mhz", False, lambda lib, gpu: lib.clock_mhz(gpu, 2)),
    GpuMetric("throttle_reasons", False, lambda lib, gpu: lib.throttle_reasons(gpu)),
    GpuMetric("ecc_corrected_total", False, lambda lib, gpu: lib.ecc_errors(gpu, False)),
    GpuMetric("ecc_uncorrected_total", False, lambda lib, gpu: lib.ecc_errors(gpu, True)),
    GpuMetric("pcie_replay_total", False, lambda lib, gpu: lib.pcie_replays(gpu)),
    GpuMetric("pcie_sent_bytes_total", False, lambda lib, gpu: lib.counter(gpu, 197)),
    GpuMetric("pcie_received_bytes_total", False, lambda lib, gpu: lib.counter(gpu, 198)),
    # NVLink counts in KiB.
    GpuMetric("nvlink_sent_bytes_total", False, lambda lib, gpu: lib.field(gpu, 138, nvml.ALL_LINKS, 1024.0)),
    GpuMetric("nvlink_received_bytes_total", False, lambda lib, gpu: lib.field(gpu, 139, nvml.ALL_LINKS, 1024.0)),
    GpuMetric("processes", True, lambda lib, gpu: lib.processes(gpu)),
)


def choose(uuids: list[str], cuda: Optional[str], nvidia: Optional[str]) -> list[Union[int, str]]:
    """Which of the GPUs that NVML shows belong to the run: an index of `uuids`, or the name of a MIG slice.

    CUDA's variable is the narrower one and wins. In a container NVIDIA's variable may number the GPUs of the machine
    outside; its numbers say something only where NVML shows more GPUs than it lists.
    """
    if cuda is not None:
        return _listed(cuda, uuids)
    names = [] if nvidia in (None, "", "all", "none", "void") else str(nvidia).split(",")
    if not names or (names[0].strip().isdigit() and len(names) >= len(uuids)):
        return list(range(len(uuids)))
    return _listed(str(nvidia), uuids)


def _listed(text: str, uuids: list[str]) -> list[Union[int, str]]:
    chosen: list[Union[int, str]] = []
    for name in (item.strip() for item in text.split(",")):
        if name.startswith("MIG-"):
            chosen.append(name)
            continue
        fits = [
            i for i, uuid in enumerate(uuids) if name == str(i) or (name.startswith("GPU-") and uuid.startswith(name))
        ]
        if len(fits) != 1:
            # CUDA ends its list at the first name it does not know.
            break
        chosen.append(fits[0])
    return chosen


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
        self._driver: Optional[str] = None

    def open(self) -> None:
        """Find the GPUs; a machine without NVIDIA's library has none, and that is no fault."""
        try:
            self._lib.open()
        except OSError:
            return
        self._driver = self._lib.driver()
        handles = self._lib.handles()
        uuids = [self._lib.uuid(handle) for handle in handles]
        visible = self._scope.variable
        for chosen in choose(uuids, visible("CUDA_VISIBLE_DEVICES"), visible("NVIDIA_VISIBLE_DEVICES")):
            self._gpus.append(
                self._slice(chosen, uuids) if isinstance(chosen, str) else _whole(chosen, handles[chosen])
            )
        self._watch()

    def _slice(self, name: str, uuids: list[str]) -> Gpu:
        handle = self._lib.handle_of(name)
        board = self._lib.board_of(handle)
        label = "%d/%d" % (uuids.index(self._lib.uuid(board)), self._lib.instance_of(handle))
        first = all(gpu.label.split("/")[0] != label.split("/")[0] for gpu in self._gpus)
        return Gpu(label, handle, board, first)

    def _watch(self) -> None:
        boards = [gpu for gpu in self._gpus if gpu.whole]
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
        """One reading for the metrics of each period, over all GPUs."""
        rows: dict[float, list[GpuMetric]] = collections.defaultdict(list)
        for row in GPU_METRICS:
            rows[period_of("gpu.N." + row.metric)].append(row)
        for period_s in sorted(rows) if self._gpus else []:
            yield Reading("gpu", period_s, _reader(self._read, rows[period_s]))
        if self._watcher:
            yield Reading("gpu.xid", 0.0, self._read_xids)

    def _read(self, now: float, rows: list[GpuMetric]) -> dict[str, float]:
        values: dict[str, float] = {}
        for gpu in list(self._gpus):
            for row in rows:
                if not (gpu.whole or row.of_slice) or (gpu.label, row.metric) in self._broken:
                    continue
                value = self._ask(gpu, row)
                if gpu not in self._gpus:
                    break
                if value is not None:
                    values["gpu.%s.%s" % (gpu.label, row.metric)] = value
                    self._notices.look(gpu.label, row.metric, int(value), now)
        return values

    def _ask(self, gpu: Gpu, row: GpuMetric) -> Optional[float]:
        try:
            return row.read(self._lib, gpu.handle if row.of_slice else gpu.board)
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
            text = _XIDS.get(xid.number, "an error of the GPU that NVIDIA numbers %d" % xid.number)
            self._say("seen", what="xid", device="gpu " + label, value=xid.number, text=text)
        if self._watcher.error is not None:
            raise self._watcher.error
        return {}

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is."""
        return [self._about(gpu) for gpu in self._gpus]

    def _about(self, gpu: Gpu) -> dict[str, Any]:
        pci = self._lib.pci(gpu.board)
        return {
            "index": int(gpu.label) if gpu.label.isdigit() else gpu.label,
            "name": self._lib.name(gpu.handle),
            "uuid": self._lib.uuid(gpu.handle),
            "memory_bytes": int(self._lib.memory(gpu.handle)[1] or 0),
            "numa": _numa_node(self._scope.path("/sys/bus/pci/devices/%s/numa_node" % pci)),
            "pci": pci,
        }

    def driver(self) -> Optional[str]:
        return self._driver


def _whole(index: int, handle: c_void_p) -> Gpu:
    return Gpu(str(index), handle, handle, True)


def _reader(
    read: Callable[[float, list[GpuMetric]], dict[str, float]], rows: list[GpuMetric]
) -> Callable[[float], dict[str, float]]:
    return lambda now: read(now, rows)


def _numa_node(path: str) -> Optional[int]:
    try:
        with open(path) as file:
            node = int(file.read())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


class Notices:
    """What is worth a `seen` event in the readings: errors that grew, and throttling that began."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._counts: dict[tuple[str, str], int] = {}
        self._last: dict[tuple[str, int], float] = {}

    def look(self, gpu: str, metric: str, value: int, now: float) -> None:
        if metric == "throttle_reasons":
            self._throttle(gpu, value, now)
        elif metric == "ecc_uncorrected_total":
            self._grown(gpu, metric, value, "uncorrectable")
        elif metric == "ecc_corrected_total" and not self._said_lately(gpu, now):
            more = self._grown(gpu, metric, value, "corrected")
            self._last[gpu, 0] = now if more else float("-inf")

    def _said_lately(self, gpu: str, now: float) -> bool:
        return now - self._last.get((gpu, 0), float("-inf")) < _QUIET_S

    def _grown(self, gpu: str, metric: str, value: int, kind: str) -> bool:
        more = value - self._counts.get((gpu, metric), value)
        self._counts[gpu, metric] = value
        if more > 0:
            text = "%d %s ECC error%s" % (more, kind, "" if more == 1 else "s")
            self._say("seen", what="ecc", device="gpu " + gpu, value=more, text=text)
        return more > 0

    def _throttle(self, gpu: str, reasons: int, now: float) -> None:
        for bit, text in _THROTTLES:
            if reasons & bit:
                if now - self._last.get((gpu, bit), float("-inf")) > _QUIET_S:
                    self._say("seen", what="throttle", device="gpu " + gpu, value=bit, text=text)
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
        """End the watch; says whether it has ended already, which a run does not wait for."""
        self._ended = True
        self.join(0.01)
        if not self.is_alive():
            self._lib.free_set(self._events)
        return not self.is_alive()
