"""A batch script of Slurm, or a plain shell script, as a job in the words of a workload."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from podwright.drafts.draft import scalar
from podwright.drafts.jobs import ForeignJob
from podwright.drafts.shell_body import read_body, words_of
from podwright.spec.quantity import exact_duration

SBATCH = re.compile(r"^#SBATCH\s+(.+)$", re.MULTILINE)
SHORT = {
    "A": "account",
    "C": "constraint",
    "G": "gpus",
    "J": "job-name",
    "N": "nodes",
    "a": "array",
    "c": "cpus-per-task",
    "d": "dependency",
    "e": "error",
    "n": "ntasks",
    "np": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
"""The long names of Slurm's short options, and of mpirun's."""
HANDED_ON = ("constraint", "exclude", "licenses", "nice", "nodelist", "switches", "wckey")
"""Options that a workload hands on to Slurm as they are."""
NOT_NEEDED = {
    "chdir",
    "comment",
    "error",
    "export",
    "get-user-env",
    "mail-type",
    "mail-user",
    "mpi",
    "open-mode",
    "output",
}
"""A run has its own logs, snapshot of the code and words at its end."""
OF_RANKS = re.compile(
    "rdzv|master|node-rank|machine-rank|main-process|num-machines|standalone|cpu-bind|distribution|unbuffered"
    "|label|kill-on|exact|overlap|u$|l$|m$|module$|no-python|multi-gpu|hostfile|map-by|bind-to|x$|allow-run|oversub|mca"
)
"""How ranks are started and find each other: that is the pilot's work."""
MAX_TASKS = 1000


def read_batch_script(text: str, source: str, folder: str) -> ForeignJob:
    """Return the job that a batch script describes; what its own `srun` says counts more than its head."""
    job = ForeignJob(source, folder, body=read_body(text), as_it_is=("bash", source))
    words = words_of(" ".join(line.partition(" #")[0] for line in SBATCH.findall(text)))
    options = _named(words) | {_long(name): value for name, value in job.body.options.items()}
    job.name = options.pop("job-name", "")
    _read_size(job, options)
    _read_place(job, options)
    job.left_out = [_written(name, value) for name, value in options.items() if not _is_ours(name)]
    return job


def _long(name: str) -> str:
    return SHORT.get(name, name.replace("_", "-"))


def _named(words: list[str]) -> dict[str, str]:
    """Return options by their long names: `--time=1:00`, `--time 1:00`, `-t 1:00`, `-t1:00`, `--exclusive`."""
    options: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            options[name] = value
        elif word.startswith("-") and word[1:2].isalpha():
            name = _long(word[1])
            options[name] = word[2:].removeprefix("=")
        elif name:
            options[name] = options[name] or word
    return options


def _number(text: str) -> int | None:
    """Return a whole number; None for what is worked out while the script runs."""
    if re.fullmatch(r"\d{1,7}", text):
        return int(text)
    return None


def _read_size(job: ForeignJob, options: dict[str, str]) -> None:
    """Take what says how large the job is: of ranges the smaller number, of totals the share of a node."""

    def take(name: str) -> int | None:
        return _number(options.pop(name, "").partition("-")[0])

    nodes = [take(name) for name in ("nodes", "nnodes")]
    job.nodes = max((count for count in nodes if count), default=1)
    per_node = [take(name) for name in ("ntasks-per-node", "nproc-per-node", "num-gpus")]
    tasks = take("ntasks")
    processes = take("num-processes")
    job.ranks_per_node = per_node[1] or per_node[2] or per_node[0] or _share(processes or tasks, job.nodes)
    job.gpus = _gpus(job, options)
    cpus = take("cpus-per-task")
    tasks_per_node = per_node[0] or _share(tasks, job.nodes) or 1
    job.cpus = cpus and cpus * tasks_per_node
    job.memory = _memory(options)
    job.retries = take("max-restarts") or 0
    image = options.pop("container-image", "")
    job.image = image.removeprefix("docker://").replace("#", "/", 1)
    tasks_of_array, _, at_once = options.pop("array", "").partition("%")
    if ids := _array(tasks_of_array):
        job.matrix = {"task": ids}
        job.env["SLURM_ARRAY_TASK_ID"] = "{matrix.task}"
        if at_once:
            job.slurm["parallel"] = at_once


def _share(total: int | None, nodes: int) -> int | None:
    """Return what is each node's of a total; rounded up, as Slurm fills nodes."""
    return total and -(-total // nodes)


def _gpus(job: ForeignJob, options: dict[str, str]) -> int:
    """Return the GPUs of a node, in the first of Slurm's words for it that says a number."""
    tasks = job.ranks_per_node or 1
    scales: Mapping[str, Callable[[int], int]] = {
        "gpus-per-node": lambda count: count,
        "gres": lambda count: count,
        "gpus-per-task": lambda count: count * tasks,
        "gpus": lambda count: _share(count, job.nodes) or 0,
    }
    found = 0
    for name, scale in scales.items():
        text = options.get(name, "")
        if name == "gres" and not text.startswith("gpu"):
            continue
        options.pop(name, None)
        count = _number(text.rpartition(":")[2]) if text else None
        found = found or (scale(count) if count else 0)
    return found


def _memory(options: dict[str, str]) -> str:
    """Return the memory of a node; Slurm counts in MiB where no unit stands."""
    text = options.get("mem", "")
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", text)
    if not match or text == "0":
        return ""
    del options["mem"]
    return f"{match[1]}{match[2] or 'M'}iB"


def _array(text: str) -> list[int]:
    ids: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?::([1-9]\d{0,5}))?)?", part)
        if match is None:
            return []
        ids += range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))[: MAX_TASKS + 1]
    return ids if len(ids) <= MAX_TASKS else []


def _read_place(job: ForeignJob, options: dict[str, str]) -> None:
    """Take what says where in the cluster it runs, and for how long."""
    for name in ("partition", "account", "qos", "reservation"):
        if value := options.pop(name, ""):
            job.slurm[name] = scalar(value)
    if seconds := _seconds(options.pop("time", "")):
        job.slurm["time"] = exact_duration(seconds)
    if options.pop("exclusive", None) is not None:
        job.slurm["exclusive"] = "true"
    handed_on = [_written(name, options.pop(name)) for name in HANDED_ON if name in options]
    if handed_on:
        job.slurm["options"] = json.dumps(handed_on)


def _seconds(text: str) -> int:
    """Return a time in Slurm's words: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on."""
    days, has_days, clock = text.rpartition("-")
    parts = [_number(part) for part in clock.split(":")]
    if not text or None in parts or len(parts) > 3:
        return 0
    numbers = [part or 0 for part in parts]
    if has_days:
        numbers = [*numbers, 0, 0][:3]
    elif len(numbers) < 3:
        numbers = [0, *numbers, 0][:3]
    return (_number(days) or 0) * 86400 + numbers[0] * 3600 + numbers[1] * 60 + numbers[2]


def _is_ours(name: str) -> bool:
    return name in NOT_NEEDED or OF_RANKS.match(name) is not None


def _written(name: str, value: str) -> str:
    return f"--{name}={value}" if value else f"--{name}"
