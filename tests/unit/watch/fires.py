"""What makes each alert fire and then clear: series as promtool writes them, a value a minute for five hours."""

from __future__ import annotations

from typing import NamedTuple

FIRES_AT, CLEARS_AT, END = 90, 310, 320
"""Minutes: by the first every alert fires, by the second none does."""
# Two hours of what is wrong, then what is right: the longest window is three hours.
_WRONG, _RIGHT = 120, END - 120


class Series(NamedTuple):
    """A series with its value while something is wrong, and afterwards, None: it is gone; `step`: what counts up."""

    name: str
    wrong: float
    right: float | None
    step: float = 0

    def row(self) -> dict[str, str]:
        """Return it as promtool reads it."""
        if self.step:
            end = self.wrong + self.step * _WRONG
            return {"series": self.name, "values": f"{self.wrong}+{self.step}x{_WRONG - 1} {end:g}x{_RIGHT}"}
        after = "_" if self.right is None else self.right
        return {"series": self.name, "values": f"{self.wrong}x{_WRONG - 1} {after}x{_RIGHT}"}


GPU = 'host="n1", gpu="3"'
PORT = 'host="n1", device="mlx5_0", port="1"'
OWNED = f'{GPU}, run="digits-7f3k", user="alice", job="7", rank="3"'
_RATE = 5e10
_NFS = 'host="n1", mountpoint="/shared", operation="read"'


def _xid(action: str) -> list[Series]:
    name = f'podwright_gpu_xid_last_timestamp_seconds{{{GPU}, xid="79", action="{action}"}}'
    # Told of in every minute of the first two hours: promtool's clock begins at zero.
    return [Series(name, 0, 0, step=60)]


def _port(up: float, rate: float, port: str = PORT, leaf: str = "leaf1") -> list[Series]:
    return [
        Series(f"podwright_port_up{{{port}}}", up, 1),
        Series(f"podwright_port_rate_bytes_per_second{{{port}}}", rate, _RATE),
        Series(f'podwright_port_design_bytes_per_second{{{port}, leaf="{leaf}"}}', _RATE, _RATE),
    ]


def _card(number: int) -> Series:
    return Series(f'podwright_port_info{{{PORT.replace("n1", f"n{number}")}, board="MT_1", firmware="28.2"}}', 1, 1)


def _gpu(name: str, wrong: float, right: float, labels: str = "", step: float = 0) -> Series:
    return Series(f"podwright_gpu_{name}{{{', '.join(filter(None, (GPU, labels)))}}}", wrong, right, step)


SERIES: dict[str, list[Series]] = {
    "HostDown": [Series('up{job="node", host="n1"}', 0, 1)],
    "ExporterGone": [Series('up{job="gpu", host="n1"}', 0, 1), Series('up{job="node", host="n1"}', 1, 1)],
    "ControllerAway": [Series('podwright_bmc_up{host="n1"}', 0, 1)],
    "SensorFails": [Series('podwright_exporter_sensor_up{host="n1", sensor="gpus"}', 0, 1)],
    "DiskFull": [
        Series('node_filesystem_avail_bytes{host="n1", mountpoint="/", fstype="ext4"}', 1, 50),
        Series('node_filesystem_size_bytes{host="n1", mountpoint="/", fstype="ext4"}', 100, 100),
    ],
    "StorageSlow": [Series('node_pressure_io_stalled_seconds_total{host="n1"}', 0, 0, step=45)],
    "StorageAway": [Series('podwright_exporter_sensor_up{host="n1", sensor="mount /shared"}', 0, 1)],
    "StorageFull": [
        Series('podwright_storage_free_bytes{host="n1", mountpoint="/shared", fstype="nfs4"}', 1, 50),
        Series('podwright_storage_bytes{host="n1", mountpoint="/shared", fstype="nfs4"}', 100, 100),
    ],
    "StorageSlowly": [
        Series(f"podwright_storage_operation_seconds_total{{{_NFS}}}", 0, 0, step=120),
        Series(f"podwright_storage_operations_total{{{_NFS}}}", 0, 0, step=600),
    ],
    "DriverDiffers": [
        Series('podwright_exporter_info{host="n1", driver="570.1"}', 1, None),
        *(Series(f'podwright_exporter_info{{host="n{i}", driver="580.1"}}', 1, 1) for i in (2, 3)),
    ],
    "FileDiffers": [Series('podwright_host_file_differs{host="n1", file="/etc/hosts", how="edited"}', 1, None)],
    "ClockOff": [
        Series('node_timex_offset_seconds{host="n1"}', 0.2, 0),
        Series('node_timex_sync_status{host="n1"}', 1, 1),
    ],
    "CertificateEnds": [Series('podwright_certificate_end_timestamp_seconds{host="n1", file="f"}', 100, 1e8)],
    "GpuGone": [_gpu("up", 0, 1)],
    "GpusMissing": [Series('podwright_gpus{host="n1"}', 7, 8), Series('podwright_gpus_expected{host="n1"}', 8, 8)],
    "GpuXidProgram": _xid("restart_run"),
    "GpuXidReset": _xid("reset"),
    "GpuXidReboot": _xid("reboot"),
    "GpuXidService": _xid("service"),
    "GpuEccUncorrected": [_gpu("ecc_errors_total", 0, 0, 'error="uncorrected"', step=1)],
    "GpuRemapFailed": [_gpu("row_remap_failed", 1, 0)],
    "GpuRemapPending": [_gpu("row_remap_pending", 1, 0)],
    "GpuThrottled": [_gpu("throttled", 1, 0, 'reason="thermal_hardware"')],
    "GpuTooHot": [
        _gpu("temperature_celsius", 90, 60),
        _gpu("temperature_limit_celsius", 89, 89, 'limit="slowdown"'),
    ],
    "GpuPcieNarrow": [_gpu("pcie_link_width", 8, 16), _gpu("pcie_link_width_max", 16, 16)],
    "GpuPcieReplays": [_gpu("pcie_replays_total", 0, 0, step=20)],
    "GpuNvlinkDown": [_gpu("nvlink_links_active", 17, 18), _gpu("nvlink_links", 18, 18)],
    "GpuNvlinkErrors": [_gpu("nvlink_errors_total", 0, 0, 'error="replay"', step=1)],
    "GpuFabric": [_gpu("fabric_state", 1, 3), _gpu("fabric_error", 0, 0)],
    "GpuRecovery": [_gpu("recovery_action", 1, 0)],
    "LeafDown": _port(0, _RATE) + _port(0, _RATE, PORT.replace("n1", "n2")),
    "LinkDown": _port(0, _RATE) + _port(1, _RATE, PORT.replace("n1", "n2")),
    "LinkSlow": _port(1, _RATE / 2),
    "LinkFlapping": [Series(f"podwright_port_link_downed_total{{{PORT}}}", 0, 0, step=0.1)],
    "PortFirmwareDiffers": [
        Series(f'podwright_port_info{{{PORT}, board="MT_1", firmware="28.1"}}', 1, None),
        *(_card(i) for i in (2, 3)),
    ],
    "LinkPaused": [
        Series(f'podwright_port_pause_seconds_total{{{PORT}, interface="eth2", priority="3"}}', 0, 0, step=20)
    ],
    "LinkErrors": [Series(f'podwright_port_errors_total{{{PORT}, error="symbol"}}', 0, 0, step=20)],
    "GpuHeldIdle": [Series(f"podwright_gpu_utilization_ratio{{{OWNED}}}", 0, 0.9)],
    "RunHangs": [
        Series('podwright_run_step_timestamp_seconds{run="r", user="alice", host="n1"}', 0, 60 * END),
        Series('podwright_run_report_interval_seconds{run="r", user="alice", host="n1"}', 1, 1),
    ],
    "RunStraggler": [
        Series('podwright_run_work_slowest_seconds{run="r", user="alice", host="n1"}', 1.5, 1.1),
        Series('podwright_run_work_seconds{run="r", user="alice", host="n1"}', 1, 1),
    ],
    "CheckpointOverdue": [
        Series('podwright_run_checkpoint_timestamp_seconds{run="r", user="alice", host="n1"}', 0, 60 * END),
        Series('podwright_run_checkpoint_interval_seconds{run="r", user="alice", host="n1"}', 300, 300),
    ],
    "PrometheusBlind": [Series("prometheus_notifications_alertmanagers_discovered", 0, 1)],
    "SlurmDown": [Series('slurm_up{host="c1"}', 0, 1)],
    "NodesDown": [Series('slurm_nodes{state="down"}', 2, 0)],
    "NodesDrained": [Series('slurm_nodes{state="drained"}', 1, 0)],
}
