"""A Kubernetes that is there already (kind, minikube, a real one), used as a lab: nothing of it is started or ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from podwright.lab import watch
from podwright.lab.folder import keep, kept, locked, remove
from podwright.lab.kubernetes import binaries
from podwright.lab.kubernetes.control import state_of
from podwright.lab.kubernetes.shape import DEFAULT, NAMESPACE
from podwright.spec.problems import Refusal, refuse

KIND = "borrowed-kubernetes"
_OUT_OF_REACH = 3
_TIMEOUT = "--request-timeout=20s"
_GIVE_BACK = ("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")


@dataclass(frozen=True)
class Loan:
    """What is borrowed, and what was added to it."""

    context: str
    name: str = DEFAULT
    nodes: int = 0
    kubeconfig: str = ""
    made_namespace: bool = False

    def words(self) -> str:
        """Gives it in words."""
        return f"{self.nodes} node{'' if self.nodes == 1 else 's'} of the cluster {self.context}"


class BorrowedLab:
    """A lab on somebody else's cluster; making this object touches nothing."""

    def __init__(self, folder: Path, loan: Loan) -> None:
        self.folder = folder
        self.loan = loan

    @property
    def name(self) -> str:
        """The lab's name, which is that of its pod."""
        return self.loan.name

    @property
    def pod_file(self) -> Path:
        """The lab as a pod."""
        return self.folder / "pod.yaml"

    def status(self) -> list[dict[str, str]]:
        """Gives every node with its role, address and Kubernetes' word for it."""
        return [
            {
                "machine": node["metadata"]["name"],
                "role": "node",
                "address": _address(node),
                "state": "",
                "kubernetes": state_of(node),
            }
            for node in _nodes(self.loan)
        ]

    def kill_node(self, node: str) -> NoReturn:
        """Refuses: nothing that others may use is broken here."""
        raise self._not_ours()

    def cut_node(self, node: str) -> NoReturn:
        """Refuses, as above."""
        raise self._not_ours()

    def heal(self, node: str | None = None) -> NoReturn:
        """Refuses, as above."""
        raise self._not_ours()

    def restart_controller(self) -> NoReturn:
        """Refuses, as above."""
        raise self._not_ours()

    def down(self) -> None:
        """Gives the cluster back: the namespace goes if it was made here, and the lab's folder."""
        with locked(self.folder):
            if self.loan.made_namespace:
                _kubectl(self.loan, *_GIVE_BACK)
            remove(self.folder)

    def _not_ours(self) -> Refusal:
        return refuse(f"{self.name} is the cluster {self.loan.context}, which was not started here")


def borrow(folder: Path, context: str, name: str = DEFAULT, ends_with: int | None = None) -> BorrowedLab:
    """Make a lab of the cluster that a context of the user's kubeconfig leads to.

    It is given back when it is taken down, or when a process has ended that is given by its number.
    """
    asked = Loan(context, name, kubeconfig=os.environ.get("KUBECONFIG", ""))
    nodes = _nodes(asked)
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    with locked(folder):
        there = f"namespace/{NAMESPACE}" in _kubectl(asked, "get", "namespaces", "-o", "name").split()
        before = find(folder)
        made = not there or (before is not None and before.loan.made_namespace)
        if ends_with is not None:
            watch.start(folder, ends_with, _command(asked, *_GIVE_BACK) if made else ())
        if not there:
            _kubectl(asked, "create", "namespace", NAMESPACE)
        loan = Loan(context, name, len(nodes), asked.kubeconfig, made)
        (folder / "pod.yaml").write_text(pod_text(loan, nodes))
        keep(folder, KIND, loan=asdict(loan))
        return BorrowedLab(folder, loan)


def find(folder: Path) -> BorrowedLab | None:
    """Gives the borrowed lab in a folder; None where there is none."""
    return kept(folder, KIND, lambda words: BorrowedLab(folder, Loan(**words["loan"])))


def pod_text(loan: Loan, nodes: list[dict[str, Any]]) -> str:
    """Gives the pod file: nodes that are alike in one group, with what Kubernetes knows of them."""
    groups: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        groups[json.dumps(_model(node["status"]["capacity"]))].append(node["metadata"]["name"])
    lines = "".join(f'  - hosts: "{",".join(names)}"\n    model: {model}\n' for model, names in groups.items())
    found = {"kind": "kubernetes", "context": loan.context, "kubeconfig": loan.kubeconfig, "namespace": NAMESPACE}
    scheduler = json.dumps({key: value for key, value in found.items() if value})
    title = f"The cluster {loan.context}, used as a lab"
    return f"name: {loan.name}\ntitle: {json.dumps(title)}\nnodes:\n{lines}schedulers:\n  - {scheduler}\n"


def _model(capacity: Mapping[str, str]) -> dict[str, Any]:
    memory = capacity["memory"]
    facts: dict[str, Any] = {
        "threads": int(capacity["cpu"]),
        "memory": f"{memory}B" if memory.endswith("i") else memory,
    }
    gpus = int(capacity.get("nvidia.com/gpu", "0"))
    return {**facts, "gpus": {"model": "GPU", "count": gpus}} if gpus else facts


def _address(node: Mapping[str, Any]) -> str:
    found = {one["type"]: one["address"] for one in node["status"].get("addresses", [])}
    return str(found.get("InternalIP", ""))


def _nodes(loan: Loan) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_kubectl(loan, "get", "nodes", "-o", "json"))["items"]
    return found


def _kubectl(loan: Loan, *words: str) -> str:
    """Run kubectl on the borrowed cluster; what it says when it fails is told as it is."""
    done = subprocess.run(_command(loan, *words), capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it left no word"])[-1]
        hint = "is it among `kubectl config get-contexts`?"
        raise refuse(f"{loan.context}: {last}", hint=hint, field="--use-context", exit_code=_OUT_OF_REACH)
    return done.stdout


def _command(loan: Loan, *words: str) -> list[str]:
    """Return the command line of kubectl on the borrowed cluster."""
    program = shutil.which("kubectl") or str((binaries.find(os.environ) or {}).get("kubectl", ""))
    if not program:
        raise refuse("a cluster that is there is used through kubectl, which is not", hint="put kubectl on PATH")
    where = [f"--kubeconfig={loan.kubeconfig}"] if loan.kubeconfig and os.pathsep not in loan.kubeconfig else []
    return [program, *where, f"--context={loan.context}", _TIMEOUT, *words]
