"""Images that an OpenShift pod builds itself: `image render --on` and `image build --on`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Workload

Objects = list[dict[str, Any]]


def check_options(on: str | None, only_there: dict[str, Any], only_here: dict[str, Any]) -> None:
    """Refuse what says nothing about an image that is built there, or here."""
    if on:
        _refuse_given(only_here, "is for images that are built here", "leave `--on` out")
    else:
        _refuse_given(only_there, "is for images that a pod builds", "name the pod with `--on`")


def _refuse_given(options: dict[str, Any], why: str, hint: str) -> None:
    from podwright.spec.problems import refuse

    for name, value in options.items():
        if value:
            raise refuse(why, hint=hint, field=name)


def objects_of(workload: Workload, on: str, git: str | None) -> Objects:
    """Return the image stream and its build, for the namespace that the workload runs in."""
    return _objects(workload, _scheduler(on), git)


def _scheduler(on: str) -> KubernetesScheduler:
    from podwright.bringup.kubernetes.builds import check_dialect
    from podwright.launch import pods
    from podwright.runs import Home

    pod_name, _, name = on.partition(":")
    pod = pods.find(Home.open(), pod_name)
    scheduler = pods.kubernetes_of(pod, name or None)
    check_dialect(pod, scheduler)
    return scheduler


def _objects(workload: Workload, scheduler: KubernetesScheduler, git: str | None) -> Objects:
    from podwright.bringup.kubernetes import namespace_of
    from podwright.bringup.kubernetes.builds import recipe_objects
    from podwright.images.builder import read_recipe

    namespace = workload.kubernetes.namespace or namespace_of(scheduler)
    return recipe_objects(read_recipe(workload), namespace, git)


def build(workload: Workload, on: str, git: str | None, as_json: bool) -> None:
    """Apply the objects and start the build; where files must be sent, say the command that sends them."""
    from podwright.bringup.kubernetes.builds import needs_files, start_build
    from podwright.clients.kubernetes.apply import apply_objects, reach

    scheduler = _scheduler(on)
    objects = _objects(workload, scheduler, git)
    config, api = objects[-1], reach(scheduler)
    started = None
    try:
        applied = apply_objects(api, objects)
        if not needs_files(config):
            started = start_build(api, config)
    finally:
        api.close()
    name = config["spec"]["output"]["to"]["name"]
    if as_json:
        return output.print_json({"name": name, "build": started, "objects": [item.as_json() for item in applied]})
    for item in applied:
        output.say(item.result, f"{item.kind} {item.namespace}/{item.name}")
    output.say(*_what_now(config["metadata"], started, str(workload.folder)))
    return print(name, flush=True)


def _what_now(metadata: dict[str, str], started: str | None, folder: str) -> tuple[str, str]:
    place = f"--namespace {metadata['namespace']}"
    if started:
        return "started", f"the build {started}; `oc logs {place} --follow build/{started}` shows it"
    return "next", f"oc start-build {place} {metadata['name']} {shlex.quote(f'--from-dir={folder}')} --follow"
