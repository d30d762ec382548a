"""Commands over ssh, through a real sshd on the loopback."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from podwright.clients.ssh import Here, Ssh
from podwright.spec.problems import Refusal
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


def feed(out: BinaryIO) -> None:
    for _ in range(64):
        out.write(b"x" * 65536)


@pytest.mark.parametrize("here", [True, False])
def test_what_is_fed_in_pieces_comes_whole_behind_the_secrets(ssh_config: Path, here: bool) -> None:
    reach = Here() if here else Ssh("loop", str(ssh_config))
    answer = reach.call(["sh", "-c", 'printf %s "$KEY_PEM"; wc -c'], feed, VALUES)
    assert answer.text == f"{PEM}{64 * 65536}\n"


@pytest.mark.parametrize("here", [True, False])
def test_a_command_that_takes_nothing_of_it_has_the_word(ssh_config: Path, here: bool) -> None:
    reach = Here() if here else Ssh("loop", str(ssh_config))
    answer = reach.call(["sh", "-c", "echo no room >&2; exit 5"], feed)
    assert (answer.code, answer.err) == (5, "no room\n")


def test_a_fault_of_who_feeds_is_told(ssh_config: Path) -> None:
    def vanish(out: BinaryIO) -> None:
        raise FileNotFoundError("code.tar")

    with pytest.raises(FileNotFoundError, match=r"code\.tar"):
        Ssh("loop", str(ssh_config)).call(["cat"], vanish)


def test_a_login_that_looks_like_an_option_is_a_host_to_ssh(ssh_config: Path) -> None:
    """`ssh -V` would print a version and end well."""
    with pytest.raises(Refusal, match=r"-V: it cannot be reached: .*hostname"):
        Ssh("-V", str(ssh_config)).call(["true"])
    assert Ssh("-V").terminal(["id"])[-3:-1] == ["--", "-V"]


def taken(folder: Path, kind: str) -> None:
    """What another user may do to a name in a folder that all may write."""
    if kind == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a link":
        (folder.parent / "private").mkdir(mode=0o700)
        folder.symlink_to(folder.parent / "private")
    else:
        folder.write_text("")


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_a_folder_of_sockets_that_is_taken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    usual = tmp_path / f"podwright-ssh-{os.getuid()}"
    taken(usual, kind)
    [path] = [part for part in Ssh("loop").terminal([]) if part.startswith("ControlPath=")]
    folder = Path(path.removeprefix("ControlPath=")).parent
    assert folder != usual
    assert folder.stat().st_mode & 0o777 == 0o700
    usual.rename(tmp_path / "away")
    assert f"ControlPath={usual}/" in " ".join(Ssh("loop").terminal([]))


def test_a_port_is_reached_through_the_login_node(ssh_config: Path) -> None:
    reach = Ssh("loop", str(ssh_config))
    with socket.create_server(("127.0.0.1", 0)) as server, reach.connect(*server.getsockname()) as line:
        there, _ = server.accept()
        with there, there.makefile("rb") as heard:
            line.sendall(b"question")
            line.shutdown(socket.SHUT_WR)
            assert heard.read() == b"question"
            there.sendall(b"answer")
        with line.makefile("rb") as heard:
            assert heard.read() == b"answer"


def test_a_port_where_nobody_listens_ends_without_a_word(ssh_config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Ssh("loop", str(ssh_config)).connect("127.0.0.1", port) as line:
        assert line.recv(1) == b""
