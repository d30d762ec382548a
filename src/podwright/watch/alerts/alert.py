"""One alert, and the words that many of them share."""

from __future__ import annotations

from dataclasses import dataclass

CRITICAL, WARNING = "critical", "warning"
GPU = "GPU {{ $labels.gpu }} of {{ $labels.host }}"
LINK = "{{ $labels.device }}/{{ $labels.port }} of {{ $labels.host }}"
RUN = "{{ $labels.run }}"
LOOK_GPU = "ssh {{ $labels.host }} nvidia-smi -q -i {{ $labels.gpu }}"
LOOK_LINK = "ssh {{ $labels.host }} ibstat {{ $labels.device }}"
LOOK_RUN = "podwright show {{ $labels.run }}"


@dataclass(frozen=True)
class Alert:
    """One alert.

    `remedy` says of what kind it is where its node should not get further runs: xid, remap or link; `cure` what may
    help when nothing runs there any more: reset, reboot, service; without it the node waits until the alert is over.
    """

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    cause: str
    command: str
    remedy: str = ""
    cure: str = ""

    def rule(self, pod: str) -> dict[str, object]:
        """Return it as Prometheus reads it."""
        labels = {"severity": self.severity}
        if self.remedy:
            labels |= {"remedy": self.remedy, "cure": self.cure or "wait"}
        notes = {"summary": self.summary, "cause": self.cause, "command": self.command.replace("POD", pod)}
        rule: dict[str, object] = {"alert": self.name, "expr": self.expression}
        if self.lasting:
            rule["for"] = self.lasting
        return rule | {"labels": labels, "annotations": notes}
