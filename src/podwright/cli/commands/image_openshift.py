"""Images that an OpenShift pod builds itself: `image render --on` and `image build --on`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Workload

Objects = list[dict[str, Any]]


def check_options(on: str | None, only_there: dict[str, Any], only_here: dict[str, Any]) -> None:
    """Refuses what says nothing about an image that is built there, or here."""
    from podwright.spec.problems import refuse

    for name, value in (only_here if on else only_there).items():
        if value:
            words = "is for images that are built here" if on else "is for images that a pod builds"
            raise refuse(words, hint="leave `--on` out" if on else "name the pod with `--on`", field=name)


def objects_of(workload: Workload, on: str, git: str | None) -> Objects:
    """Gives the image stream and its build, for the namespace that the workload runs in."""
    return _objects(workload, _scheduler(on), git)


def _scheduler(on: str) -> KubernetesScheduler:
    from podwright.bringup.kubernetes.builds import check_dialect
    from podwright.launch import pods
    from podwright.runs import Home

    name, _, scheduler = on.partition(":")
    pod = pods.find(Home.open(), name)
    found = pods.kubernetes_of(pod, scheduler or None)
    check_dialect(pod, found)
    return found


def _objects(workload: Workload, scheduler: KubernetesScheduler, git: str | None) -> Objects:
    from podwright.bringup.kubernetes.builds import recipe_objects
    from podwright.clients.kubernetes.kubeconfig import read_entry
    from podwright.engines.kubernetes.run_spec import namespace_of
    from podwright.images.builder import read_recipe

    named = workload.kubernetes.namespace or scheduler.namespace
    home = "" if named else read_entry(scheduler.kubeconfig, scheduler.context).namespace or "default"
    return recipe_objects(read_recipe(workload), namespace_of(workload, scheduler, home), git)


def print_yaml(objects: Objects) -> None:
    """Prints what `kubectl apply --server-side` takes."""
    from podwright.clients.kubernetes.manifest import yaml_text

    print(yaml_text(objects), end="", flush=True)


def build(workload: Workload, on: str, git: str | None, as_json: bool) -> None:
    """Applies the objects and starts the build; where files must be sent, says the command that sends them."""
    from podwright.bringup.kubernetes.builds import needs_files, start_build
    from podwright.clients.kubernetes.apply import apply_objects, reach

    scheduler = _scheduler(on)
    objects = _objects(workload, scheduler, git)
    config, api = objects[-1], reach(scheduler)
    try:
        done = apply_objects(api, objects)
        started = None if needs_files(config) else start_build(api, config)
    finally:
        api.close()
    name = config["spec"]["output"]["to"]["name"]
    if as_json:
        return output.print_json({"name": name, "build": started, "objects": [one.as_json() for one in done]})
    for one in done:
        output.say(one.result, f"{one.kind} {one.namespace}/{one.name}")
    output.say(*_what_now(config["metadata"], started, str(workload.folder)))
    return print(name, flush=True)


def _what_now(metadata: dict[str, str], started: str | None, folder: str) -> tuple[str, str]:
    place = f"--namespace {metadata['namespace']}"
    if started:
        return "started", f"the build {started}; `oc logs {place} --follow build/{started}` shows it"
    return "next", f"oc start-build {place} {metadata['name']} {shlex.quote(f'--from-dir={folder}')} --follow"
