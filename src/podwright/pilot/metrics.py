"""The table of every metric the pilot samples: its unit, kind, title and meaning, and how often it is read.

It is the one table of metrics: what the terminal, reports and exporters show takes unit, kind and title from here.

Periods follow the measured cost of a reading: what costs microseconds is read every second; what costs milliseconds
is a counter, so that reading it seldom loses nothing. PCIe bytes cost more than most, but the driver counts them in 32
bits, and read seldom they would turn over unseen.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

GAUGE, COUNTER = "gauge", "counter"
_RATE_UNITS = {"bytes": "bytes_per_s", "joules": "watts"}


class Metric(NamedTuple):
    """One row: in `name`, N, R and DEV/PORT stand for the device's own index.

    `title` heads what is drawn of it, and a counter is drawn as its rate: that of energy is power.
    """

    name: str
    unit: str
    kind: str
    period_s: float
    title: str
    help: str

    @property
    def is_counter(self) -> bool:
        """Return whether the readings only grow; they are drawn as a rate."""
        return self.kind == COUNTER

    @property
    def drawn_unit(self) -> str:
        """Return the unit of what is drawn: the rate's where the readings count."""
        if not self.is_counter:
            return self.unit
        return _RATE_UNITS.get(self.unit, self.unit + "_per_s")


def _row(name: str, unit: str, period_s: float, title: str, text: str) -> Metric:
    kind = COUNTER if name.endswith("_total") else GAUGE
    return Metric(name, unit, kind, period_s, title, text)


METRICS = (
    _row("cpu_percent", "percent", 1, "CPU utilisation", "CPU time used, of all CPUs the run may use on this node"),
    _row("load1", "tasks", 1, "Load", "tasks running or waiting, averaged over one minute"),
    _row("memory_used_bytes", "bytes", 1, "Memory used", "memory in use, without page cache that can be dropped"),
    _row("memory_total_bytes", "bytes", 60, "Memory", "memory the run may use on this node"),
    _row("disk_read_bytes_total", "bytes", 1, "Disk read", "read from disks"),
    _row("disk_written_bytes_total", "bytes", 1, "Disk written", "written to disks"),
    _row("net_received_bytes_total", "bytes", 1, "Network received", "received by network interfaces"),
    _row("net_sent_bytes_total", "bytes", 1, "Network sent", "sent by network interfaces"),
    _row("cpu_energy_joules_total", "joules", 10, "CPU power", "energy of all CPU packages of the machine"),
    _row("gpu.N.utilization_percent", "percent", 1, "GPU utilisation", "time in which a kernel ran"),
    _row("gpu.N.memory_percent", "percent", 1, "GPU memory use", "time in which device memory was read or written"),
    _row("gpu.N.memory_used_bytes", "bytes", 1, "GPU memory used", "device memory in use"),
    _row("gpu.N.temperature_celsius", "celsius", 1, "GPU temperature", "temperature of the GPU"),
    _row("gpu.N.memory_temperature_celsius", "celsius", 1, "GPU memory temperature", "temperature of device memory"),
    _row("gpu.N.power_watts", "watts", 1, "GPU power", "power of the board, averaged by the driver"),
    _row("gpu.N.power_instant_watts", "watts", 1, "GPU power, instant", "power of the board at this moment"),
    _row("gpu.N.energy_joules_total", "joules", 30, "GPU power by energy", "energy of the board since driver start"),
    _row("gpu.N.sm_clock_mhz", "MHz", 1, "GPU SM clock", "clock of the multiprocessors"),
    _row("gpu.N.memory_clock_mhz", "MHz", 1, "GPU memory clock", "clock of the device memory"),
    _row("gpu.N.throttle_reasons", "bitmask", 1, "GPU throttling", "why the clocks are not higher, as NVML numbers it"),
    _row("gpu.N.ecc_corrected_total", "errors", 1, "ECC corrected", "corrected memory errors since driver start"),
    _row("gpu.N.ecc_uncorrected_total", "errors", 1, "ECC uncorrected", "uncorrected memory errors since driver start"),
    _row("gpu.N.pcie_replay_total", "packets", 10, "PCIe replays", "PCIe packets that were sent again"),
    _row("gpu.N.pcie_sent_bytes_total", "bytes", 1, "PCIe sent", "sent over PCIe"),
    _row("gpu.N.pcie_received_bytes_total", "bytes", 1, "PCIe received", "received over PCIe"),
    _row("gpu.N.nvlink_sent_bytes_total", "bytes", 10, "NVLink sent", "sent over all NVLinks"),
    _row("gpu.N.nvlink_received_bytes_total", "bytes", 10, "NVLink received", "received over all NVLinks"),
    _row("gpu.N.processes", "processes", 1, "GPU processes", "compute processes on the GPU"),
    _row("ib.DEV/PORT.received_bytes_total", "bytes", 1, "InfiniBand received", "received by the InfiniBand port"),
    _row("ib.DEV/PORT.sent_bytes_total", "bytes", 1, "InfiniBand sent", "sent by the InfiniBand port"),
    _row("ib.DEV/PORT.transmit_wait_total", "ticks", 10, "InfiniBand wait", "time in which data waited for the port"),
    _row("ib.DEV/PORT.link_downed_total", "times", 10, "InfiniBand link downs", "how often the link went down"),
    _row("ib.DEV/PORT.symbol_error_total", "errors", 10, "InfiniBand symbol errors", "symbols received wrong"),
    _row("ib.DEV/PORT.rate_gbps", "Gbit/s", 60, "InfiniBand link speed", "speed of the link"),
    _row("rank.R.cpu_percent", "percent", 1, "Rank CPU use", "CPU time of the rank's processes; 100 is one core"),
    _row("rank.R.memory_bytes", "bytes", 1, "Rank memory used", "resident memory of the rank's processes"),
    _row("rank.R.threads", "threads", 1, "Rank threads", "threads of the rank's processes"),
)

_BY_NAME: Dict[str, Metric] = {row.name: row for row in METRICS}
_PLACEHOLDER = {"gpu": "gpu.N.", "ib": "ib.DEV/PORT.", "rank": "rank.R."}


def metric_of(name: str) -> Optional[Metric]:
    """Return the row of a sampled name: `gpu.3.power_watts` is of `gpu.N.power_watts`."""
    device, _, last = name.rpartition(".")
    family, _, index = device.partition(".")
    if not index:
        return _BY_NAME.get(name)
    return _BY_NAME.get(_PLACEHOLDER.get(family, family + ".") + last)


def is_of(name: str, row: str) -> bool:
    """Return whether a sampled name is of this row of the table; a row that is not there is the caller's error."""
    metric = _BY_NAME[row]
    # Most names end otherwise: this is asked of every value of every node, every second.
    return name.endswith(row.rpartition(".")[2]) and metric_of(name) is metric


def period_of(name: str) -> float:
    """Return how often a row of the table is read, in seconds."""
    return _BY_NAME[name].period_s
