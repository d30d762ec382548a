"""The names under which quantities are told: our own in base units, and those of dcgm-exporter, before 4.9 and from it.

dcgm-exporter 4.9 renamed what it tells and changed units: MHz to hertz, millijoules to joules, percent to a ratio, MiB
to bytes. Dashboards are written for either, so both can be spoken. Names and units of 4.9 are those of NVIDIA's release
notes of 4.9.0 and of the tests of go-dcgm; where neither has one, the quantity has no name there.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

GAUGE, COUNTER = "gauge", "counter"
DCGM_4, DCGM_49 = "dcgm-4", "dcgm-4.9"
NAMES = {DCGM_4: (DCGM_4,), DCGM_49: (DCGM_49,), "both": (DCGM_4, DCGM_49), "none": ()}
"""What `--vocabulary` may say, and which foreign vocabularies that is; our own is always spoken."""
MIB = float(1 << 20)

HOST_LABEL = {DCGM_4: "Hostname", DCGM_49: "hostname"}
"""Before 4.8.3 the host was `Hostname`; between that and 4.9 names were old and this label was new."""
DRIVER_LABEL = {DCGM_4: "DCGM_FI_DRIVER_VERSION", DCGM_49: "DCGM_FI_SYSTEM_DRIVER_VERSION"}
OWNER_LABELS = ("run", "user", "job", "rank")
"""What series of a GPU carry as long as exactly one run holds it, in every vocabulary."""


class DcgmName(NamedTuple):
    """A quantity's name in a foreign vocabulary, and by what our base unit is multiplied for it."""

    name: str
    factor: float = 1.0
    kind: str = GAUGE


class Term(NamedTuple):
    """One quantity of a GPU: what the readings call it, and its names; `fixed` tells apart what shares a name."""

    key: str
    name: str
    help: str
    kind: str = GAUGE
    fixed: Tuple[Tuple[str, str], ...] = ()
    dcgm_4: Optional[DcgmName] = None
    dcgm_49: Optional[DcgmName] = None

    def foreign(self, vocabulary: str) -> Optional[DcgmName]:
        """Return the name in a foreign vocabulary, None where it has none."""
        return self.dcgm_4 if vocabulary == DCGM_4 else self.dcgm_49


_Pair = Tuple[str, str]
_Name = Tuple[str, float]


def _gauge(key: str, text: str, old: Optional[_Name] = None, new: Optional[_Name] = None) -> Term:
    return _row("podwright_gpu_" + key, key, text, (), (old, new))


def _of(key: str, name: str, fixed: _Pair, text: str, names: Tuple[Optional[_Name], Optional[_Name]]) -> Term:
    return _row("podwright_gpu_" + name, key, text, (fixed,), names)


def _row(
    name: str, key: str, text: str, fixed: Tuple[_Pair, ...], names: Tuple[Optional[_Name], Optional[_Name]]
) -> Term:
    kind = COUNTER if name.endswith("_total") else GAUGE
    old, new = (None if given is None else DcgmName("DCGM_FI_%s" % given[0], given[1], kind) for given in names)
    return Term(key, name, text, kind, fixed, old, new)


def _same(name: str) -> Tuple[_Name, _Name]:
    return (name, 1.0), (name, 1.0)


def _pair(old: str, new: str) -> Tuple[_Name, _Name]:
    return (old, 1.0), (new, 1.0)


_NOT_THERE = (None, None)
_ERROR, _LIMIT, _REASON = "error", "limit", "reason"
_USE = (
    _gauge(
        "utilization_ratio",
        "Share of time in which a kernel ran.",
        ("DEV_GPU_UTIL", 100.0),
        ("DEV_GPU_UTIL_RATIO", 1.0),
    ),
    _gauge(
        "memory_activity_ratio",
        "Share of time in which device memory was read or written.",
        ("DEV_MEM_COPY_UTIL", 100.0),
        ("DEV_MEMORY_UTIL_RATIO", 1.0),
    ),
    _gauge("encoder_ratio", "Use of the video encoder.", ("DEV_ENC_UTIL", 100.0), ("DEV_ENC_UTIL_RATIO", 1.0)),
    _gauge("decoder_ratio", "Use of the video decoder.", ("DEV_DEC_UTIL", 100.0), ("DEV_DEC_UTIL_RATIO", 1.0)),
    _gauge("memory_used_bytes", "Device memory in use.", ("DEV_FB_USED", 1 / MIB), ("DEV_FB_USED_BYTES", 1.0)),
    _gauge("memory_free_bytes", "Device memory that is free.", ("DEV_FB_FREE", 1 / MIB), ("DEV_FB_FREE_BYTES", 1.0)),
    _gauge(
        "memory_reserved_bytes",
        "Device memory that the driver keeps.",
        ("DEV_FB_RESERVED", 1 / MIB),
        ("DEV_FB_RESERVED_BYTES", 1.0),
    ),
    _gauge("memory_bytes", "Device memory there is.", ("DEV_FB_TOTAL", 1 / MIB), ("DEV_FB_CAPACITY_BYTES", 1.0)),
    _gauge("temperature_celsius", "Temperature of the GPU.", *_pair("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS")),
    _gauge(
        "memory_temperature_celsius",
        "Temperature of device memory.",
        *_pair("DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS"),
    ),
    _gauge(
        "power_watts", "Power of the board, averaged by the driver.", *_pair("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS")
    ),
    _gauge(
        "power_instant_watts",
        "Power of the board at this moment.",
        *_pair("DEV_POWER_USAGE_INSTANT", "DEV_BOARD_POWER_RAW_WATTS"),
    ),
    _gauge(
        "energy_joules_total",
        "Energy of the board since the driver was loaded.",
        ("DEV_TOTAL_ENERGY_CONSUMPTION", 1000.0),
        ("DEV_GPU_ENERGY_JOULES_TOTAL", 1.0),
    ),
    _gauge("sm_clock_hertz", "Clock of the multiprocessors.", ("DEV_SM_CLOCK", 1e-6), ("DEV_SM_CLOCK_HERTZ", 1.0)),
    _gauge("memory_clock_hertz", "Clock of device memory.", ("DEV_MEM_CLOCK", 1e-6), ("DEV_MEMORY_CLOCK_HERTZ", 1.0)),
    _gauge(
        "sm_clock_max_hertz",
        "Highest clock of the multiprocessors.",
        ("DEV_MAX_SM_CLOCK", 1e-6),
        ("DEV_SM_MAX_CLOCK_HERTZ", 1.0),
    ),
    _gauge("processes", "Compute processes on the GPU."),
    _gauge("pcie_sent_bytes_per_second", "Sent over PCIe, with its overhead.", *_same("PROF_PCIE_TX_BYTES")),
    _gauge("pcie_received_bytes_per_second", "Received over PCIe, with its overhead.", *_same("PROF_PCIE_RX_BYTES")),
    _gauge("nvlink_sent_bytes_per_second", "Sent over all NVLinks a second.", *_same("PROF_NVLINK_TX_BYTES")),
    _gauge("nvlink_received_bytes_per_second", "Received over all NVLinks a second.", *_same("PROF_NVLINK_RX_BYTES")),
    _gauge(
        "nvlink_bytes_per_second",
        "Moved over all NVLinks a second.",
        ("DEV_NVLINK_BANDWIDTH_TOTAL", 1e-6),
        ("DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1.0),
    ),
    _gauge("nvlink_sent_bytes_total", "Sent over all NVLinks."),
    _gauge("nvlink_received_bytes_total", "Received over all NVLinks."),
)
_ACTIVITY = (
    _gauge(
        "engine_active_ratio",
        "Share of time in which any engine worked.",
        *_pair("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"),
    ),
    _gauge(
        "sm_active_ratio",
        "Share of time in which a multiprocessor had a warp, mean of all.",
        *_pair("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"),
    ),
    _gauge(
        "sm_occupancy_ratio",
        "Warps there were, of those there could be.",
        *_pair("PROF_SM_OCCUPANCY", "PROF_SM_OCCUPANCY_RATIO"),
    ),
    _gauge(
        "tensor_active_ratio",
        "Share of cycles in which tensor cores worked.",
        *_pair("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"),
    ),
    _gauge(
        "dram_active_ratio",
        "Share of cycles in which device memory moved data.",
        *_pair("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"),
    ),
)
THROTTLES = (
    ("idle", 0x1),
    ("application_clocks", 0x2),
    ("power_cap", 0x4),
    ("hardware_slowdown", 0x8),
    ("sync_boost", 0x10),
    ("thermal_software", 0x20),
    ("thermal_hardware", 0x40),
    ("power_brake", 0x80),
    ("display_clocks", 0x100),
)
"""Why clocks may be lower, with NVML's bit of each. `idle` and `power_cap` are no faults."""
_HEALTH = (
    _gauge(
        "throttle_reasons",
        "Why the clocks are not higher, as NVML numbers it.",
        *_same("DEV_CLOCKS_EVENT_REASONS"),
    ),
    *(
        _of(
            "throttled_" + word,
            "throttled",
            (_REASON, word),
            "Whether clocks are held down for this reason.",
            _NOT_THERE,
        )
        for word, _ in THROTTLES
    ),
    _of(
        "throttle_power_seconds_total",
        "throttle_seconds_total",
        (_REASON, "power"),
        "Time in which clocks were held down.",
        (("DEV_POWER_VIOLATION", 1e9), ("DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 1.0)),
    ),
    _of(
        "throttle_thermal_seconds_total",
        "throttle_seconds_total",
        (_REASON, "thermal"),
        "Time in which clocks were held down.",
        (("DEV_THERMAL_VIOLATION", 1e9), ("DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 1.0)),
    ),
    *(
        _of(
            "throttle_%s_seconds_total" % word,
            "throttle_seconds_total",
            (_REASON, word),
            "Time in which clocks were held down.",
            (("DEV_%s_VIOLATION" % word.upper(), 1e9), None),
        )
        for word in ("sync_boost", "board_limit", "low_util", "reliability")
    ),
    *(
        _of(
            "throttle_%s_seconds_total" % word,
            "throttle_seconds_total",
            (_REASON, word),
            "Time in which clocks were held down.",
            (("DEV_CLOCKS_EVENT_REASON_%s_SLOWDOWN_NS" % other, 1e9),) * 2,
        )
        for word, other in (("thermal_hardware", "HW_THERM"), ("power_brake", "HW_POWER_BRAKE"))
    ),
    *(
        _of(
            "ecc_%s_total" % word,
            "ecc_errors_total",
            (_ERROR, word),
            "Memory errors since the driver was loaded.",
            _same("DEV_ECC_%s_VOL_TOTAL" % short),
        )
        for word, short in (("corrected", "SBE"), ("uncorrected", "DBE"))
    ),
    *(
        _of(
            "ecc_lifetime_%s_total" % word,
            "ecc_lifetime_errors_total",
            (_ERROR, word),
            "Memory errors in the life of the GPU.",
            _same("DEV_ECC_%s_AGG_TOTAL" % short),
        )
        for word, short in (("corrected", "SBE"), ("uncorrected", "DBE"))
    ),
    *(
        _of(
            "remapped_rows_%s_total" % word,
            "remapped_rows_total",
            (_ERROR, word),
            "Memory rows that were replaced by spare ones.",
            _pair("DEV_%s_REMAPPED_ROWS" % other, "DEV_ROW_REMAP_%s_TOTAL" % other),
        )
        for word, other in (("corrected", "CORRECTABLE"), ("uncorrected", "UNCORRECTABLE"))
    ),
    _gauge("row_remap_pending", "Whether a row waits for a reset to be replaced.", *_same("DEV_ROW_REMAP_PENDING")),
    _gauge(
        "row_remap_failed",
        "Whether a row could not be replaced.",
        *_pair("DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED"),
    ),
    _gauge(
        "recovery_action",
        "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain, 4 drain and reset.",
        *_pair("DEV_GET_GPU_RECOVERY_ACTION", "DEV_GPU_RECOVERY_ACTION"),
    ),
    _gauge(
        "fabric_state",
        "NVLink fabric: 0 none, 1 not started, 2 in progress, 3 completed.",
        *_same("DEV_FABRIC_MANAGER_STATUS"),
    ),
    _gauge(
        "fabric_error",
        "NVML's number of the error the fabric ended with; 0 is none.",
        *_same("DEV_FABRIC_MANAGER_ERROR"),
    ),
    _gauge("mig_enabled", "Whether the GPU is cut into MIG slices.", *_same("DEV_MIG_MODE")),
)
_LINKS = (
    _gauge(
        "pcie_replays_total",
        "PCIe packets that were sent again.",
        *_pair("DEV_PCIE_REPLAY_COUNTER", "DEV_PCIE_REPLAY_TOTAL"),
    ),
    _gauge("pcie_link_generation", "Generation of the PCIe link.", *_same("DEV_PCIE_LINK_GEN")),
    _gauge("pcie_link_generation_max", "Highest generation of the PCIe link.", *_same("DEV_PCIE_MAX_LINK_GEN")),
    _gauge("pcie_link_width", "Lanes of the PCIe link.", *_same("DEV_PCIE_LINK_WIDTH")),
    _gauge("pcie_link_width_max", "Most lanes of the PCIe link.", *_same("DEV_PCIE_MAX_LINK_WIDTH")),
    _gauge("nvlink_links", "NVLinks that the GPU has."),
    _gauge("nvlink_links_active", "NVLinks that are up."),
    *(
        _of(
            "nvlink_%s_errors_total" % word,
            "nvlink_errors_total",
            (_ERROR, word),
            "Errors of all NVLinks.",
            (old, ("DEV_NVLINK_%s_TOTAL" % new, 1.0)),
        )
        for word, old, new in (
            ("replay", ("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 1.0), "REPLAY"),
            ("recovery", ("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 1.0), "RECOVERY"),
            ("crc", ("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 1.0), "CRC_ERROR"),
        )
    ),
)
_LIMITS = (
    *(
        _of(
            "temperature_%s_celsius" % word,
            "temperature_limit_celsius",
            (_LIMIT, word),
            "Temperature that this card calls its limit.",
            _pair("DEV_" + old, "DEV_%s_CELSIUS" % new),
        )
        for word, old, new in (
            ("slowdown", "SLOWDOWN_TEMP", "GPU_TEMP_SLOWDOWN"),
            ("shutdown", "SHUTDOWN_TEMP", "GPU_TEMP_SHUTDOWN"),
            ("max_operating", "GPU_MAX_OP_TEMP", "GPU_MAX_OP_TEMP"),
            ("memory_max_operating", "MEM_MAX_OP_TEMP", "MEMORY_MAX_OP_TEMP"),
        )
    ),
    _gauge(
        "temperature_margin_celsius",
        "Distance to the nearest slowdown, as the card counts it.",
        *_pair("DEV_GPU_TEMP_LIMIT", "DEV_GPU_TEMP_MARGIN_CELSIUS"),
    ),
    *(
        _of(
            "power_%s_watts" % word,
            "power_limit_watts",
            (_LIMIT, word),
            "Power that this card is held to, or may be.",
            _pair("DEV_" + old, "DEV_BOARD_POWER_LIMIT_%s_WATTS" % word.upper()),
        )
        for word, old in (
            ("enforced", "ENFORCED_POWER_LIMIT"),
            ("requested", "POWER_MGMT_LIMIT"),
            ("min", "POWER_MGMT_LIMIT_MIN"),
            ("max", "POWER_MGMT_LIMIT_MAX"),
            ("default", "POWER_MGMT_LIMIT_DEF"),
        )
    ),
)
TERMS = (*_USE, *_ACTIVITY, *_HEALTH, *_LINKS, *_LIMITS)
"""Everything that is told of a GPU or a MIG slice, a row for each quantity.

In our own vocabulary its labels are `host`, `gpu`, of a slice `mig`, its owner's, and the row's own.
"""

LAST_XID = Term(
    "xid",
    "podwright_gpu_xid_last",
    "The last XID of the GPU; 0 where there was none.",
    GAUGE,
    (),
    DcgmName("DCGM_FI_DEV_XID_ERRORS"),
    DcgmName("DCGM_FI_DEV_XID_ERROR"),
)
