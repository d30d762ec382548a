"""`pod`: the pods that can be named as targets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli import talk
from podwright.cli.options import AsJson, complete_file

if TYPE_CHECKING:
    from podwright.spec import Pod

PodFile = Annotated[Path, typer.Argument(metavar="POD.yaml", help="The pod's file.", autocompletion=complete_file)]


def complete_pod(incomplete: str) -> list[str]:
    """Gives the names of known pods that begin like this; silent when there is no home."""
    from podwright.runs.store import default_home

    try:
        return sorted(path.stem for path in (default_home() / "pods").glob(f"{incomplete}*.yaml"))
    except (OSError, ValueError):
        return []


PodName = Annotated[str, typer.Argument(metavar="NAME", help="A pod's name.", autocompletion=complete_pod)]


def pod_add_command(file: PodFile, as_json: AsJson = False) -> None:
    """Checks the file and keeps a copy under the pod's name; the name alone goes to stdout, for scripts."""
    from podwright.launch import pods
    from podwright.runs import Home

    pod = pods.add(Home.open(), file)
    if as_json:
        return talk.print_json(document(pod))
    targets = ", ".join(_targets(pod)) or "none: it has no scheduler"
    talk.say("added", f"{pod.name}; targets: {targets}")
    return print(pod.name, flush=True)


def pod_ls_command(as_json: AsJson = False) -> None:
    """Lists the pods that were made known."""
    from podwright.launch import pods
    from podwright.runs import Home

    home = Home.open()
    found = [pods.find(home, name) for name in pods.known(home)]
    if as_json:
        return talk.print_json([document(pod) for pod in found])
    if not found:
        return talk.say("no pods", "make one known with `podwright pod add POD.yaml`")
    return print("\n".join(listing([document(pod) for pod in found], talk.width_of(sys.stdout))))


def pod_forget_command(name: PodName, as_json: AsJson = False) -> None:
    """Removes the copy; runs hold on to their own and are followed as before."""
    from podwright.launch import pods
    from podwright.runs import Home
    from podwright.spec.problems import refuse, short

    if name.endswith((".yaml", ".yml")):
        raise refuse(f"{short(name)} is a file; a pod is forgotten by its name", hint="`podwright pod ls` lists them")
    pods.forget(Home.open(), name)
    if as_json:
        return talk.print_json({"name": name, "forgotten": True})
    return talk.say("forgotten", name)


def document(pod: Pod) -> dict[str, Any]:
    """Gives what can be said of a pod in a line, as `--json` has it."""
    hosts = pod.compute_hosts()
    models = [pod.model_of(host) for host in hosts]
    return {
        "name": pod.name,
        "title": pod.title,
        "nodes": len(hosts),
        "gpus": sum(model.gpus.count for model in models if model.gpus),
        "schedulers": [one.name for one in pod.schedulers],
        "targets": _targets(pod),
    }


def _targets(pod: Pod) -> list[str]:
    if len(pod.schedulers) == 1:
        return [pod.name]
    return [f"{pod.name}:{one.name}" for one in pod.schedulers]


def listing(found: list[dict[str, Any]], width: int | None) -> list[str]:
    """Lays the pods out."""
    rows = [
        (pod["name"], str(pod["nodes"]), str(pod["gpus"]), ", ".join(pod["targets"]), pod["title"] or "")
        for pod in found
    ]
    return talk.table(("pod", "nodes", "gpus", "targets", "title"), rows, width)
