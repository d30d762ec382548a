"""How far a host is from its plan: pure, from the plan and what the host said."""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.apply.observe import Answer, Seen
from podwright.bringup.plan.host import HostFile, HostPlan
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.spec.hardware import NodeModel

RUNNING = "active, enabled"
# The kernel's word for a port that carries data.
_LINKED = "ACTIVE"


@dataclass(frozen=True)
class Drift:
    """One thing that is not as it should be."""

    what: str
    expected: str
    found: str

    def as_json(self) -> dict[str, str]:
        """Return the form that `--json` prints."""
        return asdict(self)


def drifts(plan: HostPlan, seen: Seen, secrets: Mapping[str, str], model: NodeModel | None = None) -> list[Drift]:
    """Return all that differs on a host, from its model too where one is given; no value of a secret is ever in it."""
    hardware = [*_gpus(model, seen), *_links(model, seen)] if model else []
    return [
        *_packages(plan, seen),
        *_folders(plan, seen),
        *_files(plan, seen, secrets),
        *_services(plan, seen),
        *hardware,
    ]


def _packages(plan: HostPlan, seen: Seen) -> Iterator[Drift]:
    if seen["broken"]:
        yield Drift("packages", "whole", "half installed")
    releases = plan.releases()
    for name in plan.packages():
        version = seen["packages"].get(name)
        if version is None:
            yield Drift(f"package {name}", "installed", "missing")
        elif not version.startswith(releases.get(name, "")):
            yield Drift(f"package {name}", releases[name], version)


def _folders(plan: HostPlan, seen: Seen) -> Iterator[Drift]:
    for step in plan.steps.values():
        for folder in step.folders:
            wanted = f"{folder.owner}:{folder.group} {folder.mode}"
            there = seen["files"].get(folder.path)
            if there is None:
                yield Drift(folder.path, wanted, "missing")
            elif _rights(there) != wanted:
                yield Drift(folder.path, wanted, _rights(there))


def _files(plan: HostPlan, seen: Seen, secrets: Mapping[str, str]) -> Iterator[Drift]:
    for file in plan.files():
        wanted = f"{file.owner}:{file.group} {file.mode}"
        there = seen["files"].get(file.path)
        if there is None:
            yield Drift(file.path, "present", "missing")
            continue
        if there["digest"] != digest_of(file, secrets):
            yield Drift(file.path, "as planned", "edited")
        if _rights(there) != wanted:
            yield Drift(file.path, wanted, _rights(there))


def _services(plan: HostPlan, seen: Seen) -> Iterator[Drift]:
    for name in plan.services():
        state = seen["services"].get(name, "missing")
        if state != RUNNING:
            yield Drift(f"service {name}", RUNNING, state)


def _gpus(model: NodeModel, seen: Seen) -> Iterator[Drift]:
    if model.gpus and seen["gpus"] < model.gpus.count:
        yield Drift("GPUs", str(model.gpus.count), str(seen["gpus"]))


def _links(model: NodeModel, seen: Seen) -> Iterator[Drift]:
    """Yield the ports that are away, down, or slower than they should be, as with a bad cable."""
    for nic in model.nics:
        if nic.name is None:
            continue
        wanted = f"{_LINKED}, {nic.speed_gbps:g} Gb/s"
        there = seen["links"].get(nic.name)
        if there is None:
            yield Drift(f"link {nic.name}", wanted, "missing")
        elif there["state"] != _LINKED or float(there["gbps"]) < nic.speed_gbps:
            yield Drift(f"link {nic.name}", wanted, f"{there['state']}, {there['gbps']} Gb/s")


def _rights(there: Mapping[str, str]) -> str:
    return f"{there['owner']}:{there['group']} {there['mode']}"


def digest_of(file: HostFile, secrets: Mapping[str, str]) -> str:
    """Return the digest that a file's content should have; of a secret that is not made yet there is none."""
    if not file.secret:
        return file.digest
    value = secrets.get(file.secret)
    if value is None:
        return "not made yet"
    return hashlib.sha256(value.encode()).hexdigest()


def status_of(plan: HostPlan, answer: Answer, secrets: Mapping[str, str], model: NodeModel) -> dict[str, Any]:
    """Return a host as `pod status --json` prints it: ok, drift or unreachable, with all that differs or the reason."""
    if isinstance(answer, Refusal):
        return {"state": "unreachable", "drift": [], "reason": answer.problems[0].message}
    differing = drifts(plan, answer, secrets, model)
    return {"state": "drift" if differing else "ok", "drift": [drift.as_json() for drift in differing]}


def changes(plan: HostPlan, answer: Answer | None, secrets: Mapping[str, str]) -> list[dict[str, str]]:
    """Return every file of a host with what `up` would do to it: new, edit, same; unknown where it was not asked."""
    rows = []
    for file in plan.files():
        change = "unknown"
        if answer is not None and not isinstance(answer, Refusal):
            change = _change(file, answer["files"].get(file.path), secrets)
        rows.append({"path": file.path, "change": change})
    return rows


def _change(file: HostFile, there: Mapping[str, Any] | None, secrets: Mapping[str, str]) -> str:
    if there is None:
        return "new"
    rights = f"{file.owner}:{file.group} {file.mode}"
    same = there["digest"] == digest_of(file, secrets) and _rights(there) == rights
    return "same" if same else "edit"


def diff(file: HostFile, there: Mapping[str, Any] | None) -> list[str]:
    """Return how a file would change, line by line; of a secret only that it does."""
    if file.secret:
        return [f"(the secret {file.secret} is not shown)"]
    if there is None:
        return [f"+{line}" for line in file.text.splitlines()]
    if "content" not in there:
        return ["(too large to be shown)"]
    before = base64.b64decode(there["content"]).decode("utf-8", "replace").splitlines()
    lines = difflib.unified_diff(before, file.text.splitlines(), lineterm="", n=1)
    return list(lines)[2:]
