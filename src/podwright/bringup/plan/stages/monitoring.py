"""Monitoring: exporters on every host, one for Slurm, and Prometheus with the pod's rules and Alertmanager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from podwright import telemetry
from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site, given_name
from podwright.bringup.plan.stages.controllers import controllers_job
from podwright.bringup.plan.template import unit_of
from podwright.telemetry.exporter.expected import EXPECTED_FILE
from podwright.watch import (
    ScrapeJob,
    Target,
    alertmanager_config,
    prometheus_config,
    rule_groups,
    secret_file,
    secret_names,
    targets_file,
    yaml_file,
)
from podwright.watch.expected import expected_ports
from podwright.watch.scrape import AUTHORITY_FILE, RULES_FILE, TOKEN_FILE
from podwright.watch.scrape import FOLDER as _FOLDER

NODE_PORT, SLURM_PORT, GPU_PORT = 9100, 9341, 9835
_HEAD = "# Written by `podwright pod up`.\n"
_PROGRAM = "/usr/lib/podwright/exporters.py"
_SLURM_EXPORTER, _GPU_EXPORTER = "podwright-slurm-exporter", "podwright-exporter"
_KEYS = "/etc/podwright"
_LISTEN = "--web.listen-address"


class _OwnExporter(NamedTuple):
    """One of ours: its service, the group that may read its key, and where it is asked."""

    service: str
    group: str
    place: str
    gpus: int = 0

    @property
    def folder(self) -> str:
        """Return where its certificate, its key and its reader's token lie."""
        return f"{_KEYS}/{self.service}"

    def files(self) -> Iterator[HostFile]:
        """Yield all that it reads."""
        restarts = (self.service,)
        yield HostFile(f"{self.folder}/exporters.crt", secret="exporters_certificate", restarts=restarts)
        for name, secret in (("exporters.key", "exporters_key"), ("scrape.token", "scrape_token")):
            yield HostFile(f"{self.folder}/{name}", "", "0640", "root", self.group, secret, restarts=restarts)
        expected = f" --gpus {self.gpus}" if self.gpus else ""
        # Hosts that are alike have the same unit: where each listens stands apart.
        yield _defaults(self.service, f"--listen={self.place}{expected}")
        yield unit_of(self.service, program=_PROGRAM, folder=self.folder)


def exporters(site: Site, host: str) -> Step | None:
    """Return the exporters of a host, on the pod's network alone: ours by TLS, and to who has the token."""
    if not site.has("monitoring"):
        return None
    node = "prometheus-node-exporter"
    step = Step(
        packages=(node,),
        files=(_defaults(node, f"{_LISTEN}={site.addresses[host]}:{NODE_PORT}"),),
        services=(node,),
    )
    own = tuple(_own_exporters(site, host))
    if not own:
        return step
    services = tuple(exporter.service for exporter in own)
    files = [*step.files, HostFile(_PROGRAM, telemetry.host_program(), "0755", restarts=services)]
    for exporter in own:
        files += exporter.files()
    ports = site.remember("expected_ports", lambda site: expected_ports(site.pod)).get(host)
    if ports and own[0].service == _GPU_EXPORTER:
        files.append(HostFile(EXPECTED_FILE, json.dumps({"ports": ports}, indent=1) + "\n"))
    folders = (exporter.folder for exporter in own)
    return Step(
        packages=(*step.packages, "python3"),
        folders=(HostFolder("/usr/lib/podwright"), HostFolder(_KEYS), *map(HostFolder, folders)),
        files=tuple(files),
        services=(*step.services, *services),
    )


def _own_exporters(site: Site, host: str) -> Iterator[_OwnExporter]:
    address = site.addresses[host]
    if _tells_of_gpus(site, host):
        gpus = site.pod.model_of(host).gpus
        yield _OwnExporter(_GPU_EXPORTER, "root", f"{address}:{GPU_PORT}", gpus.count if gpus else 0)
    if site.scheduler is not None and site.is_on("controller", host):
        yield _OwnExporter(_SLURM_EXPORTER, "slurm", f"{address}:{SLURM_PORT}")


def _tells_of_gpus(site: Site, host: str) -> bool:
    return host in site.compute or host in site.kubernetes_hosts or site.pod.model_of(host).gpus is not None


def keys(site: Site, host: str) -> Step | None:
    """Return what Prometheus shows exporters and knows them by: promtool wants it there before the configuration.

    Prometheus reads these again for every request.
    """
    if not site.has("monitoring") or not site.is_on("monitoring", host):
        return None
    return Step(
        packages=("prometheus",),
        folders=(HostFolder(f"{_FOLDER}/secrets", "0750", group="prometheus"),),
        files=(
            HostFile(f"{_FOLDER}/{AUTHORITY_FILE}", secret="ca_certificate"),
            HostFile(f"{_FOLDER}/{TOKEN_FILE}", "", "0640", "root", "prometheus", "scrape_token"),
        ),
    )


def server(site: Site, host: str) -> Step | None:
    """Return Prometheus and Alertmanager; they listen on the loopback of their host, and people come through ssh."""
    if not site.has("monitoring") or not site.is_on("monitoring", host):
        return None
    prometheus, alertmanager = "prometheus", "prometheus-alertmanager"
    kept = "--storage.tsdb.retention.time=30d"
    pod, read = site.pod, jobs(site)
    return Step(
        packages=(prometheus, alertmanager),
        folders=(HostFolder(f"{_FOLDER}/targets"),),
        files=(
            _config(RULES_FILE, rule_groups(pod), "promtool check rules %s", prometheus),
            _config("prometheus.yml", prometheus_config(pod, read), "promtool check config %s", prometheus),
            _config("alertmanager.yml", alertmanager_config(pod), "amtool check-config %s", alertmanager),
            *(HostFile(f"{_FOLDER}/{job.file}", targets_file(job)) for job in read),
            *(_receiver_secret(name, alertmanager) for name in secret_names(pod)),
            _defaults(prometheus, f"{_LISTEN}=127.0.0.1:9090 {kept}"),
            _defaults(alertmanager, f"{_LISTEN}=127.0.0.1:9093 --cluster.listen-address="),
        ),
        services=(prometheus, alertmanager),
    )


def jobs(site: Site) -> list[ScrapeJob]:
    """Return what Prometheus reads: every host by its name, under the address where its exporter is."""
    # Prometheus reads itself too, as it has alerts about itself.
    own = ScrapeJob("prometheus", [Target(site.roles["monitoring"], "127.0.0.1", 9090)])
    found = [own, ScrapeJob("node", [Target(host, address, NODE_PORT) for host, address in site.addresses.items()])]
    if site.scheduler is not None:
        controller = site.roles["controller"]
        found.append(ScrapeJob("slurm", [Target(controller, site.addresses[controller], SLURM_PORT)], is_guarded=True))
    found += controllers_job(site)
    with_gpus = [Target(host, site.addresses[host], GPU_PORT) for host in site.addresses if _tells_of_gpus(site, host)]
    if with_gpus:
        found.append(ScrapeJob("gpu", with_gpus, is_guarded=True))
    return found


def _config(name: str, document: object, check: str, service: str) -> HostFile:
    return HostFile(f"{_FOLDER}/{name}", yaml_file(document), check=check, restarts=(service,))


def _receiver_secret(name: str, service: str) -> HostFile:
    """Return what a receiver of alerts wants, which whoever brings the pod up has given; the vault keeps it."""
    return HostFile(secret_file(name), secret=given_name(name), mode="0640", group="prometheus", restarts=(service,))


def _defaults(service: str, arguments: str) -> HostFile:
    return HostFile(f"/etc/default/{service}", f'{_HEAD}ARGS="{arguments}"\n', restarts=(service,))
