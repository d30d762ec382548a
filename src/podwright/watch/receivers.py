"""Who is told of alerts: Alertmanager's configuration, from the receivers of a pod and of its teams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.spec.alerts import MAIL
from podwright.watch.scrape import FOLDER

if TYPE_CHECKING:
    from podwright.spec import Pod
    from podwright.spec.alerts import Receiver

NOBODY = "nobody"
REMEDY, REMEDY_PORT = "remedy", 9836
REMEDY_TOKEN_FILE = f"{FOLDER}/secrets/remedy_hook_token"
"""What Alertmanager shows the unit that remedies, which listens on the same host."""
# One message says what is wrong, since when, and where to look; the command comes with the alert itself.
_TITLE = "{{ .CommonLabels.severity }}: {{ .CommonLabels.alertname }} ({{ len .Alerts }})"
_TEXT = (
    "{{ range .Alerts }}{{ .Annotations.summary }}\n"
    "likely: {{ .Annotations.cause }}\n"
    "look: {{ .Annotations.command }}\n{{ end }}"
)
# What silences what, and by which labels both must be alike: a dead leaf is one alert and not one for each of its
# hosts, and of a host that does not answer nothing else is to be said.
_INHIBITIONS = (
    ("HostDown", ".+", ("host",)),
    ("LeafDown", "Link.+", ("leaf",)),
    ("GpuGone", "Gpu.+", ("host", "gpu")),
    ("LinkDown", "LinkSlow|LinkFlapping|LinkErrors", ("host", "device", "port")),
)


@dataclass(frozen=True)
class Route:
    """One receiver as Alertmanager knows it, and the alerts it gets."""

    name: str
    config: Mapping[str, object]
    matchers: tuple[str, ...] = ()


def secret_names(pod: Pod) -> list[str]:
    """Return the variables that hold what receivers need, each once."""
    names = [receiver.secret for receiver in pod.alerts.receivers]
    if pod.alerts.mail is not None:
        names.append(pod.alerts.mail.secret)
    return list(dict.fromkeys(name for name in names if name is not None))


def bmc_secrets(pod: Pod) -> list[str]:
    """Return the variables that hold what management controllers want of who watches them, each once."""
    groups = (group.bmc for group in pod.nodes)
    return list(dict.fromkeys(bmc.secret for bmc in groups if bmc is not None and bmc.watched))


def secret_file(name: str) -> str:
    """Return the file on the monitoring host in which Alertmanager reads a secret."""
    return f"{FOLDER}/secrets/{name}"


def alertmanager_config(pod: Pod) -> dict[str, Any]:
    """Return the configuration; every alert goes to all receivers that want it, and to nobody where there is none."""
    routes = list(_routes(pod))
    remedies = list(_remedies(pod))
    top: dict[str, Any] = {
        "receiver": NOBODY,
        "group_by": ["alertname", "leaf", "run"],
        "group_wait": "30s",
        "group_interval": "5m",
        "repeat_interval": "12h",
    }
    listed = [{"receiver": route.name, "matchers": list(route.matchers), "continue": True} for route in routes]
    if listed or remedies:
        top["routes"] = [*remedies, *listed]
    config: dict[str, Any] = {
        "route": top,
        "receivers": [
            {"name": NOBODY},
            *({"name": REMEDY, **_remedy_config()} for _ in remedies),
            *({"name": route.name, **route.config} for route in routes),
        ],
        "inhibit_rules": list(_inhibitions()),
    }
    mail = _mail(pod)
    return {"global": mail, **config} if mail else config


def _mail(pod: Pod) -> dict[str, object]:
    mail = pod.alerts.mail
    if mail is None:
        return {}
    settings: dict[str, object] = {"smtp_smarthost": mail.server, "smtp_from": mail.sender}
    if mail.user is not None:
        settings["smtp_auth_username"] = mail.user
    if mail.secret is not None:
        settings["smtp_auth_password_file"] = secret_file(mail.secret)
    return settings


def _inhibitions() -> Iterator[dict[str, object]]:
    for source, target, equal in _INHIBITIONS:
        yield {
            "source_matchers": [f'alertname="{source}"'],
            "target_matchers": [f'alertname=~"{target}"', f'alertname!="{source}"'],
            "equal": list(equal),
        }


def _routes(pod: Pod) -> Iterator[Route]:
    for index, receiver in enumerate(pod.alerts.receivers, 1):
        config = _CONFIGS[receiver.kind](receiver)
        yield Route(f"{receiver.kind}-{index}", config, _matchers(receiver.severity, receiver.team))
    for team in pod.teams:
        for index, to in enumerate(team.alerts, 1):
            config = _mail_config(to) if MAIL.fullmatch(to) else _webhook_config(to, None)
            yield Route(f"team-{team.name}-{index}", config, _matchers("warning", team.name))


def _remedies(pod: Pod) -> Iterator[dict[str, object]]:
    """Yield the route to what acts on alerts: told at once, and again, since it forgets what is old."""
    if pod.remediation is not None:
        yield {
            "receiver": REMEDY,
            "matchers": [f'remedy=~"{"|".join(pod.remediation.drain)}"'],
            "group_by": ["host"],
            "group_wait": "5s",
            "group_interval": "30s",
            "repeat_interval": "5m",
            "continue": True,
        }


def _remedy_config() -> dict[str, object]:
    known = {"authorization": {"credentials_file": REMEDY_TOKEN_FILE}}
    hook = {"url": f"http://127.0.0.1:{REMEDY_PORT}/", "send_resolved": True, "http_config": known}
    return {"webhook_configs": [hook]}


def _matchers(severity: str, team: str | None) -> tuple[str, ...]:
    """Return what an alert must be like: as grave at least, and about the team where one is named."""
    matchers = [f'team="{team}"'] if team is not None else []
    if severity == "critical":
        matchers.append('severity="critical"')
    return tuple(matchers)


def _mail_config(to: str) -> dict[str, object]:
    subject = {"Subject": _TITLE}
    return {"email_configs": [{"to": to, "send_resolved": True, "headers": subject, "text": _TEXT}]}


def _slack_config(receiver: Receiver) -> dict[str, object]:
    config: dict[str, object] = {
        "api_url_file": secret_file(str(receiver.secret)),
        "send_resolved": True,
        "title": _TITLE,
        "text": _TEXT,
    }
    if receiver.to is not None:
        config["channel"] = receiver.to
    return {"slack_configs": [config]}


def _pagerduty_config(receiver: Receiver) -> dict[str, object]:
    config = {
        "routing_key_file": secret_file(str(receiver.secret)),
        "description": _TITLE,
        "severity": "{{ .CommonLabels.severity }}",
        "details": {"look": "{{ .CommonAnnotations.command }}", "likely": "{{ .CommonAnnotations.cause }}"},
    }
    return {"pagerduty_configs": [config]}


def _webhook_config(url: str, secret: str | None) -> dict[str, object]:
    config: dict[str, object] = {"url": url, "send_resolved": True}
    if secret is not None:
        config["http_config"] = {"authorization": {"credentials_file": secret_file(secret)}}
    return {"webhook_configs": [config]}


_CONFIGS: dict[str, Callable[[Receiver], dict[str, object]]] = {
    "mail": lambda receiver: _mail_config(str(receiver.to)),
    "slack": _slack_config,
    "pagerduty": _pagerduty_config,
    "webhook": lambda receiver: _webhook_config(str(receiver.to), receiver.secret),
}
