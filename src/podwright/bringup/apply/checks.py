"""What a host is asked beyond its files, and what the answers mean: whether what the plan wrote is also what works.

A row is a question to `on_host/workings.py` and a judge of its answer, both pure. What `up` looks for before it runs a
command is among them, so that `pod status` and `pod up` agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from podwright.bringup.apply.findings import Drift, Finding, Foreign
from podwright.bringup.plan.host import MARKS, HostAccount, HostCommand, HostPlan
from podwright.clients.reasons import last_line

CLOCK_S = 5.0
"""How far a host's clock may be from ours before it is told."""
RENEWAL_S = 30 * 86400.0
"""How long before its end a certificate is told."""
NOT_JUDGED = (
    "files that no plan writes: those of packages, and what lies in folders that the plan makes",
    "home folders of users, but for the keys that the plan gives them",
    "jobs, containers and processes that users started, and what these listen on",
    "what listens on UDP, and firewalls beside the pod's own",
    "settings of the BIOS, and firmware that the kernel shows no version of",
    "what the scheduler is told while it runs: drains, reservations, priorities, limits by hand",
    "what an identity service outside the pod says of users and groups",
    "switches, and everything else that no host of the pod is",
)
"""What `pod status` does not look at, wherever it is asked; docs/bring-up.md has the same list."""
_SSHD = "/etc/ssh/sshd_config.d/"
_SLURM = "/etc/slurm/slurm.conf"
_CLUSTER_CERTIFICATES = (
    "/etc/kubernetes/pki/*.crt",
    "/etc/kubernetes/pki/etcd/*.crt",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
)
# What the plan has listen on its own host alone, whatever a drop-in or another file says.
_ON_LOOPBACK = frozenset({"mariadb", "prometheus", "prometheus-alertmanager"})
Judge = Callable[[Any, "AskedWhen"], Iterator[Finding]]


@dataclass(frozen=True)
class AskedWhen:
    """What is known beside an answer: the clock here, when the host was asked and when it had answered."""

    sent_s: float = 0.0
    came_s: float = 0.0


@dataclass(frozen=True)
class StatusCheck:
    """One question to a host, and what its answer means."""

    kind: str
    judge: Judge
    arguments: Mapping[str, Any] = field(default_factory=dict)
    secret: str = ""
    """The secret that a program gets on standard input."""

    def question(self, secrets: Mapping[str, str]) -> list[Any]:
        """Return it as a host is asked."""
        given = {"stdin": secrets.get(self.secret, "")} if self.secret else {}
        return [self.kind, {**self.arguments, **given}]


def checks_of(plan: HostPlan, revisions: Mapping[str, int]) -> list[StatusCheck]:
    """Return all checks of a host, in the order in which it is asked."""
    checks: list[StatusCheck] = []
    for row in _ROWS:
        checks += row(plan)
    return [*checks, _marks(plan, revisions)]


def judged(checks: list[StatusCheck], answers: list[Any], asked: AskedWhen) -> Iterator[Finding]:
    """Yield what the answers to these checks say."""
    for check, answer in zip(checks, answers, strict=True):
        if isinstance(answer, dict) and isinstance(answer.get("error"), str):
            yield Drift(check.kind, "an answer", answer["error"], by_up=False)
        else:
            yield from check.judge(answer, asked)


def _commands(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask what `up` looks for before it runs a command: grants, passwords, entries of a cluster."""
    seen: set[str] = set()
    for step in plan.steps.values():
        for command in step.commands:
            if command.name not in seen:
                seen.add(command.name)
                judge = partial(_command, command)
                yield StatusCheck("run", judge, {"argv": list(command.check)}, command.secret)


def _command(command: HostCommand, said: Any, asked: AskedWhen) -> Iterator[Finding]:
    if command.sees in said["out"]:
        return
    # What a program that was given a secret says is not repeated.
    line = "" if command.secret else last_line(said["out"] or said["err"], "")
    yield Drift(command.name, "as planned", line or "missing")


def _sshd(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask for the settings that sshd goes by: the first file that names one decides, and it need not be ours."""
    wanted: dict[str, str] = {}
    for file in sorted((file for file in plan.files() if file.path.startswith(_SSHD)), key=lambda file: file.path):
        general = re.split(r"^match\s", file.text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0]
        for name, value in _settings(general):
            wanted.setdefault(name.lower(), value)
    if wanted:
        yield StatusCheck("run", partial(_sshd_found, wanted), {"argv": ["/usr/sbin/sshd", "-T"]})


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if name and not name.startswith("#"):
            yield name, " ".join(value.split())


def _sshd_found(wanted: Mapping[str, str], said: Any, asked: AskedWhen) -> Iterator[Finding]:
    if said["code"]:
        yield Drift("sshd", "its settings", last_line(said["err"], "no answer"), by_up=False)
        return
    found: dict[str, list[str]] = {}
    for name, value in _settings(said["out"]):
        found.setdefault(name.lower(), []).append(value)
    for name, value in wanted.items():
        effective = found.get(name, ["nothing"])
        if value.lower() not in [each.lower() for each in effective]:
            yield Drift(f"sshd {name}", value, ", ".join(effective), by_up=False)


def _slurm(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask whether the controller goes by the file that this host has."""
    if any(file.path == _SLURM for file in plan.files()):
        yield StatusCheck("run", _slurm_found, {"argv": ["scontrol", "show", "config"]})


def _slurm_found(said: Any, asked: AskedWhen) -> Iterator[Finding]:
    if said["code"]:
        yield Drift("Slurm's controller", "answers", last_line(said["err"], "no answer"), by_up=False)
        return
    found = re.search(r"^HASH_VAL\s*=\s*(.*)$", said["out"], re.MULTILINE)
    if found and found[1].strip() != "Match":
        yield Drift("Slurm's controller", f"started with {_SLURM}", "started with another one", by_up=False)


def _kubelet(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask whether the cluster has this host as a node that is ready."""
    if "kubelet" not in plan.services():
        return
    kubectl = ["kubectl", "--kubeconfig=/etc/kubernetes/kubelet.conf", "--request-timeout=10s"]
    line = """--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}"""
    yield StatusCheck("run", partial(_ready, plan.name), {"argv": [*kubectl, "get", "node", plan.name, line]})


def _ready(host: str, said: Any, asked: AskedWhen) -> Iterator[Finding]:
    if said["out"].strip() != "True":
        found = last_line(said["err"], f"Ready is {said['out'].strip() or 'unknown'}")
        yield Drift(f"Kubernetes' node {host}", "ready", found, by_up=False)


def _people(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask for the accounts of the plan; that one is closed, or has more groups, is somebody's decision."""
    wanted = accounts_of(plan)
    if wanted:
        yield StatusCheck("people", partial(_people_found, wanted), {"names": list(wanted)})


def accounts_of(plan: HostPlan) -> dict[str, HostAccount]:
    """Return the accounts that a host gets, by their names."""
    accounts: dict[str, HostAccount] = {}
    for step in plan.steps.values():
        accounts |= {account.name: account for account in step.accounts}
    return accounts


def _people_found(wanted: Mapping[str, HostAccount], people: Any, asked: AskedWhen) -> Iterator[Finding]:
    for name, account in wanted.items():
        found, what = people.get(name), f"account {name}"
        if found is None:
            yield Drift(what, f"number {account.uid}", "missing")
            continue
        rows = (
            ("number", account.uid, found["uid"]),
            ("group", account.uid, found["gid"]),
            ("shell", account.shell, found["shell"]),
        )
        for field_name, expected, value in rows:
            if value != expected:
                yield Drift(f"{what}: {field_name}", str(expected), str(value))
        for group in found["groups"]:
            yield Foreign("group", f"{group} of {name}")
        if found["last_day"]:
            last_day = date(1970, 1, 1) + timedelta(days=int(found["last_day"]))
            yield Foreign("account that ends", f"{name}, after {last_day.isoformat()}")


def _sudo(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask whether sudo takes its rules: with one that is wrong nobody has any."""
    if "sudo" in plan.packages():
        yield StatusCheck("run", _sudo_found, {"argv": ["/usr/sbin/visudo", "--check", "--quiet"]})


def _sudo_found(said: Any, asked: AskedWhen) -> Iterator[Finding]:
    if said["code"]:
        yield Drift("rules of sudo", "in order", last_line(said["err"] or said["out"], "not in order"), by_up=False)


def _mounts(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask what is mounted where, by the plan's own units."""
    wanted = {}
    for file in plan.files():
        if file.path.endswith(".mount"):
            unit = dict(re.findall(r"^(What|Where|Type|Options)=(.*)$", file.text, re.MULTILINE))
            wanted[unit["Where"]] = unit
    if wanted:
        yield StatusCheck("mounts", partial(_mounts_found, wanted))


def _mounts_found(wanted: Mapping[str, Mapping[str, str]], mounts: Any, asked: AskedWhen) -> Iterator[Finding]:
    for place, unit in wanted.items():
        source, _, options = mounts.get(place, ("nothing", "", ""))
        if source.rstrip("/") != unit["What"].rstrip("/"):
            yield Drift(f"mount {place}", unit["What"], source)
        elif _access(options) != _access(unit.get("Options", "")):
            yield Drift(f"mount {place}", _access(unit.get("Options", "")), _access(options), by_up=False)


def _access(options: str) -> str:
    return "ro" if "ro" in options.split(",") else "rw"


def _certificates(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask for the certificates that the plan gives, and those that a cluster made for itself."""
    patterns = [file.path for file in plan.files() if file.secret.endswith("_certificate")]
    if "kubelet" in plan.services():
        patterns += _CLUSTER_CERTIFICATES
    if patterns:
        yield StatusCheck("certificates", _certificates_found, {"patterns": patterns})


def _certificates_found(ends: Any, asked: AskedWhen) -> Iterator[Finding]:
    for path, end_s in ends.items():
        if end_s is None:
            yield Drift(f"certificate {path}", "a certificate", "none that can be read")
        elif end_s - asked.came_s < RENEWAL_S:
            day = datetime.fromtimestamp(end_s, UTC).date().isoformat()
            word = "ended" if end_s < asked.came_s else "ends"
            yield Drift(f"certificate {path}", "good for 30 days more", f"{word} on {day}", by_up=False)


def _clock(plan: HostPlan) -> Iterator[StatusCheck]:
    yield StatusCheck("clock", _clock_found)


def _clock_found(now_s: Any, asked: AskedWhen) -> Iterator[Finding]:
    """Tell a clock that cannot have been right at any moment between the question and its answer."""
    ahead_s = max(now_s - asked.came_s, 0.0) - max(asked.sent_s - now_s, 0.0)
    if abs(ahead_s) > CLOCK_S:
        found = f"{abs(ahead_s):.0f} s {'ahead' if ahead_s > 0 else 'behind'}"
        yield Drift("clock", f"within {CLOCK_S:.0f} s of this machine's", found, by_up=False)


def _listeners(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask what listens beyond the host: services of the plan where it says, all others are somebody's."""
    yield StatusCheck("listeners", partial(_listeners_found, frozenset(plan.services())))


def _listeners_found(services: frozenset[str], rows: Any, asked: AskedWhen) -> Iterator[Finding]:
    for row in rows:
        service = row["unit"].removesuffix(".service")
        place = f"{row['address']}:{row['port']}"
        if service in services & _ON_LOOPBACK:
            yield Drift(f"service {service} listens", "on the host's loopback alone", f"on {place}", by_up=False)
        elif row["unit"].endswith(".service") and service not in services:
            yield Foreign("port", f"{place} of {row['unit']}")


def _strangers(plan: HostPlan) -> Iterator[StatusCheck]:
    """Ask for what somebody made beside the plan: told, never removed."""
    ours = {file.path for file in plan.files()}
    yield StatusCheck("strangers", partial(_strangers_found, ours | set(accounts_of(plan))))


def _strangers_found(ours: set[str], found: Any, asked: AskedWhen) -> Iterator[Finding]:
    for kind, names in found.items():
        for name in names:
            if name not in ours:
                yield Foreign(kind, name)


def _marks(plan: HostPlan, revisions: Mapping[str, int]) -> StatusCheck:
    """Ask what services were last started with, as the host noted it: others than the plan's need another start."""
    wanted = {f"{MARKS}-{name}.json": step.started_with(revisions) for name, step in plan.steps.items()}
    given = {path: mark for path, mark in wanted.items() if mark}
    return StatusCheck("marks", partial(_marks_found, given), {"paths": list(given)})


def _marks_found(wanted: Mapping[str, Mapping[str, str]], marks: Any, asked: AskedWhen) -> Iterator[Finding]:
    for path, services in wanted.items():
        for service, digest in services.items():
            if marks.get(path, {}).get(service) != digest:
                yield Drift(f"service {service}", "started with its files", "not started again since")


_ROWS: tuple[Callable[[HostPlan], Iterator[StatusCheck]], ...] = (
    _commands,
    _sshd,
    _slurm,
    _kubelet,
    _people,
    _sudo,
    _mounts,
    _certificates,
    _clock,
    _listeners,
    _strangers,
)
