"""The management controllers of a pod's hosts: who has which, and what many of them say at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.hosts import limited
from podwright.clients.download import fetch_checked
from podwright.clients.redfish import DEVICES, POWERED, RESETS, FirmwareImage, Redfish
from podwright.clients.redfish_channel import Object
from podwright.spec.hostlist import fold_hosts
from podwright.spec.nearest import one_of
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.spec import Pod

_AT_ONCE = 16
HostAnswer = dict[str, Any]


@dataclass(frozen=True)
class PowerChange:
    """What hosts are to do: switch, or boot from another device the next time; words that nobody knows are refused."""

    action: str | None = None
    boot: str | None = None

    def __post_init__(self) -> None:
        if self.action is not None and self.action not in RESETS:
            hint = one_of(self.action, "action", RESETS)
            raise refuse(f'"{self.action}" is not an action', hint=hint, field="ACTION")
        if self.boot is not None and self.boot not in DEVICES:
            raise refuse(f'"{self.boot}" is not a device', hint=one_of(self.boot, "device", DEVICES), field="--boot")


UNCHANGED = PowerChange()


@dataclass(frozen=True)
class MachinesResult:
    """What each controller answered; one that failed has an `error`."""

    hosts: Mapping[str, HostAnswer]

    @property
    def is_ok(self) -> bool:
        """Return whether every controller did what was asked."""
        return not any("error" in answer for answer in self.hosts.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` of `pod power` and `pod firmware` prints."""
        return {"hosts": dict(self.hosts)}


@dataclass(frozen=True)
class PodMachines:
    """Hosts as machines, each by its management controller."""

    controllers: Mapping[str, Redfish]

    @property
    def hosts(self) -> list[str]:
        """Return the hosts that are meant."""
        return list(self.controllers)

    def power(self, change: PowerChange = UNCHANGED) -> MachinesResult:
        """Return whether hosts are on and what they boot from next, after a change where one is asked for."""

        def answer(host: str, controller: Redfish) -> HostAnswer:
            system = controller.system(host)
            if change == UNCHANGED:
                return _power(system)
            if change.boot is not None:
                controller.boot_next(system, DEVICES[change.boot])
            if change.action is None:
                return _power(controller.system(host))
            controller.reset(system, change.action)
            return _power(controller.await_power(host, POWERED[change.action]))

        return self._ask(answer)

    def firmware(self) -> MachinesResult:
        """Return what hosts are, and the version of each of their firmwares."""
        return self._ask(_inventory)

    def update(self, component: str, image: str, digest: str, wave: int = _AT_ONCE) -> MachinesResult:
        """Have one firmware written of an image with this digest alone; return what each controller said last.

        One host goes first, the others follow in waves; a wave in which one fails is the last.
        """
        written = FirmwareImage(image, fetch_checked(image, digest))
        told: dict[str, HostAnswer] = {}
        hosts = self.hosts
        for batch in (hosts[:1], *(hosts[at : at + wave] for at in range(1, len(hosts), max(wave, 1)))):
            failed = fold_hosts([host for host, answer in told.items() if "error" in answer])
            if failed:
                told |= {host: {"error": f"not begun, since it failed on {failed}"} for host in batch}
            else:
                told |= self._ask(lambda host, controller: _update(host, controller, component, written), batch).hosts
        return MachinesResult(told)

    def _ask(self, ask: Callable[[str, Redfish], HostAnswer], hosts: Sequence[str] | None = None) -> MachinesResult:
        """Ask controllers; one that fails holds nobody else up."""

        def answer(host: str) -> HostAnswer:
            controller = self.controllers[host]
            try:
                return ask(host, controller)
            except Refusal as refusal:
                return {"error": refusal.problems[0].message}
            finally:
                controller.close()

        wanted = self.hosts if hosts is None else hosts
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            return MachinesResult(dict(zip(wanted, threads.map(answer, wanted), strict=True)))


def machines_of(pod: Pod, limit: str | None = None, environ: Mapping[str, str] = os.environ) -> PodMachines:
    """Return the machines that `limit` names, else those with a controller.

    Hosts that have none are refused, and a password that nobody gave.
    """
    found: dict[str, Redfish] = {}
    hosts = limited(pod.hosts(), limit)
    for group in pod.nodes:
        mine = [host for host in group.hosts if host in hosts]
        if group.bmc is None or not mine:
            continue
        login = environ.get(group.bmc.secret, "")
        if ":" not in login:
            hint = f"export {group.bmc.secret}=USER:PASSWORD; it is never written down"
            raise refuse(f"{group.bmc.secret} is not set, which {fold_hosts(mine)} are reached with", hint=hint)
        for index, host in enumerate(group.hosts):
            address = group.bmc.address[index if len(group.bmc.address) > 1 else 0]
            if host in mine:
                found[host] = Redfish(address.format(host=host), login, group.bmc.certificates)
    lacking = [host for host in hosts if host not in found]
    if lacking and (limit or not found):
        hint = "write `bmc: {address: ..., secret: NAME}` into their group"
        raise refuse(f"{short(fold_hosts(lacking))} have no management controller in the pod's file", hint=hint)
    return PodMachines(found)


def _power(system: Object) -> HostAnswer:
    boot = system.get("Boot", {})
    once = boot.get("BootSourceOverrideEnabled") in ("Once", "Continuous")
    chosen = boot.get("BootSourceOverrideTarget") if once else None
    return {"power": str(system.get("PowerState", "")).lower() or None, "boot": chosen and str(chosen).lower()}


def _inventory(host: str, controller: Redfish) -> HostAnswer:
    """Return what a host is; a controller that lists no firmware still says what it is in."""
    system = controller.system(host)
    answer = {
        **_power(system),
        "manufacturer": system.get("Manufacturer"),
        "model": system.get("Model"),
        "serial": system.get("SerialNumber"),
    }
    try:
        listed = controller.firmware(system)
    except Refusal as refusal:
        return {**answer, "firmware": {}, "firmware_error": refusal.problems[0].message}
    return {**answer, "firmware": {str(entry["Name"]): entry.get("Version") for entry in listed}}


def _update(host: str, controller: Redfish, component: str, image: FirmwareImage) -> HostAnswer:
    entry = _entry(host, controller, component)
    if entry.get("Updateable") is False:
        raise refuse(f"{host}: {component} cannot be updated over the network", exit_code=1)
    said = controller.update(image, [entry["@odata.id"]])
    answer = {"component": component, "before": entry.get("Version"), "after": None, "said": said}
    try:
        return {**answer, "after": _entry(host, controller, component).get("Version")}
    except Refusal:
        return {**answer, "said": f"{said}; the controller does not answer now"}


def _entry(host: str, controller: Redfish, component: str) -> Object:
    entries = {str(entry["Name"]): entry for entry in controller.firmware(controller.system(host))}
    if component not in entries:
        raise refuse(f"{host} has no firmware {short(component)}: it has {', '.join(sorted(entries))}", exit_code=1)
    return entries[component]
