"""Images that an OpenShift pod builds itself, for the namespace that a workload runs in."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.kubernetes.builds import check_dialect, needs_files, recipe_objects, start_build
from podwright.clients.kubernetes.apply import Applied, apply_objects, reach
from podwright.images.builder import read_recipe
from podwright.launch import pods
from podwright.runs import Home

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Workload


@dataclass(frozen=True)
class ImageBuild:
    """What was applied for an image, and the build that was started; none where files must be sent first."""

    name: str
    namespace: str
    config: str
    build: str | None
    objects: list[Applied]

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        return {"name": self.name, "build": self.build, "objects": [item.as_json() for item in self.objects]}

    def what_now(self, folder: str) -> tuple[str, str]:
        """Return in a word and a command how to look at the build, or how to send it the files of a folder."""
        where = f"--namespace {self.namespace}"
        if self.build:
            return "started", f"the build {self.build}; `oc logs {where} --follow build/{self.build}` shows it"
        return "next", f"oc start-build {where} {self.config} {shlex.quote(f'--from-dir={folder}')} --follow"


class ClusterImage:
    """The image of a workload on a pod that builds it; files beside the workload come from git, or are sent."""

    def __init__(self, workload: Workload, on: str, git: str | None = None) -> None:
        pod_name, _, name = on.partition(":")
        pod = pods.find(Home.open(), pod_name)
        self.scheduler: KubernetesScheduler = pods.kubernetes_of(pod, name or None)
        check_dialect(pod, self.scheduler)
        namespace = workload.kubernetes.namespace or pods.namespace_of(self.scheduler)
        self.objects: list[dict[str, Any]] = recipe_objects(read_recipe(workload), namespace, git)

    def build(self) -> ImageBuild:
        """Apply the objects and start the build."""
        config = self.objects[-1]
        with closing(reach(self.scheduler)) as api:
            applied = apply_objects(api, self.objects)
            started = None if needs_files(config) else start_build(api, config)
        metadata = config["metadata"]
        name = config["spec"]["output"]["to"]["name"]
        return ImageBuild(name, metadata["namespace"], metadata["name"], started, applied)
