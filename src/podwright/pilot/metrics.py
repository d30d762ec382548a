"""The table of every metric the pilot samples: its unit, its kind, how often it is read, and what it means.

Periods follow the measured cost of a reading: what costs microseconds is read every second; what costs milliseconds
is a counter, so that reading it seldom loses nothing. PCIe bytes cost more than most, but the driver counts them in 32
bits, and read seldom they would turn over unseen.
"""

from __future__ import annotations

from typing import NamedTuple, Optional


class Metric(NamedTuple):
    """One row: in `name`, N, R and DEV/PORT stand for the device's own index."""

    name: str
    unit: str
    kind: str
    period_s: float
    help: str


def _row(name: str, unit: str, period_s: float, text: str) -> Metric:
    return Metric(name, unit, "counter" if name.endswith("_total") else "gauge", period_s, text)


METRICS = (
    _row("cpu_percent", "percent", 1, "CPU time used, of all CPUs the run may use on this node"),
    _row("load1", "tasks", 1, "tasks running or waiting, averaged over one minute"),
    _row("memory_used_bytes", "bytes", 1, "memory in use, without page cache that can be dropped"),
    _row("memory_total_bytes", "bytes", 60, "memory the run may use on this node"),
    _row("disk_read_bytes_total", "bytes", 1, "read from disks"),
    _row("disk_written_bytes_total", "bytes", 1, "written to disks"),
    _row("net_received_bytes_total", "bytes", 1, "received by network interfaces"),
    _row("net_sent_bytes_total", "bytes", 1, "sent by network interfaces"),
    _row("cpu_energy_joules_total", "joules", 10, "energy of all CPU packages of the machine"),
    _row("gpu.N.utilization_percent", "percent", 1, "time in which a kernel ran"),
    _row("gpu.N.memory_percent", "percent", 1, "time in which device memory was read or written"),
    _row("gpu.N.memory_used_bytes", "bytes", 1, "device memory in use"),
    _row("gpu.N.temperature_celsius", "celsius", 1, "temperature of the GPU"),
    _row("gpu.N.memory_temperature_celsius", "celsius", 1, "temperature of the device memory"),
    _row("gpu.N.power_watts", "watts", 1, "power of the board, averaged by the driver"),
    _row("gpu.N.power_instant_watts", "watts", 1, "power of the board at this moment"),
    _row("gpu.N.energy_joules_total", "joules", 30, "energy of the board since the driver was loaded"),
    _row("gpu.N.sm_clock_mhz", "MHz", 1, "clock of the multiprocessors"),
    _row("gpu.N.memory_clock_mhz", "MHz", 1, "clock of the device memory"),
    _row("gpu.N.throttle_reasons", "bitmask", 1, "why the clocks are not higher, as NVML numbers it"),
    _row("gpu.N.ecc_corrected_total", "errors", 1, "memory errors corrected since the driver was loaded"),
    _row("gpu.N.ecc_uncorrected_total", "errors", 1, "memory errors not corrected since the driver was loaded"),
    _row("gpu.N.pcie_replay_total", "packets", 10, "PCIe packets that were sent again"),
    _row("gpu.N.pcie_sent_bytes_total", "bytes", 1, "sent over PCIe"),
    _row("gpu.N.pcie_received_bytes_total", "bytes", 1, "received over PCIe"),
    _row("gpu.N.nvlink_sent_bytes_total", "bytes", 10, "sent over all NVLinks"),
    _row("gpu.N.nvlink_received_bytes_total", "bytes", 10, "received over all NVLinks"),
    _row("gpu.N.processes", "processes", 1, "compute processes on the GPU"),
    _row("ib.DEV/PORT.received_bytes_total", "bytes", 1, "received by the InfiniBand port"),
    _row("ib.DEV/PORT.sent_bytes_total", "bytes", 1, "sent by the InfiniBand port"),
    _row("ib.DEV/PORT.transmit_wait_total", "ticks", 10, "time in which data waited for the port to take it"),
    _row("ib.DEV/PORT.link_downed_total", "times", 10, "how often the link went down"),
    _row("ib.DEV/PORT.symbol_error_total", "errors", 10, "symbols received wrong"),
    _row("ib.DEV/PORT.rate_gbps", "Gbit/s", 60, "speed of the link"),
    _row("rank.R.cpu_percent", "percent", 1, "CPU time of the rank's processes; 100 is one core"),
    _row("rank.R.memory_bytes", "bytes", 1, "resident memory of the rank's processes"),
    _row("rank.R.threads", "threads", 1, "threads of the rank's processes"),
)

_BY_NAME: dict[str, Metric] = {row.name: row for row in METRICS}
_PLACEHOLDER = {"gpu": "gpu.N.", "ib": "ib.DEV/PORT.", "rank": "rank.R."}


def metric_of(name: str) -> Optional[Metric]:
    """The row of a sampled name: `gpu.3.power_watts` is of `gpu.N.power_watts`."""
    device, dot, last = name.rpartition(".")
    kind = device.partition(".")[0]
    return _BY_NAME.get(_PLACEHOLDER.get(kind, kind + ".") + last if dot else name)


def period_of(name: str) -> float:
    """How often a row of the table is read, in seconds."""
    return _BY_NAME[name].period_s
