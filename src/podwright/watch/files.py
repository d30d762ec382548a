"""All files that watch a pod: Prometheus, Alertmanager, targets, dashboards, and the same for Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from podwright.files.whole import write_whole
from podwright.spec.problems import refuse
from podwright.watch.alerts import alerts_of
from podwright.watch.dashboards import DASHBOARDS, dashboard_json
from podwright.watch.kubernetes import kubernetes_objects
from podwright.watch.logs import fluent_parsers, loki_config, opensearch_config
from podwright.watch.receivers import alertmanager_config
from podwright.watch.recording import recording_rules
from podwright.watch.scrape import RULES_FILE, ScrapeJob, prometheus_config

if TYPE_CHECKING:
    from podwright.spec import Pod

HEAD = "# Written by Podwright.\n"
EVALUATED = "15s"


@dataclass(frozen=True)
class WatchFiles:
    """What `pod watch` writes: texts by their paths, and the names of alerts and dashboards."""

    texts: dict[str, str] = field(default_factory=dict)
    alerts: Sequence[str] = ()
    dashboards: Sequence[str] = ()

    def write(self, folder: Path) -> None:
        """Write all of them, each whole or not at all; a folder with other things in it is refused."""
        if folder.exists() and any(folder.iterdir()) and not (folder / RULES_FILE).exists():
            raise refuse(f"{folder} is there already, and holds other things", hint="name a new folder", field="--out")
        for path, text in self.texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode())

    def as_json(self) -> dict[str, Any]:
        """Return what `pod watch --json` prints."""
        return {"files": list(self.texts), "alerts": list(self.alerts), "dashboards": list(self.dashboards)}


def rule_groups(pod: Pod) -> dict[str, Any]:
    """Return recording rules and alerts, as Prometheus and its operator read them."""
    alerts = [alert.rule(pod.name) for alert in alerts_of(_has_slurm(pod))]
    return {
        "groups": [
            {"name": "podwright-records", "interval": EVALUATED, "rules": list(recording_rules(pod))},
            {"name": "podwright-alerts", "interval": EVALUATED, "rules": alerts},
        ]
    }


def _has_slurm(pod: Pod) -> bool:
    return any(scheduler.kind == "slurm" for scheduler in pod.schedulers)


def watch_files(pod: Pod, jobs: Sequence[ScrapeJob]) -> WatchFiles:
    """Return all files; `jobs` are the exporters there are on hosts."""
    texts = {
        "prometheus.yml": yaml_file(prometheus_config(pod, jobs)),
        RULES_FILE: yaml_file(rule_groups(pod)),
        "alertmanager.yml": yaml_file(alertmanager_config(pod)),
    }
    for job in jobs:
        texts[job.file] = targets_file(job)
    for dashboard in DASHBOARDS:
        texts[f"dashboards/{dashboard.name}.json"] = _json_file(dashboard_json(dashboard, pod))
    texts |= {
        "logs/loki.alloy": loki_config(pod),
        "logs/opensearch.fluent-bit.conf": opensearch_config(pod),
        "logs/parsers.conf": fluent_parsers(),
    }
    texts["kubernetes.yaml"] = HEAD + yaml.safe_dump_all(kubernetes_objects(pod, rule_groups(pod), jobs), **_FORM)
    alerts = [alert.name for alert in alerts_of(_has_slurm(pod))]
    return WatchFiles(texts, alerts, [dashboard.name for dashboard in DASHBOARDS])


_FORM: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 160}


def yaml_file(document: object) -> str:
    """Return a document as a file."""
    text: str = yaml.safe_dump(document, **_FORM)
    return HEAD + text


def targets_file(job: ScrapeJob) -> str:
    """Return the targets of a job, as Prometheus reads them again and again."""
    return _json_file([target.entry() for target in job.targets])


def _json_file(document: object) -> str:
    return json.dumps(document, indent=1) + "\n"
