"""Controllers in forms that we wrote from the standard; tests/real/test_redfish.py has an emulator of others."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from podwright.bringup.apply.controllers import PodMachines, PowerChange
from podwright.clients.redfish import FirmwareImage, Redfish
from podwright.spec.problems import Refusal
from tests.fakes.strict_bmc import FIRMWARE, SESSIONS, StrictBmc, StrictState

LOGIN = "admin:pass"
IMAGE = FirmwareImage("http://images.example/bios.bin", b"an image\r\n--x\r\n")


@contextmanager
def served(state: StrictState) -> Iterator[Redfish]:
    with StrictBmc(state) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Redfish(server.address, LOGIN, every_s=0.01)
        server.shutdown()


def test_a_controller_that_cannot_be_reached_is_a_target_that_is_away() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(Refusal, match="cannot be reached") as caught:
        Redfish(address, "user:password").get("/redfish/v1")
    assert caught.value.exit_code == 3


def test_a_session_is_taken_where_the_password_alone_is_not_and_given_back() -> None:
    state = StrictState()
    with served(state) as bmc:
        assert bmc.system("g1")["Model"] == "M-1"
        assert bmc.system("g1")["SerialNumber"] == "123"
        assert (state.asked, state.sessions) == ([("POST", SESSIONS)], {"token-1"})
        bmc.close()
        assert state.sessions == set()
    with served(StrictState(login=("admin", "another"))) as bmc, pytest.raises(Refusal, match="take the password"):
        bmc.system("g1")


def test_a_change_names_the_version_that_it_changes_and_is_made_again_on_anothers() -> None:
    state = StrictState(changed_between=1)
    with served(state) as bmc:
        bmc.boot_next(bmc.system("g1"), "Pxe")
    assert state.boot == {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}
    with served(StrictState(changed_between=9)) as bmc, pytest.raises(Refusal, match="412: it was changed meanwhile"):
        bmc.boot_next(bmc.system("g1"), "Pxe")


def test_a_device_that_a_controller_does_not_know_is_refused_before_it_is_asked() -> None:
    state = StrictState(boot={"BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Hdd"]})
    with served(state) as bmc, pytest.raises(Refusal, match="boots from no Pxe: it knows None, Hdd"):
        bmc.boot_next(bmc.system("g1"), "Pxe")


def test_a_host_is_switched_by_the_controllers_own_word_and_its_state_is_waited_for() -> None:
    state = StrictState()
    with served(state) as bmc:
        machines = PodMachines({"g1": bmc})
        assert machines.power(PowerChange("cycle")).hosts == {"g1": {"power": "on", "boot": None}}
        said = machines.power(PowerChange("off")).hosts["g1"]["error"]
    assert said.endswith("has no way to switch a system off in order")
    assert state.power == "On"


def test_an_update_is_followed_where_the_answer_leads_also_while_the_controller_is_away() -> None:
    with served(StrictState()) as bmc:
        assert bmc.update(IMAGE, [f"{FIRMWARE}/BIOS"]) == "done"
    wrong = StrictState(refuses_after="the image is for another board")
    with served(wrong) as bmc, pytest.raises(Refusal, match="refused the image: the image is for another board"):
        bmc.update(IMAGE, [f"{FIRMWARE}/BIOS"])


def test_an_image_is_sent_to_a_controller_that_fetches_none() -> None:
    state = StrictState(pushes=True)
    with served(state) as bmc:
        assert bmc.update(IMAGE, [f"{FIRMWARE}/BIOS"]) == "done"
    assert state.image == IMAGE.content


def test_a_fault_after_a_write_began_says_so_and_where_to_look() -> None:
    with served(StrictState(polls=10**9)) as bmc, pytest.raises(Refusal) as refused:
        bmc.update(IMAGE, [f"{FIRMWARE}/BIOS"], timeout_s=0.1)
    assert "the update was begun, and then:" in str(refused.value)
    assert "podwright pod firmware POD" in str(refused.value)


def test_a_host_without_a_list_of_firmware_is_still_known_by_model_and_serial() -> None:
    with served(StrictState(lists_firmware=False)) as bmc:
        answer = PodMachines({"g1": bmc}).firmware().hosts["g1"]
    assert (answer["model"], answer["serial"], answer["firmware"]) == ("M-1", "123", {})
    assert "answers 404" in answer["firmware_error"]


@pytest.fixture
def image(tmp_path: Path) -> Iterator[tuple[str, str]]:
    (tmp_path / "bios.bin").write_bytes(IMAGE.content)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        digest = f"sha256:{hashlib.sha256(IMAGE.content).hexdigest()}"
        yield f"http://127.0.0.1:{web.server_port}/bios.bin", digest
        web.shutdown()


def test_firmware_goes_to_one_host_first_and_stops_where_it_failed(image: tuple[str, str]) -> None:
    states = [StrictState(), StrictState(refuses_after="bad"), StrictState(), StrictState()]
    with served(states[0]) as g1, served(states[1]) as g2, served(states[2]) as g3, served(states[3]) as g4:
        machines = PodMachines({"g1": g1, "g2": g2, "g3": g3, "g4": g4})
        told = machines.update("BIOS", *image, wave=2).hosts
    assert told["g1"] == {"component": "BIOS", "before": "1.0", "after": "2.0", "said": "done"}
    assert told["g2"]["error"].endswith("refused the image: bad")
    assert told["g3"]["said"] == "done"
    assert told["g4"] == {"error": "not begun, since it failed on g2"}
    assert states[3].asked == []
