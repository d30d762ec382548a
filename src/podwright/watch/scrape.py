"""What Prometheus reads, and from whom: its configuration, and a file of targets for each kind of exporter.

Targets are files of their own, which Prometheus reads again when they change: a host that comes or goes restarts
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podwright.spec import Pod

FOLDER = "/etc/prometheus"
"""Where hosts have all of it; paths in the configuration are below its own folder, wherever that lies."""
RULES_FILE = "rules.yml"
ALERTMANAGER = "127.0.0.1:9093"
TOKEN_FILE = "secrets/scrape_token"
AUTHORITY_FILE = "ca.crt"
INTERVAL = "15s"


@dataclass(frozen=True)
class Target:
    """An exporter on a host."""

    host: str
    address: str
    port: int

    def entry(self) -> dict[str, object]:
        """Return it as a file of targets has it."""
        return {"targets": [f"{self.address}:{self.port}"], "labels": {"host": self.host}}


@dataclass(frozen=True)
class ScrapeJob:
    """Exporters of one kind.

    `is_guarded`: they speak TLS and want the scraper's token; `tells_of_others`: one page is about many hosts.
    """

    name: str
    targets: Sequence[Target]
    is_guarded: bool = False
    tells_of_others: bool = False

    @property
    def file(self) -> str:
        """Return the file of its targets, in Prometheus' folder."""
        return f"targets/{self.name}.json"


def exporters_name(pod: Pod) -> str:
    """Return the name under which all exporters of a pod serve: one certificate is for all of them."""
    return f"exporters.{pod.name}"


def prometheus_config(pod: Pod, jobs: Sequence[ScrapeJob]) -> dict[str, Any]:
    """Return Prometheus' configuration."""
    return {
        "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL, "external_labels": {"pod": pod.name}},
        "rule_files": [RULES_FILE],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [ALERTMANAGER]}]}]},
        "scrape_configs": [_scrape(pod, job) for job in jobs],
    }


def _scrape(pod: Pod, job: ScrapeJob) -> dict[str, Any]:
    rows: dict[str, Any] = {"job_name": job.name, "file_sd_configs": [{"files": [job.file]}]}
    if job.tells_of_others:
        rows["honor_labels"] = True
    if job.is_guarded:
        rows |= {
            "scheme": "https",
            "authorization": {"credentials_file": TOKEN_FILE},
            "tls_config": {"ca_file": AUTHORITY_FILE, "server_name": exporters_name(pod)},
            # The exporter says which host its series are of; what it does not say of itself, `up`, the target adds.
            "honor_labels": True,
        }
        teams = list(_teams(pod))
        if teams:
            rows["metric_relabel_configs"] = teams
    return rows


def _teams(pod: Pod) -> Iterator[dict[str, object]]:
    """Yield what gives series of a user the team's name: exporters know users, and the pod's file knows teams."""
    for team in pod.teams:
        if team.members:
            users = "|".join(map(re.escape, team.members))
            yield {"source_labels": ["user"], "regex": users, "target_label": "team", "replacement": team.name}
