"""Everything else that a host tells: series that are of no GPU's reading, each with its labels and its meaning."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from .vocabulary import COUNTER, GAUGE, LAST_XID, OWNER_LABELS, TERMS


class Head(NamedTuple):
    """What is said of a series of the host rather than of a GPU: its name, its labels beside `host`, its meaning."""

    name: str
    labels: Tuple[str, ...]
    help: str

    @property
    def kind(self) -> str:
        """Return what its values do: names of counters end alike."""
        return COUNTER if self.name.endswith("_total") else GAUGE


XID_ACTIONS = ("restart_run", "reset", "reboot", "check", "service", "note")
"""What the label `action` of an XID may say: what is to be done after it."""

_PORT = ("device", "port")
_MOUNT = ("mountpoint", "fstype")
_NFS = ("mountpoint", "operation")
_RUN = ("run", "user")
HEADS = (
    Head(
        "podwright_gpu_xid_errors_total", ("gpu", "xid", "action", *OWNER_LABELS), "XID errors that the kernel told of."
    ),
    Head(
        "podwright_gpu_xid_last_timestamp_seconds",
        ("gpu", "xid", "action", *OWNER_LABELS),
        "When this XID was last told of: an increase misses the first of a kind.",
    ),
    Head("podwright_gpu_up", ("gpu", *OWNER_LABELS), "Whether the GPU answers; 0 where it was there and is lost."),
    Head(
        "podwright_gpu_info",
        ("gpu", "mig", "profile", "uuid", "pci", "model", "driver", "numa"),
        "What the GPU, or MIG slice, is.",
    ),
    Head("podwright_gpu_nvlink_up", ("gpu", "link"), "Whether an NVLink of the GPU is up."),
    Head("podwright_gpu_owners", ("gpu", "mig"), "Runs that hold the GPU; more than one where it is shared in time."),
    Head("podwright_gpu_run_memory_bytes", ("gpu", "mig", *OWNER_LABELS), "Device memory of a run's processes."),
    Head("podwright_gpus", (), "GPUs that the driver shows."),
    Head("podwright_gpus_on_bus", (), "GPUs that PCIe shows."),
    Head("podwright_gpus_expected", (), "GPUs that the pod's file says this host has."),
    Head(
        "podwright_run_info", ("gpu", "mig", *OWNER_LABELS), "Which run holds which GPU: 1, to join other series with."
    ),
    Head("podwright_run_step", _RUN, "Step that the run is at, as its pilot says."),
    Head("podwright_run_step_timestamp_seconds", _RUN, "When its step changed last."),
    Head("podwright_run_step_seconds", _RUN, "Time of a step, mean of the last reports."),
    Head("podwright_run_report_interval_seconds", _RUN, "Time from report to report of its step."),
    Head("podwright_run_checkpoint_timestamp_seconds", _RUN, "When its newest checkpoint was written."),
    Head("podwright_run_checkpoint_interval_seconds", _RUN, "Time from checkpoint to checkpoint, mean of the last."),
    Head(
        "podwright_run_spent_seconds_total",
        (*_RUN, "class"),
        "Time that the run's program says it spent, by class of goodput, since its attempt began.",
    ),
    Head("podwright_run_work_seconds", _RUN, "A rank's own work in a step, without waiting: the middle of the others."),
    Head("podwright_run_work_slowest_seconds", _RUN, "The same of the rank that took longest."),
    Head("podwright_run_work_slowest_rank", _RUN, "Which rank that is."),
    Head("podwright_port_up", _PORT, "Whether a port of an InfiniBand or RoCE card is active."),
    Head("podwright_port_info", (*_PORT, "link_layer", "board", "firmware"), "What the port is."),
    Head("podwright_port_rate_bytes_per_second", _PORT, "Speed at which the link runs."),
    Head(
        "podwright_port_design_bytes_per_second",
        (*_PORT, "leaf"),
        "Speed that the design gives the link, with the switch it leads to.",
    ),
    Head("podwright_certificate_end_timestamp_seconds", ("file",), "Until when a certificate of this host holds."),
    Head("podwright_host_files", (), "Files that `podwright pod up` wrote on this host."),
    Head("podwright_host_file_differs", ("file", "how"), "One of them that is not as it was written any more."),
    Head("podwright_port_received_bytes_total", _PORT, "Received by the port."),
    Head("podwright_port_sent_bytes_total", _PORT, "Sent by the port."),
    Head("podwright_port_wait_ticks_total", _PORT, "Time in which data waited for the port."),
    Head("podwright_port_link_downed_total", _PORT, "How often the link went down."),
    Head("podwright_port_link_recovered_total", _PORT, "How often the link recovered from errors."),
    Head("podwright_port_errors_total", (*_PORT, "error"), "Errors of the port, by kind."),
    Head(
        "podwright_port_ecn_total", (*_PORT, "event"), "Signs of congestion: marked packets, notices sent and handled."
    ),
    Head("podwright_port_pause_seconds_total", (*_PORT, "interface", "priority"), "Time a priority was paused (PFC)."),
    Head("podwright_storage_answer_seconds", _MOUNT, "How long a file system of the network took to say its room."),
    Head("podwright_storage_bytes", _MOUNT, "Room of a file system of the network."),
    Head("podwright_storage_free_bytes", _MOUNT, "Room that is left there."),
    Head("podwright_storage_operations_total", _NFS, "Operations that NFS did."),
    Head("podwright_storage_operation_seconds_total", _NFS, "Time that they took, from when a program asked."),
    Head("podwright_host_cpu_ratio", (), "CPU time used, of all CPUs."),
    Head("podwright_host_load1", (), "Tasks running or waiting, averaged over one minute."),
    Head("podwright_host_memory_used_bytes", (), "Memory in use, without page cache that can be dropped."),
    Head("podwright_host_memory_bytes", (), "Memory there is."),
    Head("podwright_host_numa_memory_free_bytes", ("node",), "Free memory of a NUMA node."),
    Head("podwright_host_numa_memory_bytes", ("node",), "Memory of a NUMA node."),
    Head("podwright_host_numa_misses_total", ("node",), "Pages that another NUMA node was asked for."),
    Head("podwright_host_cpu_energy_joules_total", (), "Energy of the CPU packages (RAPL)."),
    Head(
        "podwright_exporter_sensor_up", ("sensor",), "Whether a sensor answered in time; its series are gone where not."
    ),
    Head("podwright_exporter_sensor_age_seconds", ("sensor",), "How old a sensor's readings are."),
    Head("podwright_exporter_sensor_took_seconds", ("sensor",), "How long a sensor's last reading took."),
    Head("podwright_exporter_info", ("version", "driver", "source"), "The exporter, and where GPU readings come from."),
    Head("podwright_exporter_cpu_seconds_total", (), "CPU time of the exporter."),
    Head("podwright_exporter_memory_bytes", (), "Memory of the exporter."),
)
"""Everything else, with its labels beside `host`."""


def kinds() -> Dict[str, Tuple[str, str]]:
    """Return kind and meaning of every name there is, of all vocabularies."""
    found = {head.name: (head.kind, head.help) for head in HEADS}
    for term in (*TERMS, LAST_XID):
        found[term.name] = (term.kind, term.help)
        for foreign in (term.dcgm_4, term.dcgm_49):
            if foreign is not None:
                found[foreign.name] = (foreign.kind, term.help)
    return found
