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
        """Return it in words."""
        return f"{self.nodes} node{'' if self.nodes == 1 else 's'} of the cluster {self.context}"


class BorrowedLab:
    """A lab on somebody else's cluster; making this object touches nothing."""

    def __init__(self, folder: Path, loan: Loan) -> None:
        self.folder = folder
        self.loan = loan

    @property
    def name(self) -> str:
        """Return the lab's name, which is that of its pod."""
        return self.loan.name

    @property
    def pod_file(self) -> Path:
        """Return the file that describes the lab as a pod."""
        return self.folder / "pod.yaml"

    def status(self) -> list[dict[str, str]]:
        """Return every node with its role, address and Kubernetes' word for it."""
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
        """Refuse: nothing that others may use is broken here."""
        raise self._not_ours()

    def cut_node(self, node: str) -> NoReturn:
        """Refuse, as above."""
        raise self._not_ours()

    def heal(self, node: str | None = None) -> NoReturn:
        """Refuse, as above."""
        raise self._not_ours()

    def restart_controller(self) -> NoReturn:
        """Refuse, as above."""
        raise self._not_ours()

    def down(self) -> None:
        """Give the cluster back: the namespace goes if it was made here, and the lab's folder."""
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
        # A namespace that an earlier loan made is ours to remove, though it is there by now.
        ours = not there or (before is not None and before.loan.made_namespace)
        if ends_with is not None:
            farewell = _command(asked, *_GIVE_BACK) if ours else ()
            watch.start(folder, ends_with, farewell)
        if not there:
            _kubectl(asked, "create", "namespace", NAMESPACE)
        loan = Loan(context, name, len(nodes), asked.kubeconfig, ours)
        (folder / "pod.yaml").write_text(pod_text(loan, nodes))
        keep(folder, KIND, loan=asdict(loan))
        return BorrowedLab(folder, loan)


def find(folder: Path) -> BorrowedLab | None:
    """Return the borrowed lab in a folder; None where there is none."""
    return kept(folder, KIND, lambda lab: BorrowedLab(folder, Loan(**lab["loan"])))


def pod_text(loan: Loan, nodes: list[dict[str, Any]]) -> str:
    """Return the pod file: nodes that are alike in one group, with what Kubernetes knows of them."""
    groups: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        groups[json.dumps(_model(node["status"]["capacity"]))].append(node["metadata"]["name"])
    lines = "".join(f'  - hosts: "{",".join(names)}"\n    model: {model}\n' for model, names in groups.items())
    fields = {"kind": "kubernetes", "context": loan.context, "kubeconfig": loan.kubeconfig, "namespace": NAMESPACE}
    scheduler = json.dumps({key: value for key, value in fields.items() if value})
    title = f"The cluster {loan.context}, used as a lab"
    return f"name: {loan.name}\ntitle: {json.dumps(title)}\nnodes:\n{lines}schedulers:\n  - {scheduler}\n"


def _model(capacity: Mapping[str, str]) -> dict[str, Any]:
    memory = capacity["memory"]
    if memory.endswith("i"):
        memory += "B"  # Kubernetes writes Ki where a pod file writes KiB
    facts: dict[str, Any] = {"threads": int(capacity["cpu"]), "memory": memory}
    gpus = int(capacity.get("nvidia.com/gpu", "0"))
    if gpus:
        facts["gpus"] = {"model": "GPU", "count": gpus}
    return facts


def _address(node: Mapping[str, Any]) -> str:
    by_type = {row["type"]: row["address"] for row in node["status"].get("addresses", [])}
    return str(by_type.get("InternalIP", ""))


def _nodes(loan: Loan) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = json.loads(_kubectl(loan, "get", "nodes", "-o", "json"))["items"]
    return nodes


def _kubectl(loan: Loan, *arguments: str) -> str:
    """Run kubectl on the borrowed cluster; what it says when it fails is told as it is."""
    done = subprocess.run(_command(loan, *arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it left no word"])[-1]
        hint = "is it among `kubectl config get-contexts`?"
        raise refuse(f"{loan.context}: {last}", hint=hint, field="--use-context", exit_code=_OUT_OF_REACH)
    return done.stdout


def _command(loan: Loan, *arguments: str) -> list[str]:
    """Return the command line of kubectl on the borrowed cluster."""
    program = shutil.which("kubectl") or str((binaries.find(os.environ) or {}).get("kubectl", ""))
    if not program:
        raise refuse("a cluster that is there is used through kubectl, which is not", hint="put kubectl on PATH")
    # Several files in one variable are what kubectl takes from the environment alone.
    is_one_file = loan.kubeconfig and os.pathsep not in loan.kubeconfig
    where = [f"--kubeconfig={loan.kubeconfig}"] if is_one_file else []
    return [program, *where, f"--context={loan.context}", _TIMEOUT, *arguments]
