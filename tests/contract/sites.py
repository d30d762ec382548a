"""One suite for every engine. A site is an engine on a home of its own, with the few things only a test does to it."""

from __future__ import annotations

import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from podwright import launch, spec
from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.clients.kubernetes.silence import BUDGET_S
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.outage import Patience
from podwright.engines.local.engine import lock_holder, marked
from podwright.lab import kubernetes
from podwright.lab.slurm.lab import SlurmLab
from podwright.launch import Run, pods
from podwright.runs import Home
from podwright.runs.series import ToldValue
from tests.real.clients import PATIENCE_S, pod_of
from tests.rows import event_rows

PROGRAMS = Path(__file__).parent / "programs"
END_S = 300.0
"""For the end of a run; a machine that does other things too may take its time."""


def until(what: Callable[[], Any], words: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait for something that must come; what never comes fails with these words."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"never happened: {words}")


def mend(lab: SlurmLab) -> None:
    """Have all nodes idle, whatever was struck before: Slurm may drain a node that was cut off when it is back."""

    def is_idle() -> bool:
        lab.heal()
        return set(lab.node_states().values()) == {"idle"}

    until(is_idle, "all nodes are idle")


class Site(ABC):
    """An engine on a home of its own. `target` names it; `shared` is whether its nodes share the run's folder."""

    shared = True

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.home = Home.open(folder / "home")
        self.session = launch.Session(self.home)
        self._runs: list[Run] = []

    def workload(self, arguments: str = "", **fields: Any) -> spec.Workload:
        """The counting program with these arguments; fields go into the file as they are, None leaves one out."""
        command = f"{sys.executable} count.py {arguments}"
        values = {"name": "count", "code": str(PROGRAMS), "command": command, "launcher": "ranks", **fields}
        path = self.folder / "workload.yaml"
        path.write_text("".join(f"{name}: {value}\n" for name, value in values.items() if value is not None))
        return spec.load_workload(path)

    def start(self, arguments: str = "", repeat: int = 1, after: str | None = None, **fields: Any) -> Run:
        run = launch.start(self.session, self.workload(arguments, **fields), self.target, repeat, after)
        self._runs.append(run)
        return run

    def adopt(self, run_id: str) -> Run:
        run = launch.find(self.session, run_id)
        self._runs.append(run)
        return run

    def events(self, run: Run, kind: str) -> list[dict[str, Any]]:
        run.record()
        return [row for row in event_rows(run.folder.path) if row["k"] == kind]

    def steps(self, run: Run, rank: int | None = None) -> list[int]:
        """Every step that this rank, or all ranks, told, rank by rank: events have the last of a second only."""
        return [int(told.value) for told in self.told(run, "step") if rank in (None, told.rank)]

    def told(self, run: Run, name: str) -> list[ToldValue]:
        """Every value of this name."""
        run.record()
        return [told for told in run.folder.series() if told.name == name]

    def wait_step(self, run: Run, step: int, rank: int | None = None) -> None:
        """Until this rank, or some rank, has told this step."""

        def told() -> bool:
            results = [event for event in self.events(run, "result") if rank in (None, event["rank"])]
            return any(event["values"].get("step", 0) >= step for event in results)

        until(told, f"step {step} of {run.id}")

    def processes(self, run: Run) -> list[int]:
        """Whatever of the run is alive on this machine, whoever's it is and in whatever namespace."""
        ids = {run.id, *(point.id for point in run.points())}
        return [pid for one in ids for pid in self._marked().get(one, [])]

    def _marked(self) -> dict[str, list[int]]:
        return marked()

    @abstractmethod
    def pilot(self, run: Run, node: int) -> int:
        """The process that stands for a node, as this machine numbers it."""

    @abstractmethod
    def rank(self, run: Run, rank: int) -> int:
        """The process of a rank."""

    def kill_pilot(self, run: Run, node: int) -> None:
        os.kill(self.pilot(run, node), signal.SIGKILL)

    def kill_rank(self, run: Run, rank: int) -> None:
        os.kill(self.rank(run, rank), signal.SIGKILL)

    def _last(self, run: Run, kind: str, **fields: int) -> dict[str, Any]:
        def find() -> dict[str, Any] | None:
            found = [e for e in self.events(run, kind) if all(e.get(name) == value for name, value in fields.items())]
            return found[-1] if found else None

        found: dict[str, Any] = until(find, f"{kind} {fields}")
        return found

    def close(self) -> None:
        """End exactly what was started here."""
        for run in self._runs:
            for pid in self.processes(run):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class LocalSite(Site):
    """The local engine. `target` picks the carrier of the record."""

    def __init__(self, target: str, folder: Path) -> None:
        super().__init__(target, folder)
        self.shared = target == "local"

    def pilot(self, run: Run, node: int) -> int:
        return int(self._last(run, "node", node=node)["pid"])

    def rank(self, run: Run, rank: int) -> int:
        return int(self._last(run, "rank", rank=rank)["pid"])

    def keeper(self, run: Run) -> int:
        return int(until(lambda: lock_holder(run.folder), "somebody keeps the run"))


class ClusterSite(Site):
    """Nodes with namespaces of their own on this machine: their processes are found by what they carry."""

    node_variable: str
    pod_file: Path

    def _marked(self) -> dict[str, list[int]]:
        return marked(everyone=True)

    def pilot(self, run: Run, node: int) -> int:
        """The node itself numbers its processes anew."""
        found = until(lambda: self.find(run, f"{self.node_variable}={node}", b"\0node\0"), f"the pilot of node {node}")
        return int(found)

    def rank(self, run: Run, rank: int) -> int:
        return int(until(lambda: self.find(run, f"RANK={rank}", b"count.py"), f"rank {rank}"))

    def find(self, run: Run, variable: str, word: bytes) -> int | None:
        for pid in self.processes(run):
            with suppress(OSError):
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if variable.encode() in environ and word in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None


class SlurmSite(ClusterSite):
    """The Slurm engine on a lab, through the lab's login node as an ordinary user."""

    node_variable = "SLURM_NODEID"

    def __init__(self, lab: SlurmLab, folder: Path) -> None:
        super().__init__(lab.name, folder)
        self.lab, self.pod_file = lab, lab.pod_file
        pods.add(self.home, lab.pod_file)

    def slurm(self, *words: str) -> str:
        """What a command says on the login node."""
        return self.lab.run(list(words)).stdout

    def close(self) -> None:
        self.slurm("scancel", "--me")
        super().close()
        with suppress(AssertionError):
            until(lambda: not self.slurm("squeue", "--noheader"), "the queue is empty")


def kubernetes_session(
    home: Home,
    answered: Callable[[str, str], None] = lambda method, path: None,
    budget_s: float = BUDGET_S,
    patience: Patience | None = None,
) -> launch.Session:
    """A session whose Kubernetes engines tell of each answer, and wait as long as the test says."""

    def engine(pod: spec.Pod, name: str | None) -> KubernetesEngine:
        scheduler = pods.kubernetes_of(pod, name)
        api = Api(read_entry(scheduler.kubeconfig, scheduler.context), budget_s=budget_s, answered=answered)
        return KubernetesEngine(pod, scheduler, api, patience)

    return launch.Session(home, schedulers={"kubernetes": engine})


class KubernetesSite(ClusterSite):
    """The Kubernetes engine on a lab, as the lab's ordinary user; without a claim the record travels in frames."""

    node_variable = "JOB_COMPLETION_INDEX"

    def __init__(self, lab: kubernetes.KubernetesLab, folder: Path, claim: bool = True, known: bool = False) -> None:
        super().__init__(lab.name, folder)
        self.lab, self.shared = lab, claim
        self.pod_file = lab.pod_file if claim else pod_of(lab, folder, claim=None)
        if not known:
            pods.add(self.home, self.pod_file)

    def workload(self, arguments: str = "", **fields: Any) -> spec.Workload:
        return super().workload(arguments, **{"resources": "{cpus: 1, memory: 512MiB}", **fields})

    def close(self) -> None:
        ids = [one.id for run in self._runs for one in (run, *run.points())]
        if ids:
            self.lab.kubectl("delete", "jobs,mpijobs", *ids, "--namespace=lab", "--ignore-not-found", "--wait=false")
