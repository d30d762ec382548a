"""Power and firmware over Redfish, as users type it, against an emulator that speaks the protocol."""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT
from tests.real.clients import BIN, Client
from tests.real.controllers import LOGIN, controller

SYSTEMS = [
    {"uuid": f"27946b59-9e44-4fa7-8e91-f3527a1ef09{number}", "name": f"g{number}", "power_state": "Off", "nics": []}
    for number in (1, 2)
]


@dataclass
class MachineRoom:
    """Two hosts behind one controller, and a user."""

    client: Client
    file: Path
    images: str
    folder: Path

    def ask(self, verb: str, *words: str, code: int = 0) -> dict[str, Any]:
        document = json.loads(self.client.ask("pod", verb, str(self.file), *words, "--json", code=code))
        hosts: dict[str, Any] = document["hosts"]
        return hosts

    def refused(self, verb: str, *words: str, **environ: str) -> str:
        command = [str(BIN / "podwright"), "pod", verb, str(self.file), *words]
        env = {**self.client.environ, **environ}
        done = subprocess.run(
            command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr

    def image(self, name: str, version: str, good: bool = True) -> tuple[str, str]:
        """Writes an image; gives its URL and its digest."""
        proof = hashlib.sha256(f"{name} {version}".encode()).hexdigest() if good else "0" * 64
        text = f"FW {name} {version} {proof}\n"
        (self.folder / f"{name}-{version}").write_text(text)
        return f"{self.images}/{name}-{version}", f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[MachineRoom]:
    folder = tmp_path / "images"
    folder.mkdir()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with controller(tmp_path, SYSTEMS) as url, ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        file = tmp_path / "pod.yaml"
        bmc = f"{{address: ['{url}', '{url}'], secret: BMC_LOGIN}}"
        file.write_text(f"name: room\nnodes: [{{hosts: 'g[1-2]', model: dgx-a100, bmc: {bmc}}}]\n")
        client = Client(tmp_path)
        client.environ["BMC_LOGIN"] = LOGIN
        yield MachineRoom(client, file, f"http://127.0.0.1:{web.server_port}", folder)
        web.shutdown()


def test_hosts_are_switched_and_boot_from_the_network_once(room: MachineRoom) -> None:
    assert {host: answer["power"] for host, answer in room.ask("power").items()} == {"g1": "off", "g2": "off"}
    # A controller takes its time, as machines do: the state is waited for.
    assert room.ask("power", "on", "--boot", "pxe", "--limit", "g1", "--yes")["g1"] == {"power": "on", "boot": "pxe"}
    assert room.ask("power")["g2"]["power"] == "off"
    assert room.ask("power", "force-off", "--limit", "g1", "--yes")["g1"]["power"] == "off"


def test_firmware_is_listed_and_written_only_when_somebody_approved(room: MachineRoom) -> None:
    assert room.ask("firmware")["g2"]["firmware"] == {"BMC": "1.2.0", "BIOS": "3.1.0", "NIC.0": "28.39.1002"}
    url, digest = room.image("BIOS", "3.2.0")
    wanted = ("--update", "BIOS", "--image", url, "--digest", digest)
    assert "which nobody approved" in room.refused("firmware", *wanted)
    assert "--digest is missing" in room.refused("firmware", "--update", "BIOS", "--image", url, "--yes")
    assert room.ask("firmware")["g1"]["firmware"]["BIOS"] == "3.1.0"
    written = room.ask("firmware", *wanted, "--limit", "g1", "--yes")
    assert written == {"g1": {"component": "BIOS", "before": "3.1.0", "after": "3.2.0", "said": "applied"}}
    assert [room.ask("firmware")[host]["firmware"]["BIOS"] for host in ("g1", "g2")] == ["3.2.0", "3.1.0"]


def test_a_bad_image_is_refused_by_its_digest_and_by_the_controller(room: MachineRoom) -> None:
    good, digest = room.image("BIOS", "3.2.0")
    bad, other = room.image("BIOS", "3.3.0", good=False)
    said = room.refused("firmware", "--update", "BIOS", "--image", bad, "--digest", digest, "--yes")
    assert "is another file" in said
    wanted = ("--update", "BIOS", "--image", bad, "--digest", other, "--yes")
    answer = room.ask("firmware", *wanted, "--limit", "g1", code=1)
    assert "refused the image: image verification failed" in answer["g1"]["error"]
    fixed = ("--update", "NIC.0", "--image", good, "--digest", digest, "--yes")
    assert "cannot be updated" in room.ask("firmware", *fixed, "--limit", "g1", code=1)["g1"]["error"]
    assert room.ask("firmware")["g1"]["firmware"]["BIOS"] == "3.1.0"


def test_who_has_no_password_is_refused_and_the_password_is_shown_nowhere(room: MachineRoom) -> None:
    assert "BMC_LOGIN is not set" in room.refused("power", BMC_LOGIN="")
    room.client.environ["BMC_LOGIN"] = "admin:wrong"
    assert "does not take the password" in room.ask("power", code=1)["g1"]["error"]
    assert "wrong" not in json.dumps(room.ask("power", code=1))
