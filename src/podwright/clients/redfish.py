"""A host's management controller, in the protocol that all of them speak: power, boot device, firmware."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar, cast
from urllib.parse import urljoin

from podwright.clients.http_client import (
    ErrorAnswer,
    HttpClient,
    TooLarge,
    Unreached,
    basic,
    is_loopback,
    no_proxy,
    origin_of,
    request_of,
    trusting,
)
from podwright.spec.problems import Refusal, refuse

Object = dict[str, Any]
Call = TypeVar("Call", bound=Callable[..., Any])
ROOT = "/redfish/v1"
TIMEOUT_S = 30.0
_ANSWER_BYTES = 8 << 20
RESETS = {"on": "On", "off": "GracefulShutdown", "force-off": "ForceOff", "cycle": "ForceRestart"}
"""What a person asks for, and Redfish's word for it."""
DEVICES = {"pxe": "Pxe", "disk": "Hdd", "setup": "BiosSetup", "none": "None"}
"""What a host may boot from the next time."""
_OVER = ("Completed", "Exception", "Killed", "Cancelled")


def _in_words(method: Call) -> Call:
    """Refuse a controller whose answers have another form: what it says is looked at field by field."""

    @wraps(method)
    def asked(self: Redfish, *args: Any, **fields: Any) -> Any:
        try:
            return method(self, *args, **fields)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise refuse(f"{self.address} does not speak Redfish: its answer has another form", exit_code=3) from None

    return cast("Call", asked)


class Redfish:
    """One controller; making this object touches nothing. Only the loopback is spoken to without TLS."""

    def __init__(self, address: str, login: str, certificates: str | None = None) -> None:
        self.address = address.rstrip("/")
        self._authorization = basic(login)
        self._certificates = certificates

    @_in_words
    def system(self, host: str) -> Object:
        """Return the system of a host: the one of its name, else the only one there is."""
        members = [self.get(member["@odata.id"]) for member in self.get(f"{ROOT}/Systems")["Members"]]
        named = [member for member in members if member.get("Name") == host or member.get("HostName") == host]
        if len(named) == 1 or len(members) == 1:
            return (named or members)[0]
        raise refuse(f"{self.address} has {len(members)} systems, and none is called {host}", exit_code=1)

    @_in_words
    def reset(self, system: Object, kind: str) -> None:
        """Switch a system on or off, or start it again."""
        action = system["Actions"]["#ComputerSystem.Reset"]
        self._send("POST", action["target"], {"ResetType": kind})

    @_in_words
    def boot_next(self, system: Object, device: str) -> None:
        """Choose what a system boots from, for the next time alone."""
        enabled = "Disabled" if device == "None" else "Once"
        wanted = {"BootSourceOverrideTarget": device, "BootSourceOverrideEnabled": enabled}
        self._send("PATCH", system["@odata.id"], {"Boot": wanted})

    @_in_words
    def firmware(self, system: Object) -> list[Object]:
        """Return the firmware of a system; an entry that names no system belongs to all of this controller."""
        listed = self.get(f"{ROOT}/UpdateService/FirmwareInventory")["Members"]
        entries = [self.get(member["@odata.id"]) for member in listed]
        return [entry for entry in entries if _belongs(entry, system["@odata.id"])]

    @_in_words
    def update(self, image: str, targets: list[str], timeout_s: float = 1800.0) -> str:
        """Have the controller fetch an image and write it; return its last word, and refuse what it refused."""
        task = self._send(
            "POST",
            f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate",
            {"ImageURI": image, "Targets": targets},
        )
        until_s = time.monotonic() + timeout_s
        while task.get("TaskState") not in _OVER:
            if time.monotonic() > until_s:
                raise refuse(f"{self.address}: the update did not end within {timeout_s:.0f} s", exit_code=1)
            time.sleep(2)
            task = self.get(task["@odata.id"])
        messages = [str(message.get("Message", "")) for message in task.get("Messages", [])]
        said = messages[-1] if messages else str(task["TaskState"]).lower()
        if task["TaskState"] != "Completed":
            raise refuse(f"{self.address} refused the image: {said}", exit_code=1)
        return said

    def get(self, path: str) -> Object:
        """Return what stands under a path."""
        return self._send("GET", path, None)

    def _send(self, method: str, path: str, body: Object | None) -> Object:
        url = urljoin(f"{self.address}/", path)
        _check(self.address, url)
        data = None if body is None else json.dumps(body).encode()
        request = request_of(url, method, data, {"Content-Type": "application/json"}, self._authorization)
        try:
            _, raw = self._http.ask(request, _ANSWER_BYTES)
            answer: Object = json.loads(raw) if raw.strip() else {}
        except ErrorAnswer as error:
            raise _refusal(self.address, error) from None
        except (ValueError, TooLarge):
            raise refuse(f"{self.address} does not speak Redfish", exit_code=3) from None
        except Unreached as error:
            raise refuse(f"{self.address} cannot be reached: {error}", exit_code=3) from None
        return answer

    @cached_property
    def _http(self) -> HttpClient:
        """Return how it is reached: directly, and never on to somebody else, who would get the password."""
        context = ssl.create_default_context(cafile=self._certificates)
        return HttpClient("refused", TIMEOUT_S, no_proxy(), trusting(context))


def _check(address: str, url: str) -> None:
    """Refuse to send a password in the clear, or to whom an answer names."""
    scheme, host = origin_of(address)
    if origin_of(url) != (scheme, host):
        raise refuse(f"{address} leads elsewhere, to {origin_of(url)[1]}", exit_code=1)
    if scheme != "https" and not is_loopback(host):
        raise refuse(f"{address} is not encrypted", hint="write it like `https://10.0.9.1`", field="nodes.bmc.address")


def _belongs(entry: Object, system: str) -> bool:
    related = [item["@odata.id"] for item in entry.get("RelatedItem", [])]
    systems = [item for item in related if item.startswith(f"{ROOT}/Systems/")]
    return not systems or system in systems


def _refusal(address: str, error: ErrorAnswer) -> Refusal:
    if error.status in (401, 403):
        hint = "the variable that `bmc.secret` names holds USER:PASSWORD"
        return refuse(f"{address} does not take the password", hint=hint, exit_code=1)
    try:
        answer = json.loads(error.body)["error"]
        said = str(answer.get("message") or answer.get("code"))
    except (ValueError, KeyError, AttributeError):
        said = error.reason
    return refuse(f"{address} answers {error.status}: {said}", exit_code=1)
