"""What stopped a host, in words: where, at what, why, and what a person does next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST = 300
# How a reason reads, and what then helps; the first that fits counts.
_NEXT = (
    (r"is held by process", "wait until it has ended, or end it there"),
    (r"\bis left alone:", "have its user move it out of the way"),
    (r"No space left on device|not enough free space", "free space there: `df -h` says where"),
    (r"did not end within|Timeout \(\d+s\) waiting", "look what it waits for: `ps axf`, `journalctl -e`"),
    (r"Host key verification failed", "if it was set up again, forget its old key: `ssh-keygen -R HOST`"),
    (r"Permission denied|a password is required", "its account must be root, or may sudo without a password"),
    (
        r"Failed to connect|Data could not be sent|Connection (timed out|refused|closed)|No route to host",
        "is it on, and does ssh get there?",
    ),
    (r"Unable to (fetch|locate)|Failed to fetch|Could not (connect|resolve)", "does its source of packages answer?"),
    (r"does not run:", "`journalctl -u SERVICE` there has the rest"),
)
# Last lines that say nothing: apt's after those that do, and ssh's of a host behind another, which it cannot name.
_SUMMARY = re.compile(
    r"E: (Some (index )?files failed to download|Unable to fetch some archives)|Connection (to|closed by) UNKNOWN port"
    r"|kex_exchange_identification: Connection closed by remote host"
)
# How Ansible ends where ssh said nothing at all.
_SILENT = re.compile(r"[.:]? *(Make sure this host can be reached over ssh|Failed to connect to the host via ssh): *$")
# How `timeout` ends where it had to stop what it started, and where that did not heed it.
_STOPPED = (124, 137)


@dataclass(frozen=True)
class Fault:
    """What stopped a host: where, at what, and why."""

    host: str
    stage: str
    task: str
    reason: str
    stops: bool = True
    """Whether the host came no further; else a user has something in the way, and all the others got theirs."""

    @property
    def next_step(self) -> str:
        """Return what helps against it."""
        for pattern, step in _NEXT:
            if re.search(pattern, self.reason):
                return step
        return "mend it"


def reason_of(result: Mapping[str, Any]) -> str:
    """Return why a task failed, in its own words: those of the item that failed where it had several."""
    for item in result.get("results", []):
        if item.get("failed") or item.get("unreachable"):
            return reason_of(item)
    late = _lateness(result)
    if late:
        return late
    for key in ("stderr", "module_stderr", "msg", "stdout"):
        lines = [line.strip() for line in str(result.get(key) or "").splitlines() if line.strip()]
        telling = [line for line in lines if not _SUMMARY.match(line)] or lines
        if telling:
            return _SILENT.sub(": no answer", telling[-1])[:_MOST]
    return "no reason was given"


def _lateness(result: Mapping[str, Any]) -> str:
    """Return what took too long: a task by Ansible's own clock, or a program by `timeout` on the host."""
    over = result.get("timedout")
    if over:
        return f"it did not end within {over['period']} s"
    command = result.get("cmd")
    if isinstance(command, list) and command[:1] == ["timeout"] and result.get("rc") in _STOPPED:
        _, _, seconds, *program = command
        return f"{' '.join(program[:2])} did not end within {seconds} s"
    return ""
