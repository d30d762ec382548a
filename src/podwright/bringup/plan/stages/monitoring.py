"""Monitoring: an exporter on every host, one for Slurm, and Prometheus with first rules and Alertmanager."""

from __future__ import annotations

import json
from importlib.resources import files

from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.template import unit_of

NODE_PORT, SLURM_PORT = 9100, 9341
_HEAD = "# Written by `podwright pod up`.\n"
_FOLDER = "/etc/prometheus"
_PROGRAM = "/usr/lib/podwright/slurm_exporter.py"
_SLURM_EXPORTER = "podwright-slurm-exporter"
_LISTEN = "--web.listen-address"
_DISK = 'node_filesystem_avail_bytes{fstype!~"tmpfs|ramfs"} / node_filesystem_size_bytes < 0.05'
# Name, what is looked at, for how long, how grave, and what a person reads.
_ALERTS = (
    ("HostDown", 'up{job="node"} == 0', "2m", "critical", "{{ $labels.host }} does not answer"),
    ("DiskFull", _DISK, "10m", "warning", "{{ $labels.mountpoint }} of {{ $labels.host }} is full"),
    ("SlurmDown", "slurm_up == 0", "2m", "critical", "Slurm's controller does not answer"),
    ("NodesDown", 'slurm_nodes{state=~"down|fail.*"} > 0', "5m", "warning", "{{ $value }} nodes are down in Slurm"),
    ("NodesDrained", 'slurm_nodes{state=~"drain.*"} > 0', "1h", "warning", "{{ $value }} nodes are drained in Slurm"),
)
# Who is told is the site's affair; until then alerts are seen here and go nowhere.
_ALERTMANAGER = f"""\
{_HEAD}route: {{receiver: nobody, group_by: [alertname], group_wait: 30s, group_interval: 5m, repeat_interval: 12h}}
receivers: [{{name: nobody}}]
"""


def exporters(site: Site, host: str) -> Step | None:
    """Return the exporter of a host, on the pod's network alone; on the controller also that of Slurm."""
    if not site.has("monitoring"):
        return None
    node = "prometheus-node-exporter"
    address = site.addresses[host]
    step = Step(
        packages=(node,),
        files=(_defaults(node, f"{_LISTEN}={address}:{NODE_PORT}"),),
        services=(node,),
    )
    if site.scheduler is None or not site.is_on("controller", host):
        return step
    program = (files("podwright.telemetry") / "slurm_exporter.py").read_text()
    own = (
        HostFile(_PROGRAM, program, "0755", restarts=(_SLURM_EXPORTER,)),
        unit_of(_SLURM_EXPORTER, program=_PROGRAM, address=address, port=SLURM_PORT),
    )
    return Step(
        packages=(*step.packages, "python3"),
        folders=(HostFolder("/usr/lib/podwright"),),
        files=(*step.files, *own),
        services=(*step.services, _SLURM_EXPORTER),
    )


def server(site: Site, host: str) -> Step | None:
    """Return Prometheus and Alertmanager; they listen on the loopback of their host, and people come through ssh."""
    if not site.has("monitoring") or not site.is_on("monitoring", host):
        return None
    prometheus, alertmanager = "prometheus", "prometheus-alertmanager"
    kept = "--storage.tsdb.retention.time=30d"
    return Step(
        packages=(prometheus, alertmanager),
        files=(
            _config("podwright-rules.yml", rules(), "promtool check rules %s", prometheus),
            _config("prometheus.yml", prometheus_config(site), "promtool check config %s", prometheus),
            _config("alertmanager.yml", _ALERTMANAGER, "amtool check-config %s", alertmanager),
            _defaults(prometheus, f"{_LISTEN}=127.0.0.1:9090 {kept}"),
            _defaults(alertmanager, f"{_LISTEN}=127.0.0.1:9093 --cluster.listen-address="),
        ),
        services=(prometheus, alertmanager),
    )


def _config(name: str, text: str, check: str, service: str) -> HostFile:
    return HostFile(f"{_FOLDER}/{name}", text, check=check, restarts=(service,))


def _defaults(service: str, arguments: str) -> HostFile:
    return HostFile(f"/etc/default/{service}", f'{_HEAD}ARGS="{arguments}"\n', restarts=(service,))


def prometheus_config(site: Site) -> str:
    """Return Prometheus' configuration: every host by its name, under the address where its exporter is."""
    nodes = [_target(site, host, NODE_PORT) for host in site.addresses]
    jobs = [{"job_name": "node", "static_configs": nodes}]
    if site.scheduler is not None:
        jobs.append({"job_name": "slurm", "static_configs": [_target(site, site.roles["controller"], SLURM_PORT)]})
    managers = [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]
    rows = {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s", "external_labels": {"pod": site.name}},
        "rule_files": [f"{_FOLDER}/podwright-rules.yml"],
        "alerting": {"alertmanagers": managers},
        "scrape_configs": jobs,
    }
    # JSON is YAML too, and a section a line is still to be read.
    return _HEAD + "".join(f"{name}: {json.dumps(value)}\n" for name, value in rows.items())


def _target(site: Site, host: str, port: int) -> dict[str, object]:
    return {"targets": [f"{site.addresses[host]}:{port}"], "labels": {"host": host}}


def rules() -> str:
    """Return the first rules: what always means that somebody should look."""
    rows = []
    for name, expression, lasting, severity, summary in _ALERTS:
        labels, notes = {"severity": severity}, {"summary": summary}
        rows.append({"alert": name, "expr": expression, "for": lasting, "labels": labels, "annotations": notes})
    lines = "".join(f"      - {json.dumps(row)}\n" for row in rows)
    return f"{_HEAD}groups:\n  - name: podwright\n    rules:\n{lines}"
