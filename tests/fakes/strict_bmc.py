"""A management controller in the forms that DSP0266 and DSP2046 allow and sushy-tools' emulator has not.

Written by us from the standard, after no maker's controller: sessions alone, changes that must name the version they
change, words of a reset in an ActionInfo, an update that is answered by nothing but a place, or that is pushed.
"""

from __future__ import annotations

import email
import email.policy
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROOT = "/redfish/v1"
SYSTEM, INFO = f"{ROOT}/Systems/S1", f"{ROOT}/Systems/S1/ResetActionInfo"
SERVICE, SESSIONS, MONITOR = f"{ROOT}/UpdateService", f"{ROOT}/SessionService/Sessions", f"{ROOT}/TaskMonitors/1"
FIRMWARE = f"{SERVICE}/FirmwareInventory"


@dataclass
class StrictState:
    """What a controller is, and what it was asked."""

    login: tuple[str, str] = ("admin", "pass")
    resets: list[str] = field(default_factory=lambda: ["On", "ForceOff", "PowerCycle"])
    pushes: bool = False
    lists_firmware: bool = True
    refuses_after: str = ""
    """What the task says in the end, where it fails."""
    changed_between: int = 0
    """How often somebody else changes the system before a change arrives."""
    version: int = 1
    polls: int = 2
    """How often a task is asked until it is over; the first time the controller answers nothing."""
    power: str = "Off"
    settles: int = 2
    """How often a system is asked until it is as it was told."""
    target: str = ""
    boot: dict[str, Any] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    image: bytes = b""


class StrictBmc(ThreadingHTTPServer):
    """Serves one of these on the loopback."""

    daemon_threads = True

    def __init__(self, state: StrictState) -> None:
        self.state = state
        super().__init__(("127.0.0.1", 0), _StrictRequest)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that this controller itself cuts is no news."""


class _StrictRequest(BaseHTTPRequestHandler):
    server: StrictBmc

    def do_GET(self) -> None:
        state = self.server.state
        if not self._is_known():
            return self._say(401)
        if self.path == MONITOR:
            return self._monitor()
        if self.path == SYSTEM:
            return self._say(200, self._system(), ETag=f'W/"{state.version}"')
        document = self._documents().get(self.path)
        return self._say(404) if document is None else self._say(200, document)

    def do_POST(self) -> None:
        state = self.server.state
        body = self.rfile.read(int(self.headers["Content-Length"]))
        state.asked.append(("POST", self.path))
        if self.path == SESSIONS:
            given = json.loads(body)
            if (given["UserName"], given["Password"]) != state.login:
                return self._say(401)
            state.sessions.add("token-1")
            return self._say(201, {}, X_Auth_Token="token-1", Location=f"{SESSIONS}/1")
        if not self._is_known():
            return self._say(401)
        if self.path == f"{SYSTEM}/Actions/ComputerSystem.Reset":
            kind = json.loads(body)["ResetType"]
            if kind not in state.resets:
                return self._say(400, {"error": {"message": f"{kind} is not supported"}})
            state.target = "Off" if kind == "ForceOff" else "On"
            return self._say(204)
        if self.path == f"{SERVICE}/push":
            state.image = self._pushed(body)
        return self._say(202, None, Location=MONITOR)

    def do_PATCH(self) -> None:
        state = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if state.changed_between:
            state.changed_between -= 1
            state.version += 1
        match = self.headers.get("If-Match")
        if match is None:
            return self._say(428, {"error": {"message": "If-Match is required"}})
        if match != f'W/"{state.version}"':
            return self._say(412, {"error": {"message": "it was changed meanwhile"}})
        state.boot = body["Boot"]
        state.version += 1
        return self._say(204)

    def do_DELETE(self) -> None:
        self.server.state.sessions.discard(self.headers.get("X-Auth-Token", ""))
        self._say(204)

    def _is_known(self) -> bool:
        return self.headers.get("X-Auth-Token") in self.server.state.sessions

    def _documents(self) -> dict[str, Any]:
        state = self.server.state
        update: dict[str, Any] = {"Actions": {"#UpdateService.SimpleUpdate": {"target": f"{SERVICE}/simple"}}}
        if state.pushes:
            update = {"MultipartHttpPushUri": f"{SERVICE}/push"}
        documents = {
            f"{ROOT}/Systems": {"Members": [{"@odata.id": SYSTEM}]},
            INFO: {"Parameters": [{"Name": "ResetType", "AllowableValues": state.resets}]},
            SERVICE: update,
        }
        if state.lists_firmware:
            documents[FIRMWARE] = {"Members": [{"@odata.id": f"{FIRMWARE}/BIOS"}]}
            version = "2.0" if state.polls <= 0 and not state.refuses_after else "1.0"
            documents[f"{FIRMWARE}/BIOS"] = {"@odata.id": f"{FIRMWARE}/BIOS", "Name": "BIOS", "Version": version}
        return documents

    def _system(self) -> dict[str, Any]:
        state = self.server.state
        if state.target and state.power != state.target:
            state.settles -= 1
            state.power = state.target if state.settles <= 0 else state.power
        action = {"target": f"{SYSTEM}/Actions/ComputerSystem.Reset", "@Redfish.ActionInfo": INFO}
        named = {"@odata.id": SYSTEM, "Name": "S1", "Model": "M-1", "SerialNumber": "123"}
        return {**named, "PowerState": state.power, "Boot": state.boot, "Actions": {"#ComputerSystem.Reset": action}}

    def _monitor(self) -> None:
        """A task that is at work has no body; the first question of all is not even answered."""
        state = self.server.state
        state.polls -= 1
        if state.polls == 1:
            return self.connection.close()
        if state.polls > 0:
            return self._say(202)
        if state.refuses_after:
            return self._say(200, {"TaskState": "Exception", "Messages": [{"Message": state.refuses_after}]})
        return self._say(204)

    def _pushed(self, body: bytes) -> bytes:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = email.message_from_bytes(head + body, policy=email.policy.default).iter_parts()
        named = {part.get_param("name", header="content-disposition"): part for part in parts}
        assert json.loads(named["UpdateParameters"].get_payload(decode=True)) == {"Targets": [f"{FIRMWARE}/BIOS"]}
        return bytes(named["UpdateFile"].get_payload(decode=True))

    def _say(self, status: int, document: Any = None, **headers: str) -> None:
        raw = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""
