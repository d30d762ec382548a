"""A task of SkyPilot as a job in the words of a workload."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from podwright.drafts.jobs import ForeignJob
from podwright.drafts.shell_body import read_body
from podwright.spec.problems import Refusal, refuse
from podwright.spec.yaml_document import parse

TAKEN = {"name", "workdir", "num_nodes", "resources", "envs", "secrets", "setup", "run"}
OF_RESOURCES = {"accelerators", "cpus", "memory", "image_id"}
NOT_NEEDED = {
    "cloud",
    "infra",
    "region",
    "zone",
    "use_spot",
    "disk_size",
    "disk_tier",
    "ports",
    "instance_type",
    "any_of",
}
"""Where a machine is rented: a pod says that."""


def read_skypilot_task(text: str, source: str, folder: str) -> ForeignJob:
    """Return the job that a task file describes."""
    document = parse(text, source)
    if document.problems:
        raise Refusal(document.problems)
    task = document.value
    if not isinstance(task, dict) or not isinstance(task.get("run"), str):
        hint = "a Python script, a shell or batch script, or a SkyPilot task with `run:` becomes a workload"
        raise refuse(f"{source}: is no task of SkyPilot: it has no `run:` text", hint)
    job = ForeignJob(source, folder, name=_text(task.get("name")), body=read_body(task["run"]))
    job.as_it_is = ("bash", "-c", task["run"].strip())
    job.code = _text(task.get("workdir")) or "."
    job.nodes = _count(task.get("num_nodes")) or 1
    _read_resources(job, _mapping(task.get("resources")))
    job.env = {name: _text(value) for name, value in _mapping(task.get("envs")).items()}
    job.secrets = list(_mapping(task.get("secrets")))
    job.body.setup[:0] = _text(task.get("setup")).strip().splitlines()
    job.left_out += [f"{name}: {json.dumps(value)}" for name, value in task.items() if name not in TAKEN]
    return job


def _read_resources(job: ForeignJob, resources: Mapping[str, Any]) -> None:
    """Take what one node gets; a `+` behind a number asks for at least so much, which is what we ask for."""
    accelerators = resources.get("accelerators")
    if isinstance(accelerators, dict):
        accelerators = ":".join(map(str, next(iter(accelerators.items()), ())))
    if accelerators:
        kind, _, count = _text(accelerators).partition(":")
        job.gpus = _count(count) or 1
        job.left_out.append(f"accelerators: {kind}: a pod has the GPUs it has")
    job.cpus = _count(resources.get("cpus"))
    if memory := _count(resources.get("memory")):
        job.memory = f"{memory}GB"
    job.image = _text(resources.get("image_id")).removeprefix("docker:")
    others = resources.keys() - OF_RESOURCES - NOT_NEEDED
    job.left_out += [f"resources.{name}: {json.dumps(resources[name])}" for name in sorted(others)]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _count(value: Any) -> int | None:
    """Return a whole number such as `8`, `8+` or `32GB`."""
    match = re.match(r"\d{1,7}", _text(value))
    if match and int(match[0]):
        return int(match[0])
    return None
