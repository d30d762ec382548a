"""What a Slurm cluster is and has: one script that looks, once, and the facts that its answer holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from podwright.pilot.protocol import whole_number
from podwright.spec.problems import Refusal, refuse, short

PROBE = r"""
LC_ALL=C
export LC_ALL
unset SINFO_ALL SINFO_PARTITION SLURM_CLUSTERS SQUEUE_FORMAT
section() { printf '== %s\n' "$1"; }
section version
sinfo --version 2>&1
section config
config=$(scontrol show config 2>&1)
printf '%s\n' "$config"
section nodes
sinfo -h -e -o '%P|%a|%l|%D|%c|%m|%G|%f' 2>&1
section partitions
scontrol -o show partition 2>&1
section mpi
srun --mpi=list 2>&1
section options
srun --help 2>&1 | grep -o -e '--container[a-z-]*' | sort -u
conf=$(printf '%s\n' "$config" | sed -n 's/^SLURM_CONF *= *//p')
[ -r "${conf%/*}/oci.conf" ] && echo oci.conf
section programs
for name in apptainer singularity podman ch-run enroot crun runc sacct jq mpirun \
    python3 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8; do
    command -v "$name"
done
ch-run --help 2>&1 | grep -o -e '--write-fake' | sed -e 's:^:/ch-run :' -e q
section user
id -un
section home
printf '%s\n' "$HOME"
section end
"""
"""POSIX sh. What a command says when it fails is part of its section, so that it can be shown."""


@dataclass(frozen=True)
class Version:
    """What a generation of Slurm can do, where generations differ."""

    state_list: bool
    """JSON gives `job_state` as a list: the base state and its flags."""
    number_objects: bool
    """JSON gives numbers that may be missing as {set, infinite, number}."""
    scontrol_json: bool
    only_job_state: bool
    """`squeue --only-job-state` asks the controller for much less."""


VERSIONS = {
    (22, 5): Version(state_list=False, number_objects=False, scontrol_json=False, only_job_state=False),
    (23, 2): Version(state_list=False, number_objects=True, scontrol_json=False, only_job_state=False),
    (23, 11): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=False),
    (24, 5): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=True),
    (24, 11): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=True),
    (25, 5): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=True),
    (25, 11): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=True),
    (26, 5): Version(state_list=True, number_objects=True, scontrol_json=True, only_job_state=True),
}
"""From 22.05 to 26.05. A newer one is taken for the newest that is known, an older one is refused."""
OLDEST = min(VERSIONS)


@dataclass(frozen=True)
class SlurmNodeKind:
    """Nodes of a partition that are alike."""

    count: int
    cpus: int
    memory_mib: int
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Partition:
    """A partition, with what it lets jobs have."""

    name: str
    default: bool
    up: bool
    time_limit_s: int | None
    """None: a job may run for ever."""
    nodes: tuple[SlurmNodeKind, ...]
    max_nodes: int | None = None
    exclusive: bool = False
    """Its nodes are given whole."""
    cpus_per_gpu: int | None = None

    @property
    def size(self) -> int:
        """Return how many nodes it has."""
        return sum(kind.count for kind in self.nodes)


@dataclass(frozen=True)
class SlurmFacts:
    """A cluster as its login node shows it. Stored with a run, so that it can be planned again to the letter."""

    version: tuple[int, int]
    cluster: str
    partitions: tuple[Partition, ...]
    gpu_types: tuple[str, ...]
    mpi: tuple[str, ...]
    pyxis: bool
    oci: bool
    programs: Mapping[str, str]
    """Where the login node has what we look for, by name."""
    accounting: bool
    requeue: bool
    kill_wait_s: int
    min_job_age_s: int
    max_array_size: int
    topology: str
    select: str
    task_plugins: tuple[str, ...]
    user: str
    home: str

    @property
    def generation(self) -> Version:
        """Return what this version can do; an unknown one is taken for the last one known before it."""
        return VERSIONS[max(known for known in VERSIONS if known <= self.version)]

    @property
    def mpi_plugin(self) -> str | None:
        """Return what `srun --mpi=` takes to start ranks of an MPI program: `pmix`, else the last listed like it."""
        if "pmix" in self.mpi:
            return "pmix"
        return next((name for name in reversed(self.mpi) if name.startswith("pmix")), None)

    def partition(self, name: str | None) -> Partition | None:
        """Return the partition of this name; without a name the one that jobs go to by themselves."""
        if name is None:
            return next((partition for partition in self.partitions if partition.default), None)
        return next((partition for partition in self.partitions if partition.name == name), None)

    def as_json(self) -> dict[str, Any]:
        """Return the facts as they are stored with a run."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> SlurmFacts:
        """Return the facts that were stored with a run."""
        values = _tuples(row)
        values["partitions"] = tuple(_partition(partition) for partition in row["partitions"])
        return cls(**values)


def _partition(row: Mapping[str, Any]) -> Partition:
    values = dict(row)
    values["nodes"] = tuple(SlurmNodeKind(**_tuples(kind)) for kind in row["nodes"])
    return Partition(**values)


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with tuples where JSON has lists, as a frozen value needs them."""
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return {**row, **lists}


def parse_probe(text: str) -> SlurmFacts:
    """Read what PROBE printed; refuse when Slurm is not there or does not answer."""
    sections = _sections(text)
    version, config = _version(sections), _config(sections.get("config", []))
    if not config:
        raise _no_answer(sections.get("config", []))
    partitions = _partitions(sections)
    options = sections.get("options", [])
    return SlurmFacts(
        version=version,
        cluster=config.get("ClusterName", ""),
        partitions=partitions,
        gpu_types=_gpu_types(partitions),
        mpi=_mpi(sections.get("mpi", [])),
        pyxis="--container-image" in options,
        oci={"--container", "oci.conf"} <= set(options),
        programs={line.rpartition("/")[2]: line for line in sections.get("programs", []) if line.startswith("/")},
        accounting=config.get("AccountingStorageType") == "accounting_storage/slurmdbd",
        requeue=config.get("JobRequeue", "1").lower() in ("1", "yes"),
        kill_wait_s=_leading(config.get("KillWait"), 30),
        min_job_age_s=_leading(config.get("MinJobAge"), 300),
        max_array_size=_leading(config.get("MaxArraySize"), 1001),
        topology=_plugin(config.get("TopologyPlugin", "")),
        select=_plugin(config.get("SelectType", "")),
        task_plugins=tuple(_plugin(name) for name in config.get("TaskPlugin", "").split(",") if name),
        user=_only(sections, "user"),
        home=_only(sections, "home"),
    )


def _sections(text: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("== "):
            name = line[3:]
            sections[name] = []
        elif name and line.strip():
            sections[name].append(line.rstrip())
    if "end" not in sections:
        raise refuse("the login node gave only a part of its answer", hint="try again", exit_code=3)
    return sections


def _gpu_types(partitions: Iterable[Partition]) -> tuple[str, ...]:
    types: set[str] = set()
    for partition in partitions:
        for node in partition.nodes:
            types.update(node.gpu_types)
    return tuple(sorted(types))


def _only(sections: dict[str, list[str]], name: str) -> str:
    lines = sections.get(name) or [""]
    return lines[-1].strip()


def _version(sections: dict[str, list[str]]) -> tuple[int, int]:
    lines = sections.get("version", [])
    matches = (re.match(r"slurm(?:-wlm)? (\d+)\.(\d+)", line) for line in lines)
    match = next(filter(None, matches), None)
    if match is None:
        hint = "Slurm's commands must be on the PATH of a shell that is not interactive; `login:` names the host"
        raise refuse(f"Slurm is not on this host{_quoted(lines)}", hint=hint, exit_code=3)
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise refuse(f"the cluster has Slurm {match[1]}.{match[2]}; 22.05 is the oldest that is supported")
    return version


def _no_answer(lines: list[str]) -> Refusal:
    return refuse(f"Slurm's controller does not answer{_quoted(lines)}", hint="try again later", exit_code=3)


def _quoted(lines: list[str]) -> str:
    return f": {short(lines[-1].strip())}" if lines else ""


def _config(lines: list[str]) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in lines if re.match(r"\w+ +=", line))
    return {name.strip(): value.strip() for name, value in pairs}


def _plugin(text: str) -> str:
    """Return a plugin's name without its kind: of `topology/tree` it is `tree`."""
    return text.strip().rpartition("/")[2]


def _leading(text: str | None, default: int = 0) -> int:
    """Return the number that a text begins with: Slurm writes `30 sec`, and `16+` where nodes of one line differ."""
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else default


def _mpi(lines: list[str]) -> tuple[str, ...]:
    """Return the MPI plugins; the list changed its shape over the years: a name per line, or names after a colon."""
    names: list[str] = []
    for line in lines:
        plain = line.replace("srun:", "", 1).strip()
        listed = [plain]
        if plain.startswith("specific"):
            listed = plain.partition(":")[2].split(",")
        names += [name.strip() for name in listed if re.fullmatch(r"\w+", name.strip())]
    return tuple(dict.fromkeys(names))


def _partitions(sections: dict[str, list[str]]) -> tuple[Partition, ...]:
    rules = {row.get("PartitionName", ""): row for row in map(_pairs, sections.get("partitions", []))}
    kinds: dict[str, list[list[str]]] = {}
    for line in sections.get("nodes", []):
        fields = line.split("|")
        if len(fields) == 8:
            kinds.setdefault(fields[0].rstrip("*"), []).append(fields)
    return tuple(_read_partition(name, rows, rules.get(name, {})) for name, rows in kinds.items())


def _pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _read_partition(name: str, rows: list[list[str]], rules: dict[str, str]) -> Partition:
    head = rows[0]
    per_gpu = re.search(r"DefCpuPerGPU=(\d+)", rules.get("JobDefaults", ""))
    return Partition(
        name=name,
        default=head[0].endswith("*"),
        up=head[1] == "up",
        time_limit_s=time_s(head[2]),
        nodes=tuple(_kind(row) for row in rows if whole_number(row[3])),
        max_nodes=whole_number(rules.get("MaxNodes", "")),
        exclusive=rules.get("OverSubscribe") == "EXCLUSIVE",
        cpus_per_gpu=int(per_gpu[1]) if per_gpu else None,
    )


def _kind(row: list[str]) -> SlurmNodeKind:
    *_, nodes, cpus, memory, gres, features = row
    gpus = re.findall(r"\bgpu(?::([^:,()]+))??:(\d+)", gres)
    return SlurmNodeKind(
        count=int(nodes),
        cpus=_leading(cpus),
        memory_mib=_leading(memory),
        gpus=sum(int(number) for _, number in gpus),
        gpu_types=tuple(dict.fromkeys(name for name, _ in gpus if name)),
        features=() if features == "(null)" else tuple(features.split(",")),
    )


def time_s(text: str) -> int | None:
    """Return the seconds of a time as Slurm writes it (`2-04:00:00`, `30:00`, `10`); None for `infinite`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    # After days, or where there are three parts, the first is hours; else it is minutes.
    if match[1] is not None or match[4] is not None:
        return days * 86400 + first * 3600 + second * 60 + third
    return first * 60 + second


def time_text(seconds: float) -> str:
    """Return a time as Slurm takes it, in whole minutes, never less than asked for."""
    minutes = -int(-seconds // 60)
    days, rest = divmod(minutes, 1440)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock
