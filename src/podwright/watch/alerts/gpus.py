"""Alerts about GPUs.

No temperature stands here: a card tells its own limits. Sources of other figures are named beside them.
"""

from __future__ import annotations

from podwright.watch.alerts.alert import CRITICAL, GPU, LOOK_GPU, LOOK_RUN, WARNING, Alert

# How long an XID is an alert after it was told of: nothing says that it is over.
_XID_S = 900


def _xid(action: str) -> str:
    return f'time() - podwright_gpu_xid_last_timestamp_seconds{{action=~"{action}"}} < {_XID_S}'


_XID_TEXT = f"XID {{{{ $labels.xid }}}} on {GPU}"
GPUS = (
    Alert(
        "GpuGone",
        "podwright_gpu_up == 0",
        "1m",
        CRITICAL,
        f"{GPU} is gone: the driver does not see it any more",
        "it has fallen off the bus (XID 79), or was taken out",
        "ssh {{ $labels.host }} dmesg --since -1hour",
        remedy="xid",
        cure="reboot",
    ),
    Alert(
        "GpusMissing",
        "podwright_gpus < podwright_gpus_expected",
        "5m",
        CRITICAL,
        "{{ $labels.host }} has {{ $value }} GPUs, fewer than its model",
        "one was off the bus already when the host started",
        "ssh {{ $labels.host }} nvidia-smi -L",
        remedy="xid",
        cure="reboot",
    ),
    Alert(
        "GpuXidProgram",
        _xid("restart_run"),
        "",
        WARNING,
        f"{_XID_TEXT}: the program on it was stopped",
        "a fault of the program; on many programs of one GPU, of the GPU",
        LOOK_RUN,
    ),
    Alert(
        "GpuXidReset",
        _xid("reset"),
        "",
        CRITICAL,
        f"{_XID_TEXT}: the GPU must be reset",
        "a fault of the GPU that a reset may mend",
        LOOK_GPU,
        remedy="xid",
        cure="reset",
    ),
    Alert(
        "GpuXidReboot",
        _xid("reboot"),
        "",
        CRITICAL,
        f"{_XID_TEXT}: the host must be started anew",
        "the GPU has fallen off the bus",
        "ssh {{ $labels.host }} dmesg --since -1hour",
        remedy="xid",
        cure="reboot",
    ),
    Alert(
        "GpuXidService",
        _xid("check|service"),
        "",
        CRITICAL,
        f"{_XID_TEXT}: somebody must look at the GPU",
        "memory, NVLink or power cabling",
        LOOK_GPU,
        remedy="xid",
        cure="service",
    ),
    Alert(
        "GpuEccUncorrected",
        'increase(podwright_gpu_ecc_errors_total{error="uncorrected"}[15m]) > 0',
        "",
        CRITICAL,
        f"{GPU} had memory errors that could not be corrected",
        "its memory; the row is replaced at the next reset",
        LOOK_GPU,
        remedy="remap",
        cure="reset",
    ),
    Alert(
        "GpuRemapFailed",
        "podwright_gpu_row_remap_failed == 1",
        "",
        CRITICAL,
        f"a bad memory row of {GPU} could not be replaced",
        "no spare row is left: the GPU needs service",
        LOOK_GPU,
        remedy="remap",
        cure="service",
    ),
    Alert(
        "GpuRemapPending",
        "podwright_gpu_row_remap_pending == 1",
        "5m",
        WARNING,
        f"a bad memory row of {GPU} waits for a reset to be replaced",
        "an uncorrectable error before; what runs is not touched",
        LOOK_GPU,
        remedy="remap",
        cure="reset",
    ),
    # Azure's health agent holds the same four reasons (0xE8) for errors.
    Alert(
        "GpuThrottled",
        'podwright_gpu_throttled{reason=~"hardware_slowdown|thermal_software|thermal_hardware|power_brake"} == 1',
        "5m",
        WARNING,
        f"the clocks of {GPU} are held down: {{{{ $labels.reason }}}}",
        "heat (air flow, a clogged filter, a warm aisle), or too little power",
        LOOK_GPU,
    ),
    Alert(
        "GpuTooHot",
        "podwright_gpu_temperature_celsius"
        ' >= ignoring (limit) group_left podwright_gpu_temperature_limit_celsius{limit="slowdown"}',
        "1m",
        CRITICAL,
        f"{GPU} is at {{{{ $value }}}} degrees, where it slows itself down",
        "a fan, a pump, or the cooling of the row",
        LOOK_GPU,
    ),
    Alert(
        "GpuPcieNarrow",
        "podwright_gpu_pcie_link_width < podwright_gpu_pcie_link_width_max",
        "10m",
        WARNING,
        f"{GPU} has {{{{ $value }}}} lanes of PCIe, fewer than it could",
        "a card or riser that does not sit well",
        "ssh {{ $labels.host }} nvidia-smi -q -i {{ $labels.gpu }} -d PCIE",
    ),
    # DCGM's own limit: eight replays a minute.
    Alert(
        "GpuPcieReplays",
        "rate(podwright_gpu_pcie_replays_total[5m]) * 60 > 8",
        "5m",
        WARNING,
        f"{GPU} sends PCIe packets again, {{{{ $value }}}} a minute",
        "a card or riser that does not sit well",
        LOOK_GPU,
    ),
    Alert(
        "GpuNvlinkDown",
        "podwright_gpu_nvlink_links_active < podwright_gpu_nvlink_links",
        "2m",
        CRITICAL,
        f"only {{{{ $value }}}} NVLinks of {GPU} are up",
        "an NVLink, its switch, or the fabric manager",
        "ssh {{ $labels.host }} nvidia-smi nvlink -s -i {{ $labels.gpu }}",
        remedy="link",
        cure="reset",
    ),
    # DCGM holds one replay or recovery for an error, and CRC only from 100 a second on.
    Alert(
        "GpuNvlinkErrors",
        'increase(podwright_gpu_nvlink_errors_total{error=~"replay|recovery"}[15m]) >= 1'
        ' or rate(podwright_gpu_nvlink_errors_total{error="crc"}[5m]) >= 100',
        "5m",
        WARNING,
        f"NVLinks of {GPU} have errors: {{{{ $labels.error }}}}",
        "an NVLink that is about to fail",
        "ssh {{ $labels.host }} nvidia-smi nvlink -e -i {{ $labels.gpu }}",
    ),
    Alert(
        "GpuFabric",
        "podwright_gpu_fabric_error > 0 or (podwright_gpu_fabric_state > 0) < 3",
        "10m",
        CRITICAL,
        f"{GPU} has not joined its NVLink fabric",
        "the fabric manager has ended, or its release is not that of the driver",
        "ssh {{ $labels.host }} systemctl status nvidia-fabricmanager",
    ),
    Alert(
        "GpuRecovery",
        "podwright_gpu_recovery_action > 0",
        "1m",
        WARNING,
        f"the driver asks that {GPU} be recovered",
        "a fault that the driver could not mend; {{ $value }} is 1 reset, 2 reboot, 3 drain, 4 drain and reset",
        LOOK_GPU,
        remedy="xid",
        cure="reset",
    ),
)
