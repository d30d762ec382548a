"""`pod`: the pods that can be named as targets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import AsJson, Yes, complete_file
from podwright.cli.terminal import output
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.kubernetes import GrantResult, ImageTrial
    from podwright.spec import Pod

TRUST = "`trust: [{name}]` in settings.yaml has values of its runs unpickled"
POD_FILES = (".yaml", ".yml")
"""How the name of a pod's file ends; all else is a pod's own name."""
PodFile = Annotated[Path, typer.Argument(metavar="POD.yaml", help="The pod's file.", autocompletion=complete_file)]


def complete_pod(incomplete: str) -> list[str]:
    """Return the names of known pods that begin like this; silent when there is no home."""
    from podwright.runs.store import default_home

    try:
        return sorted(path.stem for path in (default_home() / "pods").glob(f"{incomplete}*.yaml"))
    except (OSError, ValueError):
        return []


PodName = Annotated[str, typer.Argument(metavar="NAME", help="A pod's name.", autocompletion=complete_pod)]
PodRef = Annotated[
    str, typer.Argument(metavar="POD", help="A pod's name, or its file (.yaml).", autocompletion=complete_pod)
]


PodOrOnly = Annotated[
    str | None,
    typer.Argument(
        metavar="[POD]", help="A pod's name, or its file; left out: the only one.", autocompletion=complete_pod
    ),
]


def only_pod() -> str:
    """Return the one pod that is known; refuse where it must be said which."""
    names = complete_pod("")
    if len(names) != 1:
        hint = f"one of {', '.join(names)}" if names else "make one known: `podwright pod add pod.yaml`"
        raise refuse("which pod?", hint=hint, field="POD")
    return names[0]


def read_pod(ref: str) -> Pod:
    """Return the pod that is meant: of a file, or of a known name. No home is made for what needs none."""
    from podwright.launch import pods
    from podwright.runs import Home
    from podwright.spec import load_pod

    if ref.endswith(POD_FILES):
        return load_pod(ref)
    return pods.find(Home.open(), ref)


def pod_add_command(file: PodFile, as_json: AsJson = False) -> None:
    """Check the file and keep a copy under the pod's name; the name alone goes to stdout, for scripts."""
    from podwright.launch import pods
    from podwright.runs import Home

    pod = pods.add(Home.open(), file)
    if as_json:
        return output.print_json(document(pod))
    targets = ", ".join(_targets(pod)) or "none: it has no scheduler"
    output.say("added", f"{pod.name}; targets: {targets}")
    output.say("trust", TRUST.format(name=pod.name))
    return print(pod.name, flush=True)


def pod_ls_command(as_json: AsJson = False) -> None:
    """List the pods that were made known."""
    from podwright.launch import pods
    from podwright.runs import Home

    home = Home.open()
    documents = [document(pods.find(home, name)) for name in pods.known(home)]
    if as_json:
        return output.print_json(documents)
    if not documents:
        return output.say("no pods", "make one known with `podwright pod add POD.yaml`")
    return print("\n".join(listing(documents, output.width_of(sys.stdout))))


def pod_forget_command(name: PodName, as_json: AsJson = False) -> None:
    """Remove the copy; runs hold on to their own and are followed as before, unless the pod does not answer."""
    from podwright.launch import Session, abandon_silent, open_runs, pods
    from podwright.spec.problems import refuse, short

    if name.endswith(POD_FILES):
        raise refuse(f"{short(name)} is a file; a pod is forgotten by its name", hint="`podwright pod ls` lists them")
    with Session.open() as session:
        pods.forget(session.home, name)
        left = abandon_silent(session, open_runs(session, name), f"the pod {name} was forgotten")
    if as_json:
        return output.print_json({"name": name, "forgotten": True})
    output.say("forgotten", name)
    for sentence in left:
        output.say("left", sentence)
    return None


def pod_grant_command(
    pod: PodRef,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Left out: where runs go by the pod file.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="NAME", help="Of several, the one that is meant.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="The users who may run things there.")
    ] = None,
    rdma: Annotated[bool, typer.Option("--rdma", help="Let containers lock memory, which RDMA needs.")] = False,
    image: Annotated[
        str | None, typer.Option("--try", metavar="IMAGE", help="Start a test there, and print what it saw.")
    ] = None,
    render: Annotated[bool, typer.Option("--render", help="Print the objects as YAML, and change nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Apply what a namespace needs for runs, by the same function that renders it."""
    from podwright.bringup import kubernetes
    from podwright.launch import pods
    from podwright.runs import Home

    granted = pods.find(Home.open(), pod)
    cluster = pods.kubernetes_of(granted, scheduler)
    request = kubernetes.GrantRequest(granted, cluster, namespace or pods.namespace_of(cluster), group, rdma)
    objects = request.objects()
    if render:
        print_objects(objects, as_json)
        return 0
    if not dry_run and not output.confirm(f"Apply {len(objects)} objects for the namespace {request.namespace}?", yes):
        return 1
    _print_grant(kubernetes.apply_grant(request, dry_run), as_json)
    if image is None or dry_run:
        return 0
    return _print_trial(kubernetes.try_image(request, image))


def _print_trial(trial: ImageTrial) -> int:
    """Print what the test printed, which is what was asked for, so that it goes to stdout."""
    output.say(trial.phase.lower(), f"the test on {trial.host or 'no host'}")
    print("\n".join(trial.lines), flush=True)
    return int(trial.phase != "Succeeded")


def print_objects(objects: list[dict[str, Any]], as_json: bool) -> None:
    """Print objects of Kubernetes as JSON, or as the YAML that `kubectl apply --server-side` takes."""
    from podwright.bringup.kubernetes import yaml_text

    if as_json:
        return output.print_json(objects)
    return print(yaml_text(objects), end="", flush=True)


def _print_grant(result: GrantResult, as_json: bool) -> None:
    """Print a line for each object, which is what was asked for, so that it goes to stdout."""
    if as_json:
        return output.print_json(result.as_json())
    for item in result.objects:
        namespace = f"{item.namespace}/" if item.namespace else ""
        print("\n".join(output.aligned(item.result, f"{item.kind} {namespace}{item.name}", sys.stdout)), flush=True)
    if result.dry_run:
        output.say("dry run", "nothing was changed")
    if not result.request.group:
        output.say("next", "name the users who may run things there with `--group`; administrators may already")
    return None


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their columns."""
    print("\n".join(output.table(columns, rows, output.width_of(sys.stdout))), flush=True)


def is_approved(question: str, yes: bool, message: str | None = None) -> bool:
    """Return whether a person agreed; without one to ask, only `--yes` says so."""
    from podwright.spec.problems import refuse

    if not yes and not sys.stdin.isatty():
        message = message or question.replace("?", ", which nobody approved")
        raise refuse(message, hint="say so with --yes", field="--yes")
    return output.confirm(question, yes)


def document(pod: Pod) -> dict[str, Any]:
    """Return what can be said of a pod in a line, as `--json` has it."""
    hosts = pod.compute_hosts()
    models = [pod.model_of(host) for host in hosts]
    return {
        "name": pod.name,
        "title": pod.title,
        "nodes": len(hosts),
        "gpus": sum(model.gpus.count for model in models if model.gpus),
        "schedulers": [scheduler.name for scheduler in pod.schedulers],
        "targets": _targets(pod),
    }


def _targets(pod: Pod) -> list[str]:
    if len(pod.schedulers) == 1:
        return [pod.name]
    return [f"{pod.name}:{scheduler.name}" for scheduler in pod.schedulers]


def listing(pods: list[dict[str, Any]], width: int | None) -> list[str]:
    """Lay the pods out."""
    rows = [
        (pod["name"], str(pod["nodes"]), str(pod["gpus"]), ", ".join(pod["targets"]), pod["title"] or "")
        for pod in pods
    ]
    return output.table(("pod", "nodes", "gpus", "targets", "title"), rows, width)
