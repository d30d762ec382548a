"""Commands over ssh, through a real sshd on the loopback."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from podwright.clients.ssh import Ssh
from tests.fixtures.sshd import ssh_config

__all__ = ["ssh_config"]
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n\nLD_PRELOAD=evil.so\n-----END PRIVATE KEY-----\n"
ACCOUNT = json.dumps({"type": "service_account", "private_key": PEM, "n": "a\\nb $HOME `id` 'q'"}, indent=2)
VALUES = {
    "KEY_PEM": PEM,
    "KEY_JSON": ACCOUNT,
    "KEY_BYTES": os.fsdecode(bytes(range(1, 256))),
    "KEY_END": "ends with newlines.\n\n\n",
    "KEY_BACKSLASH": "\\0101\\c \\n % %s\\",
    "KEY_EMPTY": "",
}
SHOW = "import os, json; print(json.dumps({k: list(os.fsencode(v)) for k, v in os.environ.items()}))"


def test_secrets_arrive_whole_whatever_they_hold(ssh_config: Path) -> None:
    answer = Ssh("loop", str(ssh_config)).call([sys.executable, "-c", SHOW], env=VALUES)
    assert (answer.code, answer.err) == (0, "")
    environ = {name: os.fsdecode(bytes(value)) for name, value in json.loads(answer.text).items()}
    assert {name: environ.get(name) for name in VALUES} == VALUES
    assert "LD_PRELOAD" not in environ
    assert not {"line", "value"} & set(environ)


@pytest.mark.parametrize("stdin", [b"", b"the command's own\n\n\x00\xff"])
def test_standard_input_behind_secrets_is_the_commands_own(ssh_config: Path, stdin: bytes) -> None:
    assert Ssh("loop", str(ssh_config)).call(["cat"], stdin, VALUES).out == stdin
