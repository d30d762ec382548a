"""Power and inlet of hosts, which the monitoring host asks their management controllers for."""

from __future__ import annotations

import json
from typing import Any

from podwright.bringup.bmc.poller import BMC_PORT
from podwright.bringup.bmc.program import PROGRAM, bmc_program
from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site, given_name
from podwright.bringup.plan.template import unit_of
from podwright.watch import ScrapeJob, Target, bmc_secrets

_PROGRAM = f"/usr/lib/podwright/{PROGRAM}"
_SERVICE = "podwright-bmc-exporter"
_FOLDER = f"/etc/podwright/{_SERVICE}"


def controllers(site: Site, host: str) -> Step | None:
    """Return what asks them; nothing on any other host than the one that monitors."""
    if not site.has("monitoring") or not site.is_on("monitoring", host) or not bmc_secrets(site.pod):
        return None
    restarts = (_SERVICE,)
    secrets = (
        HostFile(f"{_FOLDER}/{name}", mode="0600", secret=given_name(name), restarts=restarts)
        for name in bmc_secrets(site.pod)
    )
    text = json.dumps(_settings(site), indent=1) + "\n"
    return Step(
        packages=("python3",),
        folders=(HostFolder("/usr/lib/podwright"), HostFolder("/etc/podwright"), HostFolder(_FOLDER, "0700")),
        files=(
            HostFile(_PROGRAM, bmc_program(), "0755", restarts=restarts),
            HostFile(f"{_FOLDER}/settings.json", text, restarts=restarts),
            *secrets,
            unit_of(_SERVICE, program=_PROGRAM, folder=_FOLDER, port=BMC_PORT),
        ),
        services=(_SERVICE,),
    )


def controllers_job(site: Site) -> list[ScrapeJob]:
    """Return what Prometheus reads of them: one page for all hosts, on its own host."""
    if not bmc_secrets(site.pod):
        return []
    target = Target(site.roles["monitoring"], "127.0.0.1", BMC_PORT)
    return [ScrapeJob("bmc", [target], tells_of_others=True)]


def _settings(site: Site) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for group in site.pod.nodes:
        bmc = group.bmc
        if bmc is None or not bmc.watched:
            continue
        for index, host in enumerate(group.hosts):
            address = bmc.address[index if len(bmc.address) > 1 else 0].format(host=host)
            login = f"{_FOLDER}/{bmc.secret}"
            rows[host] = {"address": address, "login": login, "certificates": bmc.certificates}
    return rows
