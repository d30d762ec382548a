"""NVIDIA's library as the exporter asks it: what a pilot does not ask, and what hosts have that runs do not see."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...pilot.sensors import nvml
from ...pilot.sensors.nvml import Nvml, NvmlError

MIB, GIB = float(1 << 20), float(1 << 30)
_MAX_PROCESSES = 64
_GPM_VERSION = 1


class Holder(NamedTuple):
    """A process that has memory on a GPU."""

    pid: int
    memory_bytes: float


class _Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("memory", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint)]


class _Support(ctypes.Structure):
    _fields_ = [("version", c_uint), ("supported", c_uint)]


class _GpmMetric(ctypes.Structure):
    _fields_ = [("id", c_uint), ("code", c_int), ("value", ctypes.c_double), ("texts", c_void_p * 3)]


class _Margin(ctypes.Structure):
    _fields_ = [("version", c_uint), ("celsius", c_int)]


class _Fabric(ctypes.Structure):
    _fields_ = [
        ("version", c_uint),
        ("cluster", ctypes.c_ubyte * 16),
        ("status", c_int),
        ("clique", c_uint),
        ("state", ctypes.c_ubyte),
        ("health", c_uint),
    ]


class _Attributes(ctypes.Structure):
    _fields_ = [("counts", c_uint * 6), ("gpu_slices", c_uint), ("compute_slices", c_uint), ("memory_mib", c_ulonglong)]


class Cards(Nvml):
    """All cards of a host, whoever uses them."""

    # -- what a card holds itself to

    def threshold(self, handle: c_void_p, kind: int) -> Optional[float]:
        """Return one of the card's own temperatures."""
        return self.uint("nvmlDeviceGetTemperatureThreshold", handle, c_int(kind))

    def margin(self, handle: c_void_p) -> float:
        """Return how far the card is from slowing down."""
        said = _Margin(ctypes.sizeof(_Margin) | 1 << 24)
        self.call("nvmlDeviceGetMarginTemperature", handle, byref(said))
        return float(said.celsius)

    def power_range(self, handle: c_void_p) -> Tuple[float, float]:
        """Return the least and the most power that the card may be held to."""
        least, most = c_uint(), c_uint()
        self.call("nvmlDeviceGetPowerManagementLimitConstraints", handle, byref(least), byref(most))
        return least.value * 1e-3, most.value * 1e-3

    # -- memory and its errors

    def memory_parts(self, handle: c_void_p) -> Dict[str, float]:
        """Return device memory by what it is for."""
        said = nvml.MemoryV2(ctypes.sizeof(nvml.MemoryV2) | 2 << 24)
        self.call("nvmlDeviceGetMemoryInfo_v2", handle, byref(said))
        return {
            "memory_bytes": said.total,
            "memory_used_bytes": said.used,
            "memory_free_bytes": said.free,
            "memory_reserved_bytes": said.reserved,
        }

    def remapped_rows(self, handle: c_void_p) -> Dict[str, float]:
        """Return the rows that were replaced, and whether one waits or could not be."""
        counts = [c_uint() for _ in range(4)]
        self.call("nvmlDeviceGetRemappedRows", handle, *map(byref, counts))
        keys = (
            "remapped_rows_corrected_total",
            "remapped_rows_uncorrected_total",
            "row_remap_pending",
            "row_remap_failed",
        )
        return {key: float(count.value) for key, count in zip(keys, counts)}

    # -- engines, links, the fabric

    def codec(self, name: str, handle: c_void_p) -> float:
        """Return how busy the encoder or the decoder is."""
        percent, period = c_uint(), c_uint()
        self.call(name, handle, byref(percent), byref(period))
        return percent.value / 100.0

    def fabric(self, handle: c_void_p) -> Dict[str, float]:
        """Return how far the GPU is in joining its NVLink fabric."""
        said = _Fabric(ctypes.sizeof(_Fabric) | 2 << 24)
        self.call("nvmlDeviceGetGpuFabricInfoV", handle, byref(said))
        values = {"fabric_state": float(said.state)}
        if said.state == 3:
            values["fabric_error"] = float(said.status)
        return values

    def links(self, handle: c_void_p, count: int) -> List[bool]:
        """Return for each NVLink whether it is up."""
        return [self.uint("nvmlDeviceGetNvLinkState", handle, c_uint(link)) == 1 for link in range(count)]

    # -- who uses it

    def holders(self, handle: c_void_p) -> List[Holder]:
        """Return the processes that compute on a GPU or a MIG slice."""
        count, room = c_uint(_MAX_PROCESSES), (_Process * _MAX_PROCESSES)()
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), room)
        return [Holder(row.pid, float(row.memory)) for row in room[: count.value]]

    def slices(self, handle: c_void_p) -> List[c_void_p]:
        """Return the MIG slices of a GPU; none where it is not cut."""
        if not self.is_cut(handle):
            return []
        found = []
        for index in range(int(self.uint("nvmlDeviceGetMaxMigDeviceCount", handle) or 0)):
            try:
                found.append(self._handle("nvmlDeviceGetMigDeviceHandleByIndex", handle, c_uint(index)))
            except NvmlError as error:
                if error.code != NOT_FOUND:
                    raise
        return found

    def is_cut(self, handle: c_void_p) -> bool:
        """Return whether MIG is on."""
        current, pending = c_uint(), c_uint()
        try:
            self.call("nvmlDeviceGetMigMode", handle, byref(current), byref(pending))
        except NvmlError as error:
            if error.code in NEVER:
                return False
            raise
        return current.value == 1

    def profile(self, slice_handle: c_void_p, board: c_void_p) -> str:
        """Return a slice's profile as NVIDIA writes it: 1g.18gb."""
        said = _Attributes()
        self.call("nvmlDeviceGetAttributes_v2", slice_handle, byref(said))
        return "%dg.%dgb" % (said.gpu_slices, named_gb(said.memory_mib * MIB, self.memory(board)[1] or 0.0))

    # -- activity, by GPM

    def has_gpm(self, handle: c_void_p) -> bool:
        """Return whether the card counts activity: Hopper and newer do."""
        said = _Support(_GPM_VERSION)
        try:
            self.call("nvmlGpmQueryDeviceSupport", handle, byref(said))
        except NvmlError:
            return False
        return bool(said.supported)

    def gpm_sample(self) -> c_void_p:
        """Return room for a sample."""
        sample: c_void_p = self._out(c_void_p, "nvmlGpmSampleAlloc")
        return sample

    def take_gpm(self, handle: c_void_p, instance: Optional[int], sample: c_void_p) -> None:
        """Take a sample of a GPU, or of the slice with this number."""
        if instance is None:
            self.call("nvmlGpmSampleGet", handle, sample)
        else:
            self.call("nvmlGpmMigSampleGet", handle, c_uint(instance), sample)

    def gpm_between(self, before: c_void_p, after: c_void_p, numbers: Sequence[int]) -> Dict[int, float]:
        """Return what happened between two samples, by GPM's numbers."""
        request = _gpm_request(len(numbers))
        request.version, request.count, request.before, request.after = _GPM_VERSION, len(numbers), before, after
        for row, number in zip(request.metrics, numbers):
            row.id = number
        self.call("nvmlGpmMetricsGet", byref(request))
        return {row.id: row.value for row in request.metrics if row.code == 0}


NOT_FOUND = 6
NEVER = (nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND)
"""Answers that stay what they are: there is no use in asking again."""
GONE = (nvml.GPU_LOST, nvml.RESET_REQUIRED)


def named_gb(slice_bytes: float, board_bytes: float) -> int:
    """Return the memory in a slice's name: so many eighths of the board's as the slice has begun, in whole GiB."""
    eighths = -(-8 * slice_bytes // board_bytes) if board_bytes else 0.0
    return round(eighths / 8 * (board_bytes + GIB - 1) / GIB)


def _gpm_request(count: int) -> ctypes.Structure:
    class _Request(ctypes.Structure):
        _fields_ = [
            ("version", c_uint),
            ("count", c_uint),
            ("before", c_void_p),
            ("after", c_void_p),
            ("metrics", _GpmMetric * count),
        ]

    return _Request()
