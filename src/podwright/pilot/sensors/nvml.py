"""The few functions of NVIDIA's management library (NVML) that the pilot calls, through ctypes.

Newer names of a function are tried first and older ones after: the driver of the node decides which there are.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_double, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Any, NamedTuple, Optional

NOT_SUPPORTED, INSUFFICIENT_SIZE, TIMEOUT, FUNCTION_NOT_FOUND, GPU_LOST, RESET_REQUIRED = 3, 7, 10, 13, 15, 16
VERSION_MISMATCH = 25
# Our own number, beside NVML's.
TOO_NARROW = -1
XID_EVENT = 8
ALL_LINKS = 0xFFFFFFFF

_WORDS = {
    TOO_NARROW: "its 32-bit counter turns over too fast at this rate",
    NOT_SUPPORTED: "not supported by this GPU",
    4: "not permitted",
    9: "the driver is not loaded",
    12: "the library is not there",
    FUNCTION_NOT_FOUND: "not in this driver",
    GPU_LOST: "the GPU is lost",
    RESET_REQUIRED: "the GPU needs a reset",
    18: "the driver and its library are of different versions",
}
_OLDER = {
    "nvmlInit_v2": ["nvmlInit"],
    "nvmlDeviceGetCount_v2": ["nvmlDeviceGetCount"],
    "nvmlDeviceGetHandleByIndex_v2": ["nvmlDeviceGetHandleByIndex"],
    "nvmlDeviceGetComputeRunningProcesses_v3": [
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetComputeRunningProcesses",
    ],
    "nvmlDeviceGetCurrentClocksEventReasons": ["nvmlDeviceGetCurrentClocksThrottleReasons"],
    "nvmlDeviceGetPciInfo_v2": ["nvmlDeviceGetPciInfo"],
    "nvmlEventSetWait_v2": ["nvmlEventSetWait"],
}
# Values from here on mean "blank" or "not available" in NVML and in what is built on it.
_BLANK_32, _BLANK_64, _BLANK_DOUBLE = 0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, float(1 << 47)
_BLANK_OF = {"double": _BLANK_DOUBLE, "ulong": _BLANK_64, "ulonglong": _BLANK_64, "longlong": _BLANK_64}
_TURN = 1 << 32


class NvmlError(Exception):
    """A call that did not succeed, with NVML's number for why."""

    def __init__(self, code: int) -> None:
        super().__init__(_WORDS.get(code, "NVML error %d" % code))
        self.code = code


class Xid(NamedTuple):
    """An error the driver reported: the handle's address of the GPU, and NVIDIA's number for the error."""

    handle: Optional[int]
    number: int


class _Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(ctypes.Structure):
    """What a newer driver says of memory; `version` is asked for."""

    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class _Value(ctypes.Union):
    _fields_ = [
        ("double", c_double),
        ("uint", c_uint),
        ("ulong", ctypes.c_ulong),
        ("ulonglong", c_ulonglong),
        ("longlong", c_longlong),
        ("int", c_int),
        ("ushort", ctypes.c_ushort),
    ]


class _Field(ctypes.Structure):
    _fields_ = [
        ("field", c_uint),
        ("scope", c_uint),
        ("timestamp", c_longlong),
        ("latency_us", c_longlong),
        ("type", c_int),
        ("result", c_int),
        ("value", _Value),
    ]


class _Event(ctypes.Structure):
    _fields_ = [
        ("device", c_void_p),
        ("type", c_ulonglong),
        ("data", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class Nvml:
    """The library, loaded and started; a handle is what it calls a device by."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._library: Any = None
        self._functions: dict[str, Any] = {}
        self._turns: dict[tuple[Optional[int], int], tuple[int, int]] = {}

    def open(self) -> None:
        """Load the library; OSError where there is none, NvmlError where it cannot start."""
        self._library = ctypes.CDLL(self._path)
        self.call("nvmlInit_v2")

    def close(self) -> None:
        if self._library is not None:
            self.call("nvmlShutdown")
            self._library = None

    def call(self, name: str, *arguments: Any) -> None:
        function = self._functions.get(name) or self._find(name)
        code = function(*arguments)
        if code:
            raise NvmlError(code)

    def _find(self, name: str) -> Any:
        for spelling in [name, *_OLDER.get(name, [])]:
            function = getattr(self._library, spelling, None)
            if function is not None:
                self._functions[name] = function
                return function
        raise NvmlError(FUNCTION_NOT_FOUND)

    # -- what there is

    def handles(self) -> list[c_void_p]:
        count = self._out(c_uint, "nvmlDeviceGetCount_v2").value
        return [self._handle("nvmlDeviceGetHandleByIndex_v2", c_uint(index)) for index in range(count)]

    def handle_of(self, uuid: str) -> c_void_p:
        return self._handle("nvmlDeviceGetHandleByUUID", uuid.encode())

    def board_of(self, slice_handle: c_void_p) -> c_void_p:
        """Return the GPU that a MIG slice is a part of."""
        return self._handle("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice_handle)

    def instance_of(self, slice_handle: c_void_p) -> int:
        return int(self._out(c_uint, "nvmlDeviceGetGpuInstanceId", slice_handle).value)

    def driver(self) -> str:
        return self._text("nvmlSystemGetDriverVersion")

    def name(self, handle: c_void_p) -> str:
        return self._text("nvmlDeviceGetName", handle)

    def uuid(self, handle: c_void_p) -> str:
        return self._text("nvmlDeviceGetUUID", handle)

    def pci(self, handle: c_void_p) -> str:
        """Return the PCI address as /sys spells it: 0000:07:00.0."""
        buffer = ctypes.create_string_buffer(128)
        try:
            self.call("nvmlDeviceGetPciInfo_v3", handle, buffer)
            # The long address follows the short one (16 bytes) and five numbers.
            address = buffer.raw[36:68]
        except NvmlError as error:
            if error.code != FUNCTION_NOT_FOUND:
                raise
            self.call("nvmlDeviceGetPciInfo_v2", handle, buffer)
            address = buffer.raw[:16]
        domain, _, rest = address.split(b"\0", 1)[0].decode().lower().partition(":")
        return "%04x:%s" % (int(domain, 16), rest)

    # -- what is read again and again; a value is None where NVML has it blank

    def uint(self, name: str, *arguments: Any, factor: float = 1.0) -> Optional[float]:
        """Return what a function of one 32-bit number says."""
        return _number(self._out(c_uint, name, *arguments).value, _BLANK_32, factor)

    def ulonglong(self, name: str, *arguments: Any, factor: float = 1.0) -> Optional[float]:
        """Return what a function of one 64-bit number says."""
        return _number(self._out(c_ulonglong, name, *arguments).value, _BLANK_64, factor)

    def utilization(self, handle: c_void_p, of: str) -> Optional[float]:
        """Return the percent of time in which the GPU, or its memory, was used."""
        return _number(getattr(self._out(_Utilization, "nvmlDeviceGetUtilizationRates", handle), of))

    def memory(self, handle: c_void_p) -> tuple[Optional[float], Optional[float]]:
        """Return bytes used and bytes there are."""
        new = MemoryV2(ctypes.sizeof(MemoryV2) | 2 << 24)
        try:
            self.call("nvmlDeviceGetMemoryInfo_v2", handle, byref(new))
            return _number(new.used, _BLANK_64), _number(new.total, _BLANK_64)
        except NvmlError as error:
            if error.code not in (FUNCTION_NOT_FOUND, VERSION_MISMATCH):
                raise
        old = self._out(_Memory, "nvmlDeviceGetMemoryInfo", handle)
        return _number(old.used, _BLANK_64), _number(old.total, _BLANK_64)

    def processes(self, handle: c_void_p) -> Optional[float]:
        count = c_uint(0)
        try:
            self.call("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), None)
        except NvmlError as error:
            # It was given no room for the list itself, and answers with the count it needs.
            if error.code != INSUFFICIENT_SIZE:
                raise
        return _number(count.value)

    def field(self, handle: c_void_p, number: int, scope: int = 0, factor: float = 1.0) -> Optional[float]:
        """Return one of NVML's numbered fields."""
        kind, value = self._field(handle, number, scope)
        return _number(value, _BLANK_OF.get(kind, _BLANK_32), factor)

    def counter(self, handle: c_void_p, number: int) -> Optional[float]:
        """Return a field that counts, grown on where the driver's count has 32 bits and starts again after 4 GiB.

        More than half a turn between two readings may be a turn and a half as well: then the count is no more to be
        trusted, and that is an error.
        """
        kind, value = self._field(handle, number, 0)
        if kind != "uint":
            return _number(value, _BLANK_64)
        last, total = self._turns.get((handle.value, number), (value, value))
        grown = (value - last) % _TURN
        if grown > _TURN // 2:
            raise NvmlError(TOO_NARROW)
        self._turns[handle.value, number] = (value, total + grown)
        return float(total + grown)

    def _field(self, handle: c_void_p, number: int, scope: int) -> tuple[str, Any]:
        field = _Field(field=number, scope=scope)
        self.call("nvmlDeviceGetFieldValues", handle, 1, byref(field))
        if field.result:
            raise NvmlError(field.result)
        kind = str(_Value._fields_[field.type][0])
        return kind, getattr(field.value, kind)

    # -- errors the driver reports by itself

    def xid_set(self, handles: list[c_void_p]) -> c_void_p:
        """Return an event set on which XID errors of these GPUs arrive."""
        events: c_void_p = self._out(c_void_p, "nvmlEventSetCreate")
        for handle in handles:
            self.call("nvmlDeviceRegisterEvents", handle, c_ulonglong(XID_EVENT), events)
        return events

    def wait_xid(self, events: c_void_p, timeout_ms: int) -> Optional[Xid]:
        """Sleep until an XID arrives or the time is over."""
        event = _Event()
        try:
            self.call("nvmlEventSetWait_v2", events, byref(event), timeout_ms)
        except NvmlError as error:
            if error.code == TIMEOUT:
                return None
            raise
        return None if event.type != XID_EVENT else Xid(event.device, event.data)

    def free_set(self, events: c_void_p) -> None:
        self.call("nvmlEventSetFree", events)

    def _handle(self, name: str, *arguments: Any) -> c_void_p:
        handle: c_void_p = self._out(c_void_p, name, *arguments)
        return handle

    def _out(self, kind: Any, name: str, *arguments: Any) -> Any:
        """Call a function whose last argument is where it writes its answer, and return that."""
        answer = kind()
        self.call(name, *arguments, byref(answer))
        return answer

    def _text(self, name: str, *arguments: Any) -> str:
        buffer = (c_char * 96)()
        self.call(name, *arguments, buffer, c_uint(96))
        return bytes(buffer.value).decode(errors="replace")


def _number(value: float, blank: float = _BLANK_32, factor: float = 1.0) -> Optional[float]:
    # A value that is no number fails this comparison too.
    return float(value) * factor if value < blank else None
