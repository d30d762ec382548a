"""What a Slurm cluster is and has: one script that looks, once, and the facts that its answer holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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
        return VERSIONS[max(known for known in VERSIONS if known <= self.version)]

    @property
    def mpi_plugin(self) -> str | None:
        """What `srun --mpi=` takes to start ranks of an MPI program."""
        return next((name for name in self.mpi if name == "pmix"), None) or next(
            (name for name in reversed(self.mpi) if name.startswith("pmix")), None
        )

    def partition(self, name: str | None) -> Partition | None:
        """The partition of this name; without a name the one that jobs go to by themselves."""
        return next((one for one in self.partitions if (one.default if name is None else one.name == name)), None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> SlurmFacts:
        values = _tuples(row)
        values["partitions"] = tuple(_partition(one) for one in row["partitions"])
        return cls(**values)


def _partition(row: Mapping[str, Any]) -> Partition:
    values = dict(row)
    values["nodes"] = tuple(SlurmNodeKind(**_tuples(kind)) for kind in row["nodes"])
    return Partition(**values)


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists where a frozen value has tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def parse_probe(text: str) -> SlurmFacts:
    """Reads what PROBE printed; raises a refusal in words when Slurm is not there or does not answer."""
    sections = _sections(text)
    version, config = _version(sections), _config(sections.get("config", []))
    if not config:
        raise _no_answer(sections.get("config", []))
    partitions = _partitions(sections)
    return SlurmFacts(
        version=version,
        cluster=config.get("ClusterName", ""),
        partitions=partitions,
        gpu_types=tuple(sorted({kind for one in partitions for node in one.nodes for kind in node.gpu_types})),
        mpi=_mpi(sections.get("mpi", [])),
        pyxis="--container-image" in sections.get("options", []),
        oci={"--container", "oci.conf"} <= set(sections.get("options", [])),
        programs={line.rpartition("/")[2]: line for line in sections.get("programs", []) if line.startswith("/")},
        accounting=config.get("AccountingStorageType") == "accounting_storage/slurmdbd",
        requeue=config.get("JobRequeue", "1").lower() in ("1", "yes"),
        kill_wait_s=_seconds(config.get("KillWait"), 30),
        min_job_age_s=_seconds(config.get("MinJobAge"), 300),
        max_array_size=_seconds(config.get("MaxArraySize"), 1001),
        topology=_plugin(config.get("TopologyPlugin", "")),
        select=_plugin(config.get("SelectType", "")),
        task_plugins=tuple(_plugin(one) for one in config.get("TaskPlugin", "").split(",") if one),
        user=_only(sections, "user"),
        home=_only(sections, "home"),
    )


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("== "):
            name = line[3:]
            found[name] = []
        elif name and line.strip():
            found[name].append(line.rstrip())
    if "end" not in found:
        raise refuse("the login node gave only a part of its answer", hint="try again", exit_code=3)
    return found


def _only(sections: dict[str, list[str]], name: str) -> str:
    lines = sections.get(name, [])
    return lines[-1].strip() if lines else ""


def _version(sections: dict[str, list[str]]) -> tuple[int, int]:
    said = sections.get("version", [])
    match = next((found for line in said if (found := re.match(r"slurm(?:-wlm)? (\d+)\.(\d+)", line))), None)
    if match is None:
        hint = "Slurm's commands must be on the PATH of a shell that is not interactive; `login:` names the host"
        raise refuse(f"Slurm is not on this host{_quoted(said)}", hint=hint, exit_code=3)
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise refuse(f"the cluster has Slurm {match[1]}.{match[2]}; 22.05 is the oldest that is supported")
    return version


def _no_answer(said: list[str]) -> Refusal:
    return refuse(f"Slurm's controller does not answer{_quoted(said)}", hint="try again later", exit_code=3)


def _quoted(said: list[str]) -> str:
    return f": {short(said[-1].strip())}" if said else ""


def _config(lines: list[str]) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in lines if re.match(r"\w+ +=", line))
    return {name.strip(): value.strip() for name, value in pairs}


def _plugin(text: str) -> str:
    """`topology/tree` is `tree`, wherever it stands."""
    return text.strip().rpartition("/")[2]


def _seconds(text: str | None, default: int) -> int:
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else default


def _mpi(lines: list[str]) -> tuple[str, ...]:
    """The list has changed its shape over the years: a name per line, or names after a colon."""
    names: list[str] = []
    for line in lines:
        plain = line.replace("srun:", "", 1).strip()
        words = plain.partition(":")[2].split(",") if plain.startswith("specific") else [plain]
        names += [word.strip() for word in words if re.fullmatch(r"\w+", word.strip())]
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
    most = rules.get("MaxNodes", "")
    per_gpu = re.search(r"DefCpuPerGPU=(\d+)", rules.get("JobDefaults", ""))
    return Partition(
        name=name,
        default=rows[0][0].endswith("*"),
        up=rows[0][1] == "up",
        time_limit_s=time_s(rows[0][2]),
        nodes=tuple(_kind(row) for row in rows if row[3].isdigit() and int(row[3])),
        max_nodes=int(most) if most.isdigit() else None,
        exclusive=rules.get("OverSubscribe") == "EXCLUSIVE",
        cpus_per_gpu=int(per_gpu[1]) if per_gpu else None,
    )


def _kind(row: list[str]) -> SlurmNodeKind:
    gpus = re.findall(r"\bgpu(?::([^:,()]+))??:(\d+)", row[6])
    features = () if row[7] == "(null)" else tuple(row[7].split(","))
    types = tuple(dict.fromkeys(name for name, _ in gpus if name))
    count = sum(int(number) for _, number in gpus)
    return SlurmNodeKind(int(row[3]), _leading(row[4]), _leading(row[5]), count, types, features)


def _leading(text: str) -> int:
    """Slurm writes `16+` where nodes of one line differ."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def time_s(text: str) -> int | None:
    """Seconds of a time as Slurm writes it (`2-04:00:00`, `30:00`, `10`); None for `infinite`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        return None
    days, first, second, third = (int(part) if part else None for part in match.groups())
    if days is not None:
        return days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    return (first or 0) * 60 + (second or 0)


def time_text(seconds: float) -> str:
    """A time as Slurm takes it, in whole minutes, never less than asked for."""
    minutes = -int(-seconds // 60)
    days, rest = divmod(minutes, 1440)
    return (f"{days}-" if days else "") + f"{rest // 60:02d}:{rest % 60:02d}:00"
