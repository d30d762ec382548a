"""Whether a pod does what it should, by small measurements on its hosts: what is asked, and what the answers mean.

Every check is a line of shell that prints one value, or a word why it cannot; nothing that is there is changed.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.job_hooks import Hooks
from podwright.bringup.plan.slurm import kinds_of
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.bringup.apply.observe import HostAccess
    from podwright.bringup.plan.site import Site
    from podwright.spec import Storage

STATES = ("passed", "failed", "skipped", "measured")
Judge = Callable[[str, str], bool]
_CANNOT = "cannot: "
_UNREACHABLE, _AT_ONCE = 3, 16
_PROBE_MIB = 256


def equal(value: str, expected: str) -> bool:
    """Return whether a value is just what was expected."""
    return value == expected


def at_least(value: str, expected: str) -> bool:
    """Return whether a number is what was expected, or more."""
    return float(value) >= float(expected)


def member(value: str, expected: str) -> bool:
    """Return whether a value is one of several."""
    return value in expected.split("|")


@dataclass(frozen=True)
class CheckResult:
    """What one measurement gave."""

    name: str
    host: str
    state: str
    value: str
    expected: str | None


@dataclass(frozen=True)
class ValidationResult:
    """What all measurements gave."""

    checks: Sequence[CheckResult]

    @property
    def is_ok(self) -> bool:
        """Return whether none failed."""
        return not any(check.state == "failed" for check in self.checks)

    def summary(self) -> str:
        """Return how many checks ended how, in a line."""
        counts = Counter(check.state for check in self.checks)
        return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])

    def as_json(self) -> dict[str, Any]:
        """Return what `pod validate --json` prints."""
        return {"checks": [asdict(check) for check in self.checks]}


@dataclass(frozen=True)
class ValidationCheck:
    """One measurement: where, how, what it should give and how that is judged; without that it is only reported."""

    name: str
    host: str
    line: str
    expected: str | None = None
    judge: Judge = equal

    def result(self, code: int, said: str, error: str) -> CheckResult:
        """Return what the host's answer means."""
        value = said.strip()
        if code:
            value, state = error.strip().rpartition("\n")[2] or f"it ended with {code}", "failed"
        elif value.startswith(_CANNOT):
            value, state = value.removeprefix(_CANNOT), "skipped"
        else:
            state = self._state(value)
        return CheckResult(self.name, self.host, state, value, self.expected)

    def _state(self, value: str) -> str:
        if self.expected is None:
            return "measured"
        try:
            return "passed" if self.judge(value, self.expected) else "failed"
        except ValueError:
            return "failed"


def checks(site: Site) -> Iterator[ValidationCheck]:
    """Yield all checks of a pod: those of its machines, of its storage, of its scheduler."""
    for host in site.addresses:
        yield from _machine(site, host)
        for storage in site.pod.storage:
            if storage.mount:
                yield from _storage(site, host, storage)
    if site.scheduler is not None:
        yield from _slurm(site)


def _machine(site: Site, host: str) -> Iterator[ValidationCheck]:
    model = site.pod.model_of(host)
    if model.gpus:
        count = str(model.gpus.count)
        yield ValidationCheck("GPUs", host, "ls /dev/nvidia[0-9]* 2>/dev/null | wc -l", count)
        ask = "nvidia-smi --query-gpu=name --format=csv,noheader | wc -l"
        yield ValidationCheck("GPUs of the driver", host, _if_there("nvidia-smi", ask), count)
    for nic in model.nics:
        if nic.name:
            path = f"/sys/class/infiniband/{nic.name}/ports/1/rate"
            line = f"cut -d' ' -f1 {shlex.quote(path)} 2>/dev/null || echo '{_CANNOT}there is no {nic.name}'"
            yield ValidationCheck(f"link {nic.name}, Gb/s", host, line, f"{nic.speed_gbps:g}", at_least)


def _if_there(program: str, line: str) -> str:
    return f"if command -v {program} >/dev/null; then {line}; else echo '{_CANNOT}there is no {program}'; fi"


def _storage(site: Site, host: str, storage: Storage) -> Iterator[ValidationCheck]:
    mount = shlex.quote(storage.mount or "")
    yield ValidationCheck(f"{storage.name} is mounted", host, f"findmnt -rno TARGET {mount} | head -n 1", storage.mount)
    probe = shlex.quote(f"{storage.mount}/.podwright-validate-{host}")
    expected = None
    if storage.bandwidth_bytes_s:
        expected = f"{storage.bandwidth_bytes_s / len(site.addresses) / 1e6:.0f}"
    write = f"dd if=/dev/zero of={probe} bs=1M count={_PROBE_MIB} conv=fsync 2>&1"
    seconds = "sed -n 's/.*copied, \\([0-9.e-]*\\) s.*/\\1/p'"
    line = f'took=$({write} | {seconds}); rm -f {probe}; awk "BEGIN {{ print int({_PROBE_MIB} * 1.048576 / $took) }}"'
    yield ValidationCheck(f"{storage.name} is written, MB/s", host, line, expected, at_least)


def _slurm(site: Site) -> Iterator[ValidationCheck]:
    login, hosts = site.roles["login"], sorted(site.compute)
    for host in hosts:
        line = f"sinfo --noheader --nodes={shlex.quote(host)} --format=%T | head -n 1"
        yield ValidationCheck(f"Slurm's state of {host}", login, line, "idle|mixed|allocated|completing", member)
    line = f"srun --immediate=120 --time=5 --nodes={len(hosts)} --chdir=/tmp hostname | sort -u | wc -l"
    yield ValidationCheck("a job on all nodes", login, line, str(len(hosts)))
    assert site.scheduler is not None
    for kind in kinds_of(site.pod, site.scheduler):
        hooks = Hooks(gpus=kind.gpu_count)
        for host in kind.hosts:
            look = f"{hooks.folder}/health.sh look 2>/dev/null"
            line = f'reason=$({look}) && echo well || echo "${{reason:-it cannot be run}}"'
            yield ValidationCheck("health check", host, line, "well")


def measure(site: Site, hosts: Collection[str], access: HostAccess) -> ValidationResult:
    """Make all checks of these hosts, several at once; a host that is not reached has failed."""

    def result(check: ValidationCheck) -> CheckResult:
        try:
            answer = access.shell(site, check.host, check.line)
        except Refusal as refusal:
            return check.result(_UNREACHABLE, "", refusal.problems[0].message)
        return check.result(answer.code, answer.text, answer.err)

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        return ValidationResult(list(threads.map(result, [each for each in checks(site) if each.host in hosts])))
