"""What is read of a card, how often, and by which call: a row each. Rows that pilots read too are theirs."""

from __future__ import annotations

from ctypes import c_int, c_uint, c_void_p
from typing import Callable, Dict, NamedTuple, Optional, Tuple, Union

from ...pilot.sensors.gpus import GPU_METRICS
from .cards import MIB, Cards
from .vocabulary import THROTTLES

FAST_S, SLOW_S, ENERGY_S, LIMITS_S = 1.0, 10.0, 30.0, 300.0
"""What costs microseconds is read each second; what costs more is a counter, or seldom changes."""

Value = Union[Optional[float], Dict[str, float]]


class CardReading(NamedTuple):
    """One question to the library: its answer is the value of `key`, or several values by their keys."""

    key: str
    period_s: float
    of_slice: bool
    read: Callable[[Cards, c_void_p], Value]


_PILOTS = (
    ("utilization_ratio", "utilization_percent", 0.01, FAST_S),
    ("memory_activity_ratio", "memory_percent", 0.01, FAST_S),
    ("temperature_celsius", "temperature_celsius", 1.0, FAST_S),
    ("memory_temperature_celsius", "memory_temperature_celsius", 1.0, FAST_S),
    ("power_watts", "power_watts", 1.0, FAST_S),
    ("power_instant_watts", "power_instant_watts", 1.0, FAST_S),
    ("sm_clock_hertz", "sm_clock_mhz", 1e6, FAST_S),
    ("memory_clock_hertz", "memory_clock_mhz", 1e6, FAST_S),
    ("throttle_reasons", "throttle_reasons", 1.0, FAST_S),
    ("ecc_corrected_total", "ecc_corrected_total", 1.0, FAST_S),
    ("ecc_uncorrected_total", "ecc_uncorrected_total", 1.0, FAST_S),
    ("energy_joules_total", "energy_joules_total", 1.0, ENERGY_S),
    ("pcie_replays_total", "pcie_replay_total", 1.0, SLOW_S),
    ("nvlink_sent_bytes_total", "nvlink_sent_bytes_total", 1.0, SLOW_S),
    ("nvlink_received_bytes_total", "nvlink_received_bytes_total", 1.0, SLOW_S),
)
"""Our key, the pilot's metric, what its value is multiplied by, and how often it is read."""


def _of_pilot(key: str, metric: str, factor: float, period_s: float) -> CardReading:
    row = next(row for row in GPU_METRICS if row.metric == metric)

    def read(lib: Cards, gpu: c_void_p) -> Optional[float]:
        value = row.read(lib, gpu)
        return None if value is None else value * factor

    return CardReading(key, period_s, row.of_slice, read)


def _slow(key: str, read: Callable[[Cards, c_void_p], Value], period_s: float = SLOW_S) -> CardReading:
    return CardReading(key, period_s, False, read)


def _field(key: str, number: int, factor: float = 1.0, scope: int = 0) -> CardReading:
    return _slow(key, lambda lib, gpu: lib.field(gpu, number, scope, factor))


def _number(key: str, name: str, *arguments: object) -> CardReading:
    return _slow(key, lambda lib, gpu: lib.uint(name, gpu, *arguments))


def _limit(key: str, read: Callable[[Cards, c_void_p], Value]) -> CardReading:
    return _slow(key, read, LIMITS_S)


_ECC = "nvmlDeviceGetTotalEccErrors"
_THRESHOLDS = (("shutdown", 0, 193), ("slowdown", 1, 194), ("memory_max_operating", 2, 195), ("max_operating", 3, 196))
_VIOLATIONS = (
    ("power", 74),
    ("thermal", 75),
    ("sync_boost", 76),
    ("board_limit", 77),
    ("low_util", 78),
    ("reliability", 79),
    ("thermal_hardware", 252),
    ("power_brake", 253),
)
_NVLINK_ERRORS = (("replay", 161), ("recovery", 162), ("crc", 163))
_NANO = 1e-9


def _threshold(word: str, kind: int) -> CardReading:
    return _limit("temperature_%s_celsius" % word, lambda lib, gpu: lib.threshold(gpu, kind))


def _power_range(lib: Cards, gpu: c_void_p) -> Value:
    least, most = lib.power_range(gpu)
    return {"power_min_watts": least, "power_max_watts": most}


READINGS: Tuple[CardReading, ...] = (
    *(_of_pilot(*row) for row in _PILOTS),
    CardReading("memory", FAST_S, True, lambda lib, gpu: lib.memory_parts(gpu)),
    _slow("encoder_ratio", lambda lib, gpu: lib.codec("nvmlDeviceGetEncoderUtilization", gpu)),
    _slow("decoder_ratio", lambda lib, gpu: lib.codec("nvmlDeviceGetDecoderUtilization", gpu)),
    _slow("ecc_lifetime_corrected_total", lambda lib, gpu: lib.ulonglong(_ECC, gpu, c_int(0), c_int(1))),
    _slow("ecc_lifetime_uncorrected_total", lambda lib, gpu: lib.ulonglong(_ECC, gpu, c_int(1), c_int(1))),
    _slow("remapped_rows", lambda lib, gpu: lib.remapped_rows(gpu)),
    *(_field("throttle_%s_seconds_total" % word, number, _NANO) for word, number in _VIOLATIONS),
    _number("pcie_link_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _number("pcie_link_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    *(_field("nvlink_%s_errors_total" % word, number) for word, number in _NVLINK_ERRORS),
    _field("recovery_action", 230),
    _slow("fabric", lambda lib, gpu: lib.fabric(gpu)),
    _slow("mig_enabled", lambda lib, gpu: float(lib.is_cut(gpu))),
    _slow("temperature_margin_celsius", lambda lib, gpu: lib.margin(gpu)),
    *(_threshold(word, kind) for word, kind, _ in _THRESHOLDS),
    _limit("power_enforced_watts", lambda lib, gpu: lib.uint("nvmlDeviceGetEnforcedPowerLimit", gpu, factor=1e-3)),
    _limit("power_requested_watts", lambda lib, gpu: lib.uint("nvmlDeviceGetPowerManagementLimit", gpu, factor=1e-3)),
    _limit(
        "power_default_watts", lambda lib, gpu: lib.uint("nvmlDeviceGetPowerManagementDefaultLimit", gpu, factor=1e-3)
    ),
    _limit("power_range", _power_range),
    _limit("pcie_link_generation_max", lambda lib, gpu: lib.uint("nvmlDeviceGetMaxPcieLinkGeneration", gpu)),
    _limit("pcie_link_width_max", lambda lib, gpu: lib.uint("nvmlDeviceGetMaxPcieLinkWidth", gpu)),
    _limit("sm_clock_max_hertz", lambda lib, gpu: lib.uint("nvmlDeviceGetMaxClockInfo", gpu, c_uint(1), factor=1e6)),
)

GPM = {
    1: ("engine_active_ratio", 0.01),
    2: ("sm_active_ratio", 0.01),
    3: ("sm_occupancy_ratio", 0.01),
    5: ("tensor_active_ratio", 0.01),
    10: ("dram_active_ratio", 0.01),
    20: ("pcie_sent_bytes_per_second", MIB),
    21: ("pcie_received_bytes_per_second", MIB),
    60: ("nvlink_received_bytes_per_second", MIB),
    61: ("nvlink_sent_bytes_per_second", MIB),
}
"""GPM's numbers, our key for each, and what its percent or MiB a second is multiplied by."""


def throttled(reasons: float) -> Dict[str, float]:
    """Return for each reason whether its bit is set."""
    return {"throttled_" + word: float(bool(int(reasons) & bit)) for word, bit in THROTTLES}
