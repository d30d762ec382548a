"""A management controller for tests, since no machine here has one: sushy-tools' Redfish with its own fake driver.

Added is what that driver lacks: firmware that is listed, and an update that verifies its image. An image is one line,
`FW NAME VERSION SHA256-OF-"NAME VERSION"`. A system that has a `command` is on as long as its process runs.
Usage: bmc.py PORT FOLDER SYSTEMS, the last as JSON; USER:PASSWORD on stdin.
"""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import subprocess
import sys
import urllib.request
from typing import Any

import flask
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems import fakedriver

INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory"
TASKS = "/redfish/v1/TaskService/Tasks"
FIRMWARE = {"BMC": "1.2.0", "BIOS": "3.1.0", "NIC.0": "28.39.1002"}
app = emulator.app
versions: dict[str, dict[str, str]] = {}
tasks: dict[str, dict[str, Any]] = {}
processes: dict[str, subprocess.Popen[bytes]] = {}


class MachineDriver(fakedriver.FakeDriver):  # type: ignore[misc] # sushy-tools has no types
    """Switches machines that are processes; of others it keeps what was asked, as its parent does."""

    def get_power_state(self, identity: str) -> str:
        system = self._get(identity)
        if "command" not in system:
            return str(super().get_power_state(identity))
        process = processes.get(system["uuid"])
        return "On" if process is not None and process.poll() is None else "Off"

    def set_power_state(self, identity: str, state: str) -> None:
        system = self._get(identity)
        if "command" not in system:
            super().set_power_state(identity, state)
            return
        process = processes.pop(system["uuid"], None)
        if process is not None:
            process.terminate()
            process.wait()
        if "Off" not in state and "Shutdown" not in state:
            processes[system["uuid"]] = subprocess.Popen(system["command"], stdin=subprocess.DEVNULL)


def entries() -> dict[str, tuple[str, str]]:
    """Gives system and name of every firmware by its id."""
    return {
        f"{app.systems.name(system)}.{name}": (system, name)
        for system in app.systems.systems
        for name in versions.setdefault(system, dict(FIRMWARE))
    }


@app.route(INVENTORY)
def listed() -> Any:
    return {"Name": "Firmware", "Members": [{"@odata.id": f"{INVENTORY}/{key}"} for key in entries()]}


@app.route(f"{INVENTORY}/<key>")
def entry(key: str) -> Any:
    if key not in entries():
        return {"error": {"code": "Base.1.0.ResourceMissingAtURI", "message": key}}, 404
    system, name = entries()[key]
    return {
        "@odata.id": f"{INVENTORY}/{key}",
        "Id": key,
        "Name": name,
        "Version": versions[system][name],
        "Updateable": name != "NIC.0",
        "RelatedItem": [{"@odata.id": f"/redfish/v1/Systems/{system}"}],
    }


def update() -> Any:
    """Fetches the image, verifies it and takes it up; the answer is a task that is over."""
    asked = flask.request.json or {}
    keys = [target.rsplit("/", 1)[-1] for target in asked.get("Targets", [])]
    image = urllib.request.urlopen(asked["ImageURI"], timeout=10).read().decode().split()
    number = str(len(tasks) + 1)
    error = "image verification failed"
    if len(image) == 4 and image[3] == hashlib.sha256(f"{image[1]} {image[2]}".encode()).hexdigest():
        error = ""
        for key in keys:
            system, name = entries()[key]
            versions[system][name] = image[2]
    state = "Exception" if error else "Completed"
    messages = [{"Message": error or "applied"}]
    tasks[number] = {"@odata.id": f"{TASKS}/{number}", "TaskState": state, "Messages": messages}
    return tasks[number], 202


@app.route(f"{TASKS}/<number>")
def task(number: str) -> Any:
    return tasks[number]


def main(port: str, folder: str, systems: str) -> None:
    """Serves on the loopback; who has not the password is refused."""
    login = sys.stdin.readline().strip()
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}"

    @app.before_request
    def admitted() -> Any:
        if flask.request.headers.get("Authorization") != wanted:
            return {"error": {"code": "Base.1.0.NoValidSession", "message": "who are you?"}}, 401
        return None

    app.view_functions["UpdateService.update_service_simple_update"] = update
    settings = {"FAKE_DRIVER": True, "STATE_DIR": folder, "FAKE_SYSTEMS": json.loads(systems)}
    app.config.update({f"SUSHY_EMULATOR_{name}": value for name, value in settings.items()})
    fakedriver.FakeDriver = MachineDriver
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        app.run(host="127.0.0.1", port=int(port), threaded=False)
    finally:
        for process in processes.values():
            process.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
