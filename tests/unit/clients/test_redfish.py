"""What is said of a management controller that is not there; a real one is in tests/real/test_redfish.py."""

from __future__ import annotations

import socket

import pytest

from podwright.clients.redfish import Redfish
from podwright.spec.problems import Refusal


def test_a_controller_that_cannot_be_reached_is_a_target_that_is_away() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(Refusal, match="cannot be reached") as caught:
        Redfish(address, "user:password").get("/redfish/v1")
    assert caught.value.exit_code == 3
