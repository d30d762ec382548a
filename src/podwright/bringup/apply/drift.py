"""How far a host is from its plan: pure, from the plan and what the host said."""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.apply.observe import Answer, Seen
from podwright.bringup.plan.host import HostFile, HostFolder, HostPlan
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
    user: str = ""
    """Who has something in the way, below a folder of his own: `up` leaves it alone, and so does a roll."""

    @property
    def words(self) -> str:
        """Return it as a line."""
        how = "left alone" if self.user else f"not {self.expected}"
        return f"{self.what}: {self.found}, {how}"

    def as_json(self) -> dict[str, str]:
        """Return it as `pod status --json` has it."""
        document = asdict(self)
        return document if self.user else {name: document[name] for name in ("what", "expected", "found")}


def drifts(plan: HostPlan, seen: Seen, secrets: Mapping[str, str], model: NodeModel | None = None) -> list[Drift]:
    """Return all that differs on a host, from its model too where one is given; no value of a secret is ever in it."""
    hardware = [*_gpus(model, seen), *_links(model, seen)] if model else []
    files: list[Drift] = []
    for file in plan.files():
        files += _file(file, seen["files"].get(file.path), secrets)
    return [
        *_packages(plan, seen),
        *_folders(plan, seen),
        *files,
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
            found = seen["files"].get(folder.path)
            if found is not None and "left" in found:
                yield _left(folder, found)
                continue
            rights = "missing" if found is None else _rights(found)
            if rights != _planned(folder):
                yield Drift(folder.path, _planned(folder), rights)


def _file(file: HostFile, found: Mapping[str, str] | None, secrets: Mapping[str, str]) -> Iterator[Drift]:
    if found is None:
        yield Drift(file.path, "present", "missing")
        return
    if "left" in found:
        yield _left(file, found)
        return
    if found["digest"] != digest_of(file, secrets):
        yield Drift(file.path, "as planned", "edited")
    if _rights(found) != _planned(file):
        yield Drift(file.path, _planned(file), _rights(found))


def _left(entry: HostFile | HostFolder, found: Mapping[str, str]) -> Drift:
    what = found["left"] if found["place"] == entry.path else f"{found['place']} {found['left']}"
    return Drift(entry.path, _planned(entry), what, found["user"])


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
        expected = f"{_LINKED}, {nic.speed_gbps:g} Gb/s"
        found = seen["links"].get(nic.name)
        if found is None:
            yield Drift(f"link {nic.name}", expected, "missing")
        elif found["state"] != _LINKED or float(found["gbps"]) < nic.speed_gbps:
            yield Drift(f"link {nic.name}", expected, f"{found['state']}, {found['gbps']} Gb/s")


def _rights(found: Mapping[str, str]) -> str:
    return f"{found['owner']}:{found['group']} {found['mode']}"


def _planned(entry: HostFile | HostFolder) -> str:
    return f"{entry.owner}:{entry.group} {entry.mode}"


def digest_of(file: HostFile, secrets: Mapping[str, str]) -> str:
    """Return the digest that a file's content should have; of a secret that is not made yet there is none."""
    if not file.secret:
        return file.digest
    value = secrets.get(file.secret)
    if value is None:
        return "not made yet"
    return hashlib.sha256(value.encode()).hexdigest()


@dataclass(frozen=True)
class HostStatus:
    """A host against its plan: ok, drift or unreachable, with all that differs or the reason."""

    state: str
    drift: Sequence[Drift] = ()
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the host as `pod status --json` has it."""
        document: dict[str, Any] = {"state": self.state, "drift": [drift.as_json() for drift in self.drift]}
        return document if self.reason is None else {**document, "reason": self.reason}


def status_of(plan: HostPlan, answer: Answer, secrets: Mapping[str, str], model: NodeModel | None) -> HostStatus:
    """Return how a host is; without its model, what it is made of is not looked at."""
    if isinstance(answer, Refusal):
        return HostStatus("unreachable", reason=answer.problems[0].message)
    differing = drifts(plan, answer, secrets, model)
    return HostStatus("drift" if differing else "ok", differing)


@dataclass(frozen=True)
class StatusResult:
    """How all hosts are."""

    hosts: Mapping[str, HostStatus]

    @property
    def is_ok(self) -> bool:
        """Return whether every host is as planned."""
        return all(host.state == "ok" for host in self.hosts.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `pod status --json` prints."""
        return {"hosts": {name: host.as_json() for name, host in self.hosts.items()}}


@dataclass(frozen=True)
class HostChanges:
    """A host's plan, and what `up` would do to each of its files."""

    plan: HostPlan
    answer: Answer | None
    """What the host said; None where it was not asked."""
    changes: Mapping[str, str]
    """By path: new, edit, same; unknown where the host did not say."""

    @property
    def reason(self) -> str | None:
        """Return why the host could not be asked; None where it was, or was not to be."""
        return self.answer.problems[0].message if isinstance(self.answer, Refusal) else None

    def diff(self, file: HostFile) -> list[str]:
        """Return how a file that is there would change, line by line; nothing of any other."""
        if self.answer is None or isinstance(self.answer, Refusal) or self.changes[file.path] != "edit":
            return []
        return diff(file, self.answer["files"][file.path])

    def as_json(self) -> dict[str, Any]:
        """Return the host as `pod plan --json` has it."""
        return {
            "files": [{"path": path, "change": change} for path, change in self.changes.items()],
            "packages": self.plan.packages(),
            "services": self.plan.services(),
            "skipped": dict(self.plan.skipped),
        }


@dataclass(frozen=True)
class PlanResult:
    """What `up` would do."""

    hosts: Mapping[str, HostChanges]

    @property
    def is_complete(self) -> bool:
        """Return whether every host that was asked has answered."""
        return all(host.reason is None for host in self.hosts.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `pod plan --json` prints."""
        changed = 0
        for host in self.hosts.values():
            changed += sum(change in ("new", "edit") for change in host.changes.values())
        return {"hosts": {name: host.as_json() for name, host in self.hosts.items()}, "changes": changed}


def changes_of(plan: HostPlan, answer: Answer | None, secrets: Mapping[str, str]) -> HostChanges:
    """Return what `up` would do to a host."""
    if answer is None or isinstance(answer, Refusal):
        return HostChanges(plan, answer, {file.path: "unknown" for file in plan.files()})
    changes = {}
    for file in plan.files():
        found = answer["files"].get(file.path)
        change = "edit" if any(_file(file, found, secrets)) else "same"
        changes[file.path] = "new" if found is None else change
    return HostChanges(plan, answer, changes)


def diff(file: HostFile, found: Mapping[str, Any]) -> list[str]:
    """Return how a file would change, line by line; of a secret only that it does."""
    if file.secret:
        return [f"(the secret {file.secret} is not shown)"]
    if "content" not in found:
        return ["(too large to be shown)"]
    before = base64.b64decode(found["content"]).decode("utf-8", "replace").splitlines()
    lines = difflib.unified_diff(before, file.text.splitlines(), lineterm="", n=1)
    return list(lines)[2:]
