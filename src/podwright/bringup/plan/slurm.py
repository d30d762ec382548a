"""Slurm's files, from a pod and facts of its site: the one place that writes slurm.conf.

Facts verify and never generate: nothing here asks a live node, so that a pod can be written before it is bought.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from podwright.design.topology import Topology, block_conf, topology_conf, topology_of
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import NodeModel, Pod, SlurmScheduler
    from podwright.spec.partitions import OwnPartition

Version = tuple[int, int]
Settings = Mapping[str, str | None]
OLDEST: Version = (22, 5)
# The first with `topology/block`, which keeps a job in one NVLink domain where it fits.
_BLOCKS: Version = (23, 11)

# Between which versions a key may be written: from the first, before the second. Slurm refuses to start on a key that
# it does not know yet, or no longer.
_KNOWN: dict[str, tuple[Version, Version]] = {
    "CgroupAutomount": (OLDEST, (23, 11)),
    "GetEnvTimeout": (OLDEST, (25, 5)),
    "MetricsType": ((25, 11), (99, 0)),
}

# Slurm counts what the kernel leaves of the memory; a node that has less than its line says is drained.
_USABLE_MEMORY = 0.95
_MIB = 1024 * 1024
_PYXIS = "/usr/local/lib/slurm/spank_pyxis.so"


@dataclass(frozen=True)
class SlurmSite:
    """What a pod's file does not say and Slurm's files need."""

    controller: str
    version: Version
    controller_address: str = ""
    backup: str = ""
    """The host that takes over, with its address in brackets; it reads the state where the first one left it."""
    accounting: bool = True
    slurm_user: str = "slurm"
    config: str = "/etc/slurm"
    state: str = "/var/spool/slurmctld"
    spool: str = "/var/spool/slurmd"
    logs: str = "/var/log/slurm"
    run: str = "/run/slurm"
    scratch: str = "/tmp"
    devices: str = "/dev/nvidia"
    health_check: str = ""
    settings: Settings = field(default_factory=dict)
    """What stands in slurm.conf instead of our choice; None leaves a key out."""
    cgroup: Settings = field(default_factory=dict)
    """The same for cgroup.conf."""
    partitions: tuple[str, ...] = ()
    """Partitions of the site's own, as lines; none: one of the nodes with GPUs and one of those without."""
    lines: tuple[str, ...] = ()
    """Further lines at the end of slurm.conf."""


class NodeLine(NamedTuple):
    """Hosts that share one line of slurm.conf."""

    hosts: list[str]
    model: NodeModel
    sockets: int
    cores: int
    threads: int
    memory_mib: int

    @property
    def gpu_type(self) -> str:
        """Return the GPU's family in lower case, which is also part of the name that Slurm detects itself."""
        if self.model.gpus is None:
            return ""
        return self.model.gpus.model.split("-")[0].lower()

    @property
    def cores_per_socket(self) -> int:
        """Return how many cores a socket has."""
        return self.cores // self.sockets

    @property
    def gpu_count(self) -> int:
        """Return how many GPUs each host has."""
        return self.model.gpus.count if self.model.gpus else 0


def render(pod: Pod, scheduler: SlurmScheduler, site: SlurmSite) -> dict[str, str]:
    """Return every file by its name; slurmdbd.conf only with accounting, plugstack.conf only where Pyxis is."""
    kinds = kinds_of(pod, scheduler)
    files = {
        "slurm.conf": _slurm_conf(pod, scheduler, kinds, site),
        "gres.conf": lines_text(_gres_lines(kinds, site)),
        "cgroup.conf": lines_text(_assigned(_cgroup(site), site)),
        "topology.conf": _topology_conf(pod, scheduler, site),
    }
    if site.accounting:
        files["slurmdbd.conf"] = lines_text(_assigned(_slurmdbd(site), site))
    if scheduler.container == "pyxis":
        files["plugstack.conf"] = lines_text([f"required {_PYXIS}", f"include {site.config}/plugstack.conf.d/*.conf"])
    return files


def _topology_conf(pod: Pod, scheduler: SlurmScheduler, site: SlurmSite) -> str:
    topology = _topology(pod, scheduler)
    return block_conf(topology) if _has_blocks(topology, site) else topology_conf(topology)


def _topology(pod: Pod, scheduler: SlurmScheduler) -> Topology:
    return topology_of(pod).part(pod.scheduler_hosts(scheduler))


def _has_blocks(topology: Topology, site: SlurmSite) -> bool:
    return topology.is_blocks and site.version >= _BLOCKS


def kinds_of(pod: Pod, scheduler: SlurmScheduler) -> list[NodeLine]:
    """Return the scheduler's hosts by node group; refuse a model that does not say what Slurm must know."""
    mine = set(pod.scheduler_hosts(scheduler))
    kinds = []
    for group in pod.nodes:
        hosts = [host for host in group.hosts if host in mine]
        if hosts:
            kinds.append(_kind(hosts, group.model))
    return kinds


def _kind(hosts: list[str], model: NodeModel) -> NodeLine:
    if not (model.sockets and model.cores and model.threads and model.memory_bytes):
        missing = [name for name in ("sockets", "cores", "threads", "memory_bytes") if not getattr(model, name)]
        fields = ", ".join(name.removesuffix("_bytes") for name in missing)
        raise refuse(
            f"the model of {fold_hosts(hosts)} has no {fields}, which Slurm must know",
            hint="write the model out in the pod file, with sockets, cores, threads and memory",
            field="nodes.model",
        )
    usable_mib = int(model.memory_bytes / _MIB * _USABLE_MEMORY)
    return NodeLine(hosts, model, model.sockets, model.cores, model.threads, usable_mib // 1000 * 1000 or usable_mib)


def _slurm_conf(pod: Pod, scheduler: SlurmScheduler, kinds: list[NodeLine], site: SlurmSite) -> str:
    defaults = dict(_where(pod, site)) | dict(_how(scheduler, kinds, site)) | dict(_accounts(site))
    if _has_blocks(_topology(pod, scheduler), site):
        defaults["TopologyPlugin"] = "topology/block"
    chosen = {**defaults, **site.settings}
    head = list(_assigned(chosen, site))
    if site.backup:
        first = next(index for index, line in enumerate(head) if line.startswith("SlurmctldHost="))
        head.insert(first + 1, f"SlurmctldHost={site.backup}")
    return lines_text([*head, *map(_node_line, kinds), *(site.partitions or _partition_lines(kinds)), *site.lines])


def _where(pod: Pod, site: SlurmSite) -> Iterator[tuple[str, str | None]]:
    """Yield who the cluster is and where its daemons keep things."""
    controller = site.controller
    if site.controller_address:
        controller = f"{controller}({site.controller_address})"
    yield "ClusterName", pod.name
    yield "SlurmctldHost", controller
    yield "SlurmUser", site.slurm_user
    yield "AuthType", "auth/munge"
    yield "SlurmctldParameters", "enable_configless"
    yield "StateSaveLocation", site.state
    yield "SlurmdSpoolDir", site.spool
    yield "SlurmctldPidFile", f"{site.run}/slurmctld.pid"
    yield "SlurmdPidFile", f"{site.run}/slurmd.pid"
    yield "SlurmctldLogFile", f"{site.logs}/slurmctld.log"
    yield "SlurmdLogFile", f"{site.logs}/slurmd.log"
    yield "TmpFS", site.scratch


def _how(scheduler: SlurmScheduler, kinds: list[NodeLine], site: SlurmSite) -> Iterator[tuple[str, str | None]]:
    """Yield how jobs are placed, held together and ended; good for GPU nodes on a fast fabric.

    A key without a value keeps its place in the file for a site that sets it.
    """
    yield "SchedulerType", "sched/backfill"
    yield "SelectType", "select/cons_tres"
    yield "SelectTypeParameters", "CR_Core_Memory"
    yield "DefMemPerCPU", str(min(kind.memory_mib // kind.threads for kind in kinds))
    yield "TopologyPlugin", "topology/tree"
    yield "GresTypes", _when(any(kind.gpu_count for kind in kinds), "gpu")
    yield "ProctrackType", "proctrack/cgroup"
    yield "TaskPlugin", "task/affinity,task/cgroup"
    yield "PrologFlags", "Alloc,Contain"
    yield "LaunchParameters", "use_interactive_step"
    yield "MpiDefault", "pmix"
    yield "PlugStackConfig", _when(scheduler.container == "pyxis", f"{site.config}/plugstack.conf")
    # A job must not inherit the login node's limit of locked memory: RDMA needs to pin more.
    yield "PropagateResourceLimitsExcept", "MEMLOCK"
    yield "JobRequeue", "1"
    yield "ReturnToService", "1"
    yield "SlurmdTimeout", "300"
    yield "KillWait", "30"
    yield "MaxArraySize", "10001"
    yield "MaxJobCount", "50000"
    yield "HealthCheckProgram", site.health_check or None
    yield "HealthCheckInterval", _when(site.health_check, "300")
    yield "HealthCheckNodeState", _when(site.health_check, "IDLE")
    yield "MetricsType", "metrics/openmetrics"


def _when(wanted: object, value: str) -> str | None:
    return value if wanted else None


def _accounts(site: SlurmSite) -> Iterator[tuple[str, str | None]]:
    """Yield where it is written what ran: the database, else a plain file, all that a finished job then leaves."""
    yield "JobAcctGatherType", "jobacct_gather/cgroup"
    if site.accounting:
        yield "AccountingStorageType", "accounting_storage/slurmdbd"
        yield "AccountingStorageHost", site.controller
        yield "AccountingStorageTRES", "gres/gpu"
    else:
        yield "AccountingStorageType", "accounting_storage/none"
        yield "JobCompType", "jobcomp/filetxt"
        yield "JobCompLoc", f"{site.logs}/jobcomp.txt"


def _node_line(kind: NodeLine) -> str:
    fields = [
        f"NodeName={fold_hosts(kind.hosts)}",
        f"Sockets={kind.sockets}",
        f"CoresPerSocket={kind.cores_per_socket}",
        f"ThreadsPerCore={kind.threads // kind.cores}",
        f"RealMemory={kind.memory_mib}",
    ]
    if kind.gpu_count:
        fields.append(f"Gres=gpu:{kind.gpu_type}:{kind.gpu_count}")
    features = [name for name in (kind.gpu_type, kind.model.name) if name]
    if features:
        fields.append(f"Features={','.join(features)}")
    return " ".join([*fields, "State=UNKNOWN"])


def _partition_lines(kinds: list[NodeLine]) -> Iterator[str]:
    """Yield a partition of the nodes with GPUs and one of those without; the first that is there is the default."""
    default = "YES"
    for name, with_gpus in (("gpu", True), ("cpu", False)):
        hosts: list[str] = []
        for kind in kinds:
            if bool(kind.gpu_count) is with_gpus:
                hosts += kind.hosts
        if hosts:
            yield (
                f"PartitionName={name} Nodes={fold_hosts(hosts)} Default={default} MaxTime=INFINITE"
                " DefaultTime=1:00:00 State=UP"
            )
            default = "NO"


def own_partitions(given: Sequence[OwnPartition], accounts: Mapping[str, str]) -> tuple[str, ...]:
    """Return partitions of a pod's file as lines; `accounts` are those of its teams."""
    default = next((each for each in given if each.default), given[0] if given else None)
    rows = []
    for each in given:
        words = [
            f"PartitionName={each.name}",
            f"Nodes={fold_hosts(each.hosts)}",
            f"Default={'YES' if each is default else 'NO'}",
        ]
        if each.teams:
            words.append(f"AllowAccounts={','.join(accounts[team] for team in each.teams)}")
        rows.append(" ".join([*words, *(f"{key}={value}" for key, value in each.conf.items())]))
    return tuple(rows)


def _gres_lines(kinds: list[NodeLine], site: SlurmSite) -> Iterator[str]:
    """Yield the GPUs' device files, those of one socket on a line with its cores.

    A NUMA node may be smaller, but Slurm refuses a node whose GPUs are near less than a whole socket.
    """
    for kind in kinds:
        sockets = [_socket_of(kind, gpu) for gpu in range(kind.gpu_count)]
        for socket, gpus in groupby(enumerate(sockets), key=itemgetter(1)):
            files = fold_hosts(f"nvidia{gpu}" for gpu, _ in gpus).removeprefix("nvidia")
            line = f"NodeName={fold_hosts(kind.hosts)} Name=gpu Type={kind.gpu_type} File={site.devices}{files}"
            if socket is not None:
                line += f" Cores={_cores_of(kind, socket)}"
            yield line


def _socket_of(kind: NodeLine, gpu: int) -> int | None:
    """Return the socket that a GPU is near to, by the first core of its NUMA node; None if the model does not say."""
    gpus = kind.model.gpus
    if gpus is None or gpu >= len(gpus.numa):
        return None
    for numa in kind.model.numa:
        if numa.node == gpus.numa[gpu] and numa.cores is not None:
            return int(re.split("[-,]", numa.cores)[0]) // kind.cores_per_socket
    return None


def _cores_of(kind: NodeLine, socket: int) -> str:
    first = socket * kind.cores_per_socket
    return f"{first}-{first + kind.cores_per_socket - 1}"


def _cgroup(site: SlurmSite) -> Settings:
    held = ("ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace")
    return {"CgroupPlugin": "autodetect", **dict.fromkeys(held, "yes"), **site.cgroup}


def _slurmdbd(site: SlurmSite) -> Settings:
    """Return what slurmdbd.conf says.

    The database is on the same host and knows the daemon by its user, over its socket: no password is written.
    """
    return {
        "AuthType": "auth/munge",
        "DbdHost": site.controller,
        "SlurmUser": site.slurm_user,
        "LogFile": f"{site.logs}/slurmdbd.log",
        "PidFile": f"{site.run}/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": site.slurm_user,
        "StorageLoc": "slurm_acct_db",
    }


def _assigned(settings: Settings, site: SlurmSite) -> Iterator[str]:
    for key, value in settings.items():
        since, before = _KNOWN.get(key, (OLDEST, (99, 0)))
        if value is not None and since <= site.version < before:
            yield f"{key}={value}"


def lines_text(lines: Iterable[str]) -> str:
    """Return lines as the text of a file."""
    return "".join(f"{line}\n" for line in lines)
