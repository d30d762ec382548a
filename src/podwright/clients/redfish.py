"""A host's management controller, in the protocol that all of them speak: power, boot device, firmware.

What differs among makers is asked for: which words a reset or a boot device has, whether a change must name the
version that it changes, whether a login is for each call or for a session, where a task is found.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from podwright.clients.redfish_channel import ROOT, AwayError, Object, RedfishAnswer, RedfishChannel, RefusedCall
from podwright.spec.problems import Refusal, refuse

Call = TypeVar("Call", bound=Callable[..., Any])
RESETS: Mapping[str, tuple[str, ...]] = {
    "on": ("On", "ForceOn"),
    "off": ("GracefulShutdown",),
    "force-off": ("ForceOff",),
    "cycle": ("ForceRestart", "PowerCycle", "GracefulRestart"),
}
"""What a person asks for, and Redfish's words for it, the first that a controller has."""
DEVICES = {"pxe": "Pxe", "disk": "Hdd", "setup": "BiosSetup", "none": "None"}
"""What a host may boot from the next time."""
_WORDS = {
    "on": "switch a system on",
    "off": "switch a system off in order",
    "force-off": "switch a system off",
    "cycle": "start a system again",
}
POWERED = {"on": "On", "off": "Off", "force-off": "Off", "cycle": "On"}
"""How a host is when it has done so."""
_OVER = ("Completed", "Exception", "Killed", "Cancelled")
_ALLOWED = "@Redfish.AllowableValues"


def _in_words(method: Call) -> Call:
    """Refuse a controller whose answers have another form: what it says is looked at field by field."""

    @wraps(method)
    def asked(self: Redfish, *args: Any, **fields: Any) -> Any:
        try:
            return method(self, *args, **fields)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise refuse(f"{self.address} does not speak Redfish: its answer has another form", exit_code=3) from None

    return cast("Call", asked)


@dataclass(frozen=True)
class FirmwareImage:
    """An image to be written: where a controller fetches it, and its bytes for one that wants to be sent them."""

    url: str
    content: bytes


class _ImageRefused(Refusal):
    """The controller's own verdict on an image."""


class Redfish:
    """One controller; making this object touches nothing. Only the loopback is spoken to without TLS."""

    def __init__(self, address: str, login: str, certificates: str | None = None, every_s: float = 2.0) -> None:
        self.address, self._every_s = address.rstrip("/"), every_s
        self._channel = RedfishChannel(self.address, login, certificates)

    @_in_words
    def system(self, host: str) -> Object:
        """Return the system of a host: the one of its name, else the only one there is."""
        members = [self.get(member["@odata.id"]) for member in self.get(f"{ROOT}/Systems")["Members"]]
        named = [member for member in members if member.get("Name") == host or member.get("HostName") == host]
        if len(named) == 1 or len(members) == 1:
            return (named or members)[0]
        raise refuse(f"{self.address} has {len(members)} systems, and none is called {host}", exit_code=1)

    @_in_words
    def reset(self, system: Object, action: str) -> None:
        """Switch a system on or off, or start it again, by the first word for it that the controller has."""
        reset = system["Actions"]["#ComputerSystem.Reset"]
        allowed = reset.get(f"ResetType{_ALLOWED}") or self._allowed(reset.get("@Redfish.ActionInfo"), "ResetType")
        kinds = [kind for kind in RESETS[action] if not allowed or kind in allowed]
        if not kinds:
            hint = f"it has {', '.join(allowed)}"
            raise refuse(f"{self.address} has no way to {_WORDS[action]}", hint=hint, exit_code=1)
        self._ask("POST", reset["target"], {"ResetType": kinds[0]})

    def _allowed(self, info: str | None, parameter: str) -> list[str]:
        """Return what a parameter of an action may be, where the controller says it in a place of its own."""
        if info is None:
            return []
        rows = self.get(info).get("Parameters", [])
        return next((row.get("AllowableValues", []) for row in rows if row.get("Name") == parameter), [])

    def await_power(self, host: str, state: str, timeout_s: float = 120.0) -> Object:
        """Return the system once it is on or off, or as it is when that took too long."""
        until_s = time.monotonic() + timeout_s
        while True:
            system = self.system(host)
            if system.get("PowerState") == state or time.monotonic() > until_s:
                return system
            time.sleep(self._every_s)

    @_in_words
    def boot_next(self, system: Object, device: str) -> None:
        """Choose what a system boots from, for the next time alone."""
        allowed = system.get("Boot", {}).get(f"BootSourceOverrideTarget{_ALLOWED}")
        if allowed and device not in allowed:
            raise refuse(f"{self.address} boots from no {device}: it knows {', '.join(allowed)}", exit_code=1)
        enabled = "Disabled" if device == "None" else "Once"
        wanted = {"BootSourceOverrideTarget": device, "BootSourceOverrideEnabled": enabled}
        self._change(system["@odata.id"], {"Boot": wanted})

    def _change(self, path: str, body: Object) -> None:
        """Change a resource as it is now: another's change in between is seen, and ours is made on top of it."""
        for is_last in (False, True):
            now = self._ask("GET", path)
            version = now.headers.get("ETag") or now.document.get("@odata.etag")
            try:
                self._ask("PATCH", path, body, {"If-Match": version} if version else {})
            except RefusedCall as error:
                if error.status != 412 or is_last:
                    raise
            else:
                return

    @_in_words
    def firmware(self, system: Object) -> list[Object]:
        """Return the firmware of a system; an entry that names no system belongs to all of this controller."""
        listed = self.get(f"{ROOT}/UpdateService/FirmwareInventory")["Members"]
        entries = [self.get(member["@odata.id"]) for member in listed]
        return [entry for entry in entries if _belongs(entry, system["@odata.id"])]

    @_in_words
    def update(self, image: FirmwareImage, targets: list[str], timeout_s: float = 1800.0) -> str:
        """Have an image written; return the controller's last word, and refuse what it refused.

        From the moment that it took the order, whatever goes wrong says that a write was begun.
        """
        begun = self._begin_update(image, targets)
        try:
            return self._followed(begun, time.monotonic() + timeout_s)
        except _ImageRefused:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, Refusal) as error:
            reason = error.problems[0].message if isinstance(error, Refusal) else "its answer has another form"
            hint = "it may still be at work: `podwright pod firmware POD` says which version is there"
            raise refuse(f"the update was begun, and then: {reason}", hint=hint, exit_code=1) from None

    def _begin_update(self, image: FirmwareImage, targets: list[str]) -> RedfishAnswer:
        """Order the update: the controller fetches the image, or is sent it where it has another way for none."""
        service = self.get(f"{ROOT}/UpdateService")
        simple = service.get("Actions", {}).get("#UpdateService.SimpleUpdate")
        pushed = service.get("MultipartHttpPushUri")
        if simple is None and pushed:
            body, kind = _form({"Targets": targets}, image.content)
            return self._ask("POST", pushed, body, {"Content-Type": kind})
        if simple is None:
            raise refuse(f"{self.address} takes no image: neither by SimpleUpdate nor by a push", exit_code=1)
        asked: Object = {"ImageURI": image.url, "Targets": targets}
        scheme = image.url.partition(":")[0].upper()
        if scheme in simple.get(f"TransferProtocol{_ALLOWED}", []):
            asked["TransferProtocol"] = scheme
        return self._ask("POST", simple["target"], asked)

    def _followed(self, begun: RedfishAnswer, until_s: float) -> str:
        """Return the last word on a task, wherever it is told of: in the answer, or where the answer leads."""
        task, place = begun.document, begun.headers.get("Location")
        if "TaskState" in task:
            place = task["@odata.id"]
        elif place is None:
            return "accepted; it names no task"
        while task.get("TaskState") not in _OVER:
            if time.monotonic() > until_s:
                raise refuse(f"{self.address}: the update did not end in time")
            time.sleep(self._every_s)
            try:
                seen = self._ask("GET", str(place))
            except AwayError:
                # A controller that writes its own firmware starts again meanwhile.
                continue
            task = seen.document
            if "TaskState" not in task and seen.status != 202:
                return "done"
        messages = [str(message.get("Message", "")) for message in task.get("Messages", [])]
        said = messages[-1] if messages else str(task["TaskState"]).lower()
        if task["TaskState"] != "Completed":
            raise _ImageRefused(refuse(f"{self.address} refused the image: {said}").problems, exit_code=1)
        return said

    def get(self, path: str) -> Object:
        """Return what stands under a path."""
        return self._ask("GET", path).document

    def close(self) -> None:
        """Give back what the controller keeps of us."""
        self._channel.close()

    def _ask(
        self, method: str, path: str, body: Object | bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RedfishAnswer:
        return self._channel.ask(method, path, body, headers)


def _form(parameters: Object, content: bytes) -> tuple[bytes, str]:
    """Return the two parts of a push as one body, and its kind; the mark between them is in neither."""
    mark = f"podwright-{hashlib.sha256(content).hexdigest()}"
    head = 'Content-Disposition: form-data; name="UpdateParameters"\r\nContent-Type: application/json'
    file = (
        'Content-Disposition: form-data; name="UpdateFile"; filename="image"\r\nContent-Type: application/octet-stream'
    )
    first = f"--{mark}\r\n{head}\r\n\r\n{json.dumps(parameters)}\r\n--{mark}\r\n{file}\r\n\r\n"
    return b"".join((first.encode(), content, f"\r\n--{mark}--\r\n".encode())), f"multipart/form-data; boundary={mark}"


def _belongs(entry: Object, system: str) -> bool:
    related = [item["@odata.id"] for item in entry.get("RelatedItem", [])]
    systems = [item for item in related if item.startswith(f"{ROOT}/Systems/")]
    return not systems or system in systems
