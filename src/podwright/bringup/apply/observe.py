"""Asks hosts what they have, many at once, over ssh and without changing anything."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from podwright.bringup.apply.checks import checks_of
from podwright.bringup.apply.sent import sent
from podwright.bringup.plan.host import HostPlan
from podwright.clients.reasons import last_line
from podwright.clients.ssh import Answer as SshAnswer
from podwright.clients.ssh import Ssh
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site
    from podwright.spec import Pod

Seen = Mapping[str, Any]
"""What `inspect_host.py` says of a host."""
Answer = Seen | Refusal
_AT_ONCE = 32


@dataclass(frozen=True)
class Question:
    """What hosts are asked beside what they have of their plan."""

    shows: bool = False
    """Whether the contents of files come too, but for those that hold secrets."""
    secrets: Mapping[str, str] | None = None
    """What looks whether things work may be given on standard input; None where only what is there is asked."""


ONLY_WHAT_IS_THERE = Question()


class HostAccess(Protocol):
    """The way to a pod's hosts."""

    def observe(
        self, pod: Pod, plans: Mapping[str, HostPlan], on_answer: Callable[[str], None], asked: Question
    ) -> dict[str, Answer]:
        """Return what each host has of its plan, or why it did not say; `on_answer` is called as each answers."""

    def shell(self, site: Site, host: str, line: str) -> SshAnswer:
        """Run a line of shell on a host as root; return all that it answered."""


class SshHosts:
    """Hosts by ssh, with the user's own keys."""

    def observe(
        self, pod: Pod, plans: Mapping[str, HostPlan], on_answer: Callable[[str], None], asked: Question
    ) -> dict[str, Answer]:
        """Ask all hosts, many at once."""
        answers: dict[str, Answer] = {}
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            waiting = {threads.submit(_ask, pod, plan, asked): name for name, plan in plans.items()}
            for done in as_completed(waiting):
                name = waiting[done]
                answers[name] = done.result()
                on_answer(name)
        return {name: answers[name] for name in plans}

    def shell(self, site: Site, host: str, line: str) -> SshAnswer:
        """Run a line of shell on a host as root."""
        return reach(site.pod, host, site.addresses[host]).call(as_root(site.pod, ["/bin/sh", "-c", line]), b"")


def printed(host: str, answer: SshAnswer) -> str:
    """Return what a line of shell printed, and refuse where it failed."""
    if answer.code:
        raise refuse(f"{host}: {last_line(answer.err, f'it ended with {answer.code}')}", exit_code=3)
    return answer.text


def reach(pod: Pod, host: str, address: str) -> Ssh:
    """Return the way to a host: an ssh configuration knows it by its name, and by which way it is reached."""
    config = pod.bringup.ssh_config
    return Ssh(f"{pod.bringup.user}@{host if config else address}", config)


def as_root(pod: Pod, command: list[str]) -> list[str]:
    return command if pod.bringup.user == "root" else ["sudo", "--non-interactive", *command]


def question(plan: HostPlan, links: Sequence[str] = (), asked: Question = ONLY_WHAT_IS_THERE) -> dict[str, Any]:
    """Return what a host is asked about its whole plan, and about its links."""
    folders: dict[str, None] = {}
    for step in plan.steps.values():
        folders |= dict.fromkeys(folder.path for folder in step.folders)
    shown = [file.path for file in plan.files() if asked.shows and not file.secret]
    secrets = asked.secrets
    checks = [] if secrets is None else checks_of(plan, {})
    return {
        "files": [file.path for file in plan.files()],
        "folders": list(folders),
        "packages": plan.packages(),
        "services": plan.services(),
        "links": list(links),
        "show": shown,
        "questions": [check.question(secrets or {}) for check in checks],
    }


def _ask(pod: Pod, plan: HostPlan, asked: Question) -> Answer:
    command = as_root(pod, ["/usr/bin/python3", "-c", sent("inspect_host.py")])
    sent_s = time.time()
    try:
        links = [nic.name for nic in pod.model_of(plan.name).nics if nic.name]
        words = json.dumps(question(plan, links, asked)).encode()
        answer = reach(pod, plan.name, plan.address).call(command, words)
    except Refusal as refusal:
        return refusal
    if answer.code:
        reason = last_line(answer.err, f"python3 ended with {answer.code}")
        return refuse(
            f"{plan.name}: {reason}", hint=f"`{pod.bringup.user}` must be root there, or may sudo", exit_code=3
        )
    seen: Seen = json.loads(answer.text)
    return {**seen, "asked_s": (sent_s, time.time())}
