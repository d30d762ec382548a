"""Who hears of alerts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.nearest import one_of
from podwright.spec.problems import short
from podwright.spec.types import EnvName, Line, Name, Strict, Text, pattern

MAIL = re.compile(r"[^@\s,<>\"]+@[^@\s,<>\"]+", re.ASCII)
# A URL with a password in it would stand in a file that everybody reads.
URL = re.compile(r"https?://[^\s\"@]+", re.ASCII)

Severity = Literal["critical", "warning"]
ReceiverKind = Literal["mail", "slack", "pagerduty", "webhook"]
MailServer = Annotated[
    Line, pattern(r"[A-Za-z0-9.-]+:\d+", '"{}" is not a server and its port', "write it like `smtp.site.example:587`")
]
MailAddress = Annotated[Line, pattern(MAIL.pattern, '"{}" is not a mail address', "write it like `pods@site.example`")]


class Receiver(Strict):
    """One place that alerts are sent to."""

    kind: ReceiverKind = Field(description="mail, slack, pagerduty or webhook")
    to: Text | None = Field(
        default=None, description="a mail address, a channel of Slack, or the URL of a webhook; PagerDuty needs none"
    )
    secret: EnvName | None = Field(
        default=None,
        description="the variable of whoever gives `pod up` that holds Slack's URL, PagerDuty's routing key, "
        "or what a webhook wants as a bearer token; the pod's vault keeps it from then on",
    )
    severity: Severity = Field(default="warning", description="the least grave alerts it hears of: warning or critical")
    team: Name | None = Field(default=None, description="only alerts about runs of this team; left out: all alerts")


class Mail(Strict):
    """The server that mails go through."""

    server: MailServer = Field(description="its name and port, such as smtp.site.example:587")
    sender: MailAddress = Field(alias="from", description="the address mails come from")
    user: Line | None = Field(default=None, description="who logs in there; left out: nobody does")
    secret: EnvName | None = Field(
        default=None, description="the variable of whoever gives `pod up` that holds the user's password"
    )


class Alerts(Strict):
    """Who hears of alerts."""

    receivers: tuple[Receiver, ...] = Field(default=(), description="where alerts are sent to")
    mail: Mail | None = Field(default=None, description="the server that mails go through")


def alerts(tree: dict[str, Any]) -> Iterator[Finding]:
    """Check that each receiver says what its kind needs, and that mails have a server."""
    section = tree.get("alerts")
    section = section if isinstance(section, dict) else {}
    given = section.get("receivers")
    listed = enumerate(given) if isinstance(given, list) else ()
    entries = [(index, entry) for index, entry in listed if isinstance(entry, dict)]
    teams = [str(team.get("name")) for team in _dicts(tree.get("teams"))]
    for index, entry in entries:
        path = ("alerts", "receivers", index)
        yield from _of_kind(path, entry)
        team = entry.get("team")
        if isinstance(team, str) and team not in teams:
            yield Finding((*path, "team"), f'"{short(team)}" is not a team of the pod', one_of(team, "team", teams))
    yield from _of_teams(tree)
    if "mail" not in section and _mails(tree, entries):
        hint = "write `alerts: {mail: {server: smtp.site.example:587, from: pods@site.example}}`"
        yield Finding(("alerts", "mail"), "is missing: mails need a server", hint)


# What each kind needs: the field, what is like it, and what to write.
_NEEDED: dict[str, tuple[tuple[str, re.Pattern[str], str], ...]] = {
    "mail": (("to", MAIL, "write an address, such as `ops@site.example`"),),
    "slack": (("secret", re.compile(".+"), "name the variable that holds the URL that Slack gave for its webhook"),),
    "pagerduty": (("secret", re.compile(".+"), "name the variable that holds the routing key"),),
    "webhook": (("to", URL, "write its URL, such as `https://alerts.site.example/podwright`"),),
}


def _of_kind(path: tuple[str | int, ...], entry: dict[str, Any]) -> Iterator[Finding]:
    kind = entry.get("kind")
    for field, allowed, hint in _NEEDED.get(kind, ()) if isinstance(kind, str) else ():
        value = entry.get(field)
        if value is None:
            yield Finding((*path, field), f"is missing: {kind} needs it", hint)
        elif isinstance(value, str) and not allowed.fullmatch(value):
            yield Finding((*path, field), f'"{short(value)}" is nothing that {kind} can send to', hint)


def _of_teams(tree: dict[str, Any]) -> Iterator[Finding]:
    for index, team in enumerate(_dicts(tree.get("teams"))):
        for place, to in enumerate(_texts(team.get("alerts"))):
            if not MAIL.fullmatch(to) and not URL.fullmatch(to):
                hint = "a mail address or the URL of a webhook; for others write a receiver with `team:` into `alerts`"
                yield Finding(("teams", index, "alerts", place), f'"{short(to)}" is no receiver', hint)


def _mails(tree: dict[str, Any], receivers: list[tuple[int, dict[str, Any]]]) -> bool:
    """Return whether anything is to be sent by mail."""
    kinds = {entry.get("kind") for _, entry in receivers if isinstance(entry.get("kind"), str)}
    of_teams = (_texts(team.get("alerts")) for team in _dicts(tree.get("teams")))
    return "mail" in kinds or any(map(MAIL.fullmatch, chain.from_iterable(of_teams)))


def _dicts(value: object) -> list[dict[str, Any]]:
    """Return the entries of a list, those that are no mappings as empty ones: their own check finds them."""
    return [entry if isinstance(entry, dict) else {} for entry in value] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    """Return the entries of a list of texts as texts."""
    return list(map(str, value)) if isinstance(value, list) else []
