"""What fires now, as a pod's Prometheus says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from podwright.spec.problems import refuse

# Asked on the monitoring host itself: Prometheus listens there alone. Every host of a pod has Python.
QUESTION = (
    "/usr/bin/python3 -c 'import urllib.request as u; "
    'print(u.urlopen("http://127.0.0.1:9090/api/v1/alerts", timeout=20).read().decode())\''
)
_GRAVITY = ("critical", "warning")


@dataclass(frozen=True)
class FiringAlert:
    """One alert that fires."""

    name: str
    severity: str
    since: str
    host: str | None
    run: str | None
    reason: str
    cause: str
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return what `alerts --json` prints of it."""
        return asdict(self)


@dataclass(frozen=True)
class AlertsResult:
    """All that fires, the gravest first."""

    pod: str
    alerts: Sequence[FiringAlert] = field(default=())

    @property
    def is_critical(self) -> bool:
        """Return whether any of it must not wait."""
        return any(alert.severity == "critical" for alert in self.alerts)

    def as_json(self) -> list[dict[str, Any]]:
        """Return what `alerts --json` prints."""
        return [alert.as_json() for alert in self.alerts]


def firing(pod: str, text: str) -> AlertsResult:
    """Return what fires, from Prometheus' answer; one that waits for its `for:` does not yet."""
    try:
        listed = json.loads(text)["data"]["alerts"]
        found = [_alert(each) for each in listed if each["state"] == "firing"]
    except (ValueError, KeyError, TypeError):
        raise refuse(f"{pod}: its Prometheus answers what is no list of alerts", exit_code=3) from None
    order = {severity: place for place, severity in enumerate(_GRAVITY)}
    return AlertsResult(pod, sorted(found, key=lambda each: (order.get(each.severity, len(order)), each.since)))


def _alert(entry: dict[str, Any]) -> FiringAlert:
    labels, notes = entry["labels"], entry["annotations"]
    return FiringAlert(
        name=labels["alertname"],
        severity=labels.get("severity", ""),
        # Prometheus tells nanoseconds, which nobody wants to read.
        since=str(entry["activeAt"]).partition(".")[0].rstrip("Z") + "Z",
        host=labels.get("host"),
        run=labels.get("run") or None,
        reason=notes.get("summary", ""),
        cause=notes.get("cause", ""),
        command=notes.get("command", ""),
    )
