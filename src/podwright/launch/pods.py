"""The pods a user can name: a file, or one that was made known under its name in the home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.files.whole import write_whole
from podwright.runs import Home
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def folder(home: Home) -> Path:
    """Return where the pods lie that were made known."""
    return home.path / "pods"


def known(home: Home) -> list[str]:
    """Return the names of the pods that were made known."""
    return sorted(path.stem for path in folder(home).glob("*.yaml"))


def find(home: Home, ref: str) -> Pod:
    """Return the pod a user means: a path that ends in .yaml or .yml, else a name."""
    from podwright.spec import load_pod

    if ref.endswith((".yaml", ".yml")):
        return load_pod(Path(ref))
    path = folder(home) / f"{ref}.yaml"
    if NAME.fullmatch(ref) is None or not path.exists():
        raise _unknown(home, ref)
    return load_pod(path)


def _unknown(home: Home, ref: str) -> Refusal:
    names = known(home)
    hint = "make one known with `podwright pod add POD.yaml`"
    if names:
        hint = f"known pods: {', '.join(names)}"
    return refuse(f"there is no pod {short(ref)!r}", hint=hint)


def add(home: Home, path: Path) -> Pod:
    """Make a pod known under its name; a later `add` takes its place, but for how a bring-up found its hosts."""
    from podwright.bringup import kept_text
    from podwright.spec import load_pod

    pod = load_pod(path)
    file = folder(home) / f"{pod.name}.yaml"
    kept = kept_text(pod, load_pod(file)) if file.exists() else None
    if kept is None:
        HomePods(home).save(pod.name, pod.source)
        return pod
    HomePods(home).save(pod.name, kept.encode())
    return load_pod(file)


@dataclass(frozen=True)
class HomePods:
    """The pods of a home, as a bring-up asks for them and makes them known."""

    home: Home

    def access(self, name: str) -> Pod | None:
        """Return the pod of a lab of this name, else the one that is known under it."""
        from podwright.spec import load_pod

        for path in (self.home.path / "labs" / name / "pod.yaml", folder(self.home) / f"{name}.yaml"):
            if path.exists():
                return load_pod(path)
        return None

    def save(self, name: str, source: bytes) -> None:
        """Make a pod known under its name."""
        folder(self.home).mkdir(mode=0o700, exist_ok=True)
        write_whole(folder(self.home) / f"{name}.yaml", source)


def forget(home: Home, name: str) -> None:
    """Forget a name that was made known; refuse any other: a file stays where it is."""
    if name not in known(home):
        raise _unknown(home, name)
    (folder(home) / f"{name}.yaml").unlink()


def namespace_of(scheduler: KubernetesScheduler) -> str:
    """Return where runs go unless they name a namespace: the pod file's, the context's, or `default`."""
    from podwright.clients.kubernetes.kubeconfig import read_entry

    return scheduler.namespace or read_entry(scheduler.kubeconfig, scheduler.context).namespace or "default"


def kubernetes_of(pod: Pod, name: str | None) -> KubernetesScheduler:
    """Return the scheduler of this name, which must be Kubernetes; without a name the only one of that kind."""
    from podwright.spec import KubernetesScheduler

    fitting = [scheduler for scheduler in pod.schedulers if isinstance(scheduler, KubernetesScheduler)]
    if name is None and len(fitting) == 1:
        return fitting[0]
    scheduler = pod.scheduler(name)
    if isinstance(scheduler, KubernetesScheduler):
        return scheduler
    hint = "it has no Kubernetes"
    if fitting:
        hint = f"its Kubernetes is {', '.join(scheduler.name for scheduler in fitting)}"
    message = f"the scheduler {scheduler.name} of the pod {pod.name} is {scheduler.kind}, not Kubernetes"
    raise refuse(message, hint=hint)
