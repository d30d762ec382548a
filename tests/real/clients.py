"""Podwright's own command, as a user types it, on a home of its own that knows some pods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podwright.lab import processes
from podwright.lab.kubernetes import KubernetesLab
from tests.paths import ROOT

BIN = Path(sys.executable).parent
PATIENCE_S = 300.0
"""For what must come, on a machine that does other things too."""


class Client:
    """A user at a terminal."""

    def __init__(self, folder: Path, *pods: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PODWRIGHT_")}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environ = {**kept, "PODWRIGHT_HOME": str(folder / "home"), "PATH": path, "NO_COLOR": "1"}
        for pod in pods:
            self.ask("pod", "add", str(pod))

    def ask(self, *words: str, code: int = 0) -> str:
        """Runs one command; one that ends otherwise than it should fails with all it said."""
        command = [str(BIN / "podwright"), *words]
        done = subprocess.run(command, env=self.environ, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"podwright {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run(self, file: Path | str, on: str, *words: str) -> dict[str, Any]:
        """Runs a workload to its end; gives the run as `--json` tells it."""
        told: dict[str, Any] = json.loads(self.ask("run", str(file), "--on", on, "--json", *words))
        return told

    def start(self, file: Path | str, on: str, *words: str) -> str:
        """Starts a workload and leaves it; gives the run's id."""
        return self.ask("run", str(file), "--on", on, "--detach", *words).strip()

    def show(self, run_id: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.ask("show", run_id, "--json"))
        return told

    def wait(self, run_id: str, code: int = 0) -> dict[str, Any]:
        """Waits for a run's end; gives the run."""
        told: dict[str, Any] = json.loads(self.ask("wait", run_id, "--json", code=code))
        return told


def pod_of(lab: KubernetesLab, folder: Path, name: str | None = None, **changes: Any) -> Path:
    """Writes the lab's pod under another name, with a scheduler changed by these fields; None takes one away."""
    head, mark, scheduler = lab.pod_file.read_text().partition("schedulers:\n  - ")
    fields = {**json.loads(scheduler), **changes}
    kept = {key: value for key, value in fields.items() if value is not None}
    file = folder / f"{name or lab.name}.yaml"
    file.write_text(head.replace(f"name: {lab.name}\n", f"name: {name or lab.name}\n") + mark + json.dumps(kept) + "\n")
    return file


def kubectl(lab: KubernetesLab, *words: str, admin: bool = False, give: str = "") -> Any:
    """Runs kubectl as the lab's user, or as its administrator; gives the JSON that it printed."""
    done = lab.kubectl(*words, "--output=json", admin=admin, give=give)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pods(lab: KubernetesLab, run_id: str) -> list[dict[str, Any]]:
    """Gives the Kubernetes pods of a run."""
    select = f"--selector=podwright.dev/run={run_id}"
    found: list[dict[str, Any]] = kubectl(lab, "get", "pods", "--namespace=lab", select)["items"]
    return found


def until(what: Callable[[], Any], words: str, every_s: float = 0.5) -> Any:
    """Waits for something that must come, and gives it; what never comes fails with these words."""
    found: list[Any] = []

    def came() -> bool:
        found[:] = [what()]
        return bool(found[0])

    assert processes.until(came, PATIENCE_S, every_s), f"never happened: {words}"
    return found[0]
