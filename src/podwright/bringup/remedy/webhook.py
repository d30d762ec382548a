"""What Alertmanager sends: which alerts of which hosts began or are over. Pure; what is not understood is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podwright.bringup.remedy.policy import CURES, RemedyAlert

_MAX_TEXT = 200


@dataclass(frozen=True)
class RemedyNews:
    """One alert of one host, and whether it fires."""

    host: str
    alert: RemedyAlert
    fires: bool


def news_of(message: Any) -> Iterator[RemedyNews]:
    """Yield the alerts of a message that ask for a remedy."""
    listed = message.get("alerts") if isinstance(message, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        news = _news(entry) if isinstance(entry, dict) else None
        if news is not None:
            yield news


def _news(entry: dict[str, Any]) -> RemedyNews | None:
    labels, key, status = entry.get("labels"), entry.get("fingerprint"), entry.get("status")
    if not isinstance(labels, dict) or not isinstance(key, str) or status not in ("firing", "resolved"):
        return None
    host, remedy = labels.get("host"), labels.get("remedy")
    if not isinstance(host, str) or not isinstance(remedy, str):
        return None
    # An alert of somebody else's rules says nothing of cures: its node is drained, and waits until it is over.
    cure = next((known for known in CURES if known == labels.get("cure")), CURES[0])
    return RemedyNews(host, RemedyAlert(key, remedy, cure, _text(entry, labels)), status == "firing")


def _text(entry: dict[str, Any], labels: dict[str, Any]) -> str:
    """Return what is wrong in a line that Slurm takes for a reason: no quotes in it, no control characters."""
    notes = entry.get("annotations")
    said = notes.get("summary") if isinstance(notes, dict) else None
    words = str(said or labels.get("alertname", "an alert"))
    return "".join(letter for letter in words if letter.isprintable() and letter not in "'\"`\\$")[:_MAX_TEXT]
