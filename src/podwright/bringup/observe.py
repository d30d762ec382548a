"""Asks hosts what they have, many at once, over ssh and without changing anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from podwright.bringup.host import HostPlan
from podwright.clients.reasons import last_line
from podwright.clients.ssh import Ssh
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod

Seen = Mapping[str, Any]
"""What `look.py` says of a host."""
Answer = Seen | Refusal
_AT_ONCE = 32


def observe(
    pod: Pod, plans: Mapping[str, HostPlan], on_answer: Callable[[str], None], show: bool = False
) -> dict[str, Answer]:
    """Return what each host has of its plan, or why it could not be asked; `on_answer` is called as each answers.

    With `show` the contents of files come too, but for those that hold secrets.
    """
    answers: dict[str, Answer] = {}
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        waiting = {threads.submit(_ask, pod, plan, show): name for name, plan in plans.items()}
        for done in as_completed(waiting):
            name = waiting[done]
            answers[name] = done.result()
            on_answer(name)
    return {name: answers[name] for name in plans}


def question(plan: HostPlan, show: bool = False) -> dict[str, Any]:
    """Return what a host is asked about its whole plan."""
    folders: dict[str, None] = {}
    for step in plan.steps.values():
        folders |= dict.fromkeys(folder.path for folder in step.folders)
    shown = [file.path for file in plan.files() if show and not file.secret]
    return {
        "files": [file.path for file in plan.files()],
        "folders": list(folders),
        "packages": plan.packages(),
        "services": plan.services(),
        "show": shown,
    }


def _ask(pod: Pod, plan: HostPlan, show: bool) -> Answer:
    config, user = pod.bringup.ssh_config, pod.bringup.user
    place = plan.name if config else plan.address
    program = (files("podwright.bringup") / "look.py").read_text()
    command = ["/usr/bin/python3", "-c", program]
    if user != "root":
        command = ["sudo", "--non-interactive", *command]
    try:
        answer = Ssh(f"{user}@{place}", config).call(command, json.dumps(question(plan, show)).encode())
    except Refusal as refusal:
        return refusal
    if answer.code:
        reason = last_line(answer.err, f"python3 ended with {answer.code}")
        return refuse(f"{plan.name}: {reason}", hint=f"`{user}` must be root there, or may sudo", exit_code=3)
    seen: Seen = json.loads(answer.text)
    return seen
