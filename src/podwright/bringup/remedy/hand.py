"""The hand of a host: does there the few things that the unit may want, and nothing else.

It is told over TLS by who has the pod's token. A line of a scheduler is taken apart and compared with a list: no shell
ever sees it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from podwright.clients.reasons import last_line
from podwright.spec.problems import refuse

HEALTH = "/etc/slurm/podwright/health.sh"
BOOT = "/proc/sys/kernel/random/boot_id"
ADMIN = "/etc/kubernetes/admin.conf"
# What has GPUs open without any job: it lets go before a reset, and what ran comes back after it.
HOLDERS = ("podwright-exporter", "nvidia-dcgm-exporter", "dcgm-exporter", "nvidia-dcgm", "nvidia-persistenced")
_NODES = r"[A-Za-z0-9_.,\[\]-]+"
_TIMEOUT_S = 3500.0
# Each command that may be asked for, and what each of its words must be; `*`: the last may be given again and again.
_LINES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "slurm": (
        ("sinfo", "--noheader", "--Node", f"--nodes={_NODES}", r"--format=[%|A-Z ]+"),
        ("squeue", "--noheader", f"--nodelist={_NODES}", r"--states=[A-Z,]+", r"--format=[%|A-Za-z]+"),
        ("scontrol", "update", f"NodeName={_NODES}", "State=RESUME"),
        ("scontrol", "update", f"NodeName={_NODES}", "State=DRAIN", r"Reason=podwright: [^\r\n]{1,300}"),
    ),
    "kubernetes": (
        ("kubectl", "get", "nodes", "--no-headers", r"--output=custom-columns=[^ ]+", _NODES, "*"),
        ("kubectl", "get", "pods", "--all-namespaces", "--no-headers", r"--field-selector=[^ ]+", r"--output=[^ ]+"),
        ("kubectl", "annotate", "--overwrite", "node", rf"{_NODES}|podwright\.dev/[a-z-]+=[a-z0-9-]+", "*"),
        ("kubectl", "annotate", "node", rf"{_NODES}|podwright\.dev/[a-z-]+-", "*"),
        ("kubectl", "(un)?cordon", _NODES, "*"),
        ("kubectl", "drain", "--ignore-daemonsets", "--delete-emptydir-data", r"--timeout=\d+s", _NODES, "*"),
    ),
}
Run = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and keep what it says."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )


def allowed(line: str, kinds: Sequence[str]) -> list[str] | None:
    """Return the words of a line that is on the list; None for any other."""
    try:
        words = shlex.split(line.removeprefix(f"export KUBECONFIG={ADMIN}; "))
    except ValueError:
        return None
    forms = chain.from_iterable(_LINES.get(kind, ()) for kind in kinds)
    return words if any(_fits(words, form) for form in forms) else None


def _fits(words: Sequence[str], form: Sequence[str]) -> bool:
    fixed = [word for word in form if word != "*"]
    if len(words) < len(fixed) or (len(words) > len(fixed) and form[-1] != "*"):
        return False
    forms = [*fixed, *[fixed[-1]] * (len(words) - len(fixed))]
    return all(re.fullmatch(each, word) for each, word in zip(forms, words, strict=True))


@dataclass(frozen=True)
class RemedyHand:
    """One host's hand; `commands`: the schedulers whose commands are here."""

    commands: tuple[str, ...] = ()
    run: Run = run
    health: str = HEALTH
    boot: str = BOOT

    def __call__(self, message: Any) -> Mapping[str, Any]:
        """Do what a message asks for; a Refusal says why not."""
        verb = message.get("verb") if isinstance(message, dict) else None
        doing = _VERBS.get(verb) if isinstance(verb, str) else None
        if doing is None:
            raise refuse("that is nothing a hand does")
        return doing(self, message)

    def line(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a scheduler's command."""
        words = allowed(str(message.get("line", "")), self.commands)
        if words is None:
            raise refuse("that is no command a hand runs")
        if words[0] == "kubectl":
            words[1:1] = [f"--kubeconfig={ADMIN}"]
        return {"said": self._must(words)}

    def reset(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Reset all GPUs of this host, which nothing may hold meanwhile; what held them comes back in any case."""
        if shutil.which("nvidia-smi") is None:
            raise refuse("there is no nvidia-smi to reset GPUs with")
        active = [unit for unit in HOLDERS if self.run(["systemctl", "is-active", "--quiet", unit]).returncode == 0]
        if active:
            self._must(["systemctl", "stop", *active])
        try:
            return {"said": self._must(["nvidia-smi", "--gpu-reset"]).strip()}
        finally:
            if active:
                self.run(["systemctl", "start", *reversed(active)])

    def reboot(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Start this host anew, when the answer is on its way."""
        self._must(["systemd-run", "--on-active=2", "systemctl", "reboot"])
        return {}

    def booted(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return which start of the host this is."""
        return {"boot": Path(self.boot).read_text().strip()}

    def check(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return why this host should get no jobs; empty where it may, or where no health check is."""
        if not Path(self.health).exists():
            return {"reason": ""}
        done = self.run([self.health, "look"])
        return {"reason": "" if done.returncode == 0 else done.stdout.strip() or f"it ended with {done.returncode}"}

    def _must(self, command: Sequence[str]) -> str:
        try:
            done = self.run(command)
        except (OSError, subprocess.SubprocessError) as error:
            raise refuse(f"{command[0]}: {error}") from None
        if done.returncode:
            raise refuse(f"{command[0]}: {last_line(done.stderr, f'it ended with {done.returncode}')}")
        return done.stdout


_VERBS: Mapping[str, Callable[[RemedyHand, Mapping[str, Any]], Mapping[str, Any]]] = {
    "line": RemedyHand.line,
    "reset": RemedyHand.reset,
    "reboot": RemedyHand.reboot,
    "boot": RemedyHand.booted,
    "check": RemedyHand.check,
}
