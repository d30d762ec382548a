"""The management controllers of a pod's hosts: who has which, and what many of them say at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from podwright.clients.redfish import Object, Redfish
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.spec import Pod

_AT_ONCE = 16
HostAnswer = dict[str, Any]


def controllers(pod: Pod, hosts: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, Redfish]:
    """Return the controller of each host; refuse hosts that have none, and a password that nobody gave."""
    wanted = list(hosts)
    known: dict[str, Redfish] = {}
    for group in pod.nodes:
        if group.bmc is None:
            continue
        mine = [host for host in group.hosts if host in wanted]
        login = environ.get(group.bmc.secret, "")
        if mine and ":" not in login:
            hint = f"export {group.bmc.secret}=USER:PASSWORD; it is never written down"
            raise refuse(f"{group.bmc.secret} is not set, which {fold_hosts(mine)} are reached with", hint=hint)
        for index, host in enumerate(group.hosts):
            if host in mine:
                address = group.bmc.address[index if len(group.bmc.address) > 1 else 0]
                known[host] = Redfish(address.format(host=host), login, group.bmc.certificates)
    lacking = [host for host in wanted if host not in known]
    if lacking:
        hint = "write `bmc: {address: ..., secret: NAME}` into their group"
        raise refuse(f"{short(fold_hosts(lacking))} have no management controller in the pod's file", hint=hint)
    return known


def ask_all(known: Mapping[str, Redfish], ask: Callable[[str, Redfish], HostAnswer]) -> dict[str, HostAnswer]:
    """Return what each controller answers; one that fails says why, and holds nobody else up."""

    def answer(host: str) -> HostAnswer:
        try:
            return ask(host, known[host])
        except Refusal as refusal:
            return {"error": refusal.problems[0].message}

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        return dict(zip(known, threads.map(answer, known), strict=True))


def power_of(host: str, controller: Redfish) -> HostAnswer:
    """Return whether a host is on, and what it boots from next."""
    return _power(controller.system(host))


def _power(system: Object) -> HostAnswer:
    boot = system.get("Boot", {})
    once = boot.get("BootSourceOverrideEnabled") in ("Once", "Continuous")
    chosen = boot.get("BootSourceOverrideTarget") if once else None
    return {"power": str(system.get("PowerState", "")).lower() or None, "boot": chosen and str(chosen).lower()}


def inventory_of(host: str, controller: Redfish) -> HostAnswer:
    """Return what a host is, and the version of each of its firmwares."""
    system = controller.system(host)
    entries = controller.firmware(system)
    return {
        **_power(system),
        "manufacturer": system.get("Manufacturer"),
        "model": system.get("Model"),
        "serial": system.get("SerialNumber"),
        "firmware": {str(entry["Name"]): entry.get("Version") for entry in entries},
    }


def update_of(host: str, controller: Redfish, component: str, image: str) -> HostAnswer:
    """Have one firmware of a host written; return what the controller said last."""
    system = controller.system(host)
    entries = {str(entry["Name"]): entry for entry in controller.firmware(system)}
    if component not in entries:
        raise refuse(f"{host} has no firmware {short(component)}: it has {', '.join(sorted(entries))}", exit_code=1)
    entry = entries[component]
    if entry.get("Updateable") is False:
        raise refuse(f"{host}: {component} cannot be updated over the network", exit_code=1)
    said = controller.update(image, [entry["@odata.id"]])
    return {"component": component, "before": entry.get("Version"), "said": said}
