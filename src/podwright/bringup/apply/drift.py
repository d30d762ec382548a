"""How far a host is from its plan: pure, from the plan and what the host said."""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from podwright.bringup.apply.checks import NOT_JUDGED, AskedWhen, accounts_of, checks_of, judged
from podwright.bringup.apply.findings import Drift, Finding, Foreign
from podwright.bringup.apply.observe import Answer, Seen
from podwright.bringup.plan.host import HostFile, HostFolder, HostPlan
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.bringup.apply.vault import Secrets
    from podwright.spec.hardware import NodeModel

RUNNING = "active, enabled"
# The kernel's word for a port that carries data.
_LINKED = "ACTIVE"


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
    foreign: Sequence[Foreign] = ()
    """What is there and in no plan: told, never removed, and nothing that is wrong."""
    firmware: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the host as `pod status --json` has it."""
        document: dict[str, Any] = {
            "state": self.state,
            "drift": [drift.as_json() for drift in self.drift],
            "foreign": [each.words for each in self.foreign],
            "not_judged": list(NOT_JUDGED),
        }
        return document if self.reason is None else {**document, "reason": self.reason}


def status_of(
    plan: HostPlan,
    answer: Answer,
    secrets: Mapping[str, str],
    model: NodeModel | None,
    revisions: Mapping[str, int] = MappingProxyType({}),
) -> HostStatus:
    """Return how a host is; without its model, what it is made of is not looked at."""
    if isinstance(answer, Refusal):
        return HostStatus("unreachable", reason=answer.problems[0].message)
    found = list(_effective(plan, answer, revisions))
    differing = drifts(plan, answer, secrets, model) + [each for each in found if isinstance(each, Drift)]
    foreign = [each for each in found if isinstance(each, Foreign)]
    return HostStatus("drift" if differing else "ok", differing, foreign=foreign, firmware=answer.get("firmware", {}))


def _effective(plan: HostPlan, seen: Seen, revisions: Mapping[str, int]) -> Iterator[Finding]:
    """Yield what works differently from the plan, or is beside it; of a host that was not asked nothing."""
    answers = seen.get("answers")
    if answers:
        yield from judged(checks_of(plan, revisions), answers, AskedWhen(*seen["asked_s"]))


def compared(hosts: Mapping[str, HostStatus], kinds: Sequence[Sequence[str]]) -> dict[str, HostStatus]:
    """Return hosts with the firmware told that most others of their kind have another version of."""
    told = dict(hosts)
    for kind in kinds:
        versions = {host: hosts[host].firmware for host in kind if host in hosts}
        for host, drift in _odd_firmware(versions):
            told[host] = replace(told[host], state="drift", drift=[*told[host].drift, drift])
    return told


def _odd_firmware(versions: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, Drift]]:
    names: dict[str, None] = {}
    for each in versions.values():
        names |= dict.fromkeys(each)
    for name in names:
        (usual, count), *_ = Counter(each[name] for each in versions.values() if name in each).most_common()
        expected = f"{usual}, as {count} of {len(versions)} hosts of its kind have"
        for host, each in versions.items():
            if count > len(versions) / 2 and each.get(name, usual) != usual:
                yield host, Drift(f"firmware {name}", expected, each[name], by_up=False)


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
    others: Sequence[tuple[str, str]] = ()
    """Packages, accounts, folders, services and commands by their names, those that would change: how, and what."""

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
            "others": [{"what": what, "change": change} for change, what in self.others],
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
            changed += sum(change in ("new", "edit") for change, _ in host.others)
        return {"hosts": {name: host.as_json() for name, host in self.hosts.items()}, "changes": changed}


def changes_of(plan: HostPlan, answer: Answer | None, vault: Secrets) -> HostChanges:
    """Return what `up` would do to a host."""
    if answer is None or isinstance(answer, Refusal):
        unasked = [("unknown", name) for name in _named(plan)] if answer is None else []
        return HostChanges(plan, answer, {file.path: "unknown" for file in plan.files()}, unasked)
    changes = {}
    for file in plan.files():
        found = answer["files"].get(file.path)
        change = "edit" if any(_file(file, found, vault.values)) else "same"
        changes[file.path] = "new" if found is None else change
    ours = {file.path for file in plan.files()}
    found = [*drifts(plan, answer, vault.values), *_effective(plan, answer, vault.revisions)]
    others: dict[str, str] = {}
    for each in found:
        if isinstance(each, Drift) and each.is_mended and each.what not in ours:
            others.setdefault(each.what, "new" if each.found == "missing" else "edit")
    return HostChanges(plan, answer, changes, [(change, what) for what, change in others.items()])


def _named(plan: HostPlan) -> Iterator[str]:
    """Yield what a host gets beside files, by the names that a status has of it."""
    yield from (f"package {name}" for name in plan.packages())
    yield from (f"account {name}" for name in accounts_of(plan))
    folders: dict[str, None] = {}
    for step in plan.steps.values():
        folders |= dict.fromkeys(folder.path for folder in step.folders)
    yield from folders
    yield from (f"service {name}" for name in plan.services())
    for step in plan.steps.values():
        yield from (command.name for command in step.commands)


def diff(file: HostFile, found: Mapping[str, Any]) -> list[str]:
    """Return how a file would change, line by line; of a secret only that it does."""
    if file.secret:
        return [f"(the secret {file.secret} is not shown)"]
    if "content" not in found:
        return ["(too large to be shown)"]
    before = base64.b64decode(found["content"]).decode("utf-8", "replace").splitlines()
    lines = difflib.unified_diff(before, file.text.splitlines(), lineterm="", n=1)
    return list(lines)[2:]
