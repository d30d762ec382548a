"""Files that are no files, or not the ones that were meant."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from podwright import spec

GOOD = "name: train\ncommand: python train.py\n"


def refused(path: Path | str) -> spec.Refusal:
    with pytest.raises(spec.Refusal) as caught:
        spec.load(path)
    return caught.value


def test_missing_file_with_a_close_name(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(GOOD)
    said = str(refused(tmp_path / "worload.yaml"))
    assert said == f"{tmp_path}/worload.yaml: there is no such file\n\nhint: did you mean `{tmp_path}/workload.yaml`?"


def test_missing_folder(tmp_path: Path) -> None:
    said = str(refused(tmp_path / "no" / "w.yaml"))
    assert said == f"{tmp_path}/no/w.yaml: there is no such file\n\nhint: there is no folder {tmp_path}/no either"


def test_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(GOOD)
    assert refused(tmp_path / "w.yaml" / "x").problems[0].hint == "a part of the path is not a folder"


def test_folder(tmp_path: Path) -> None:
    assert refused(tmp_path).problems[0].message == "is a folder, not a file"


def test_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.yaml")
    assert refused(tmp_path / "w.yaml").problems[0].message == "is a pipe, not a file"


def test_device() -> None:
    assert refused("/dev/zero").problems[0].message == "is a device, not a file"


def test_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert refused(tmp_path / "s").problems[0].message == "is a socket, not a file"


def test_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    assert refused(path).problems[0].message == "is larger than 1 MiB"


def test_file_that_grows_while_it_is_read_is_bounded() -> None:
    # /proc files say that they are empty, whatever they hold.
    assert refused("/proc/cpuinfo").exit_code == 2


def test_name_with_a_nul() -> None:
    assert refused("a\0b").problems[0].message == "cannot be read: embedded null byte"


def test_name_that_is_too_long(tmp_path: Path) -> None:
    assert refused(tmp_path / ("x" * 300)).problems[0].message == "cannot be read: file name too long"


def test_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").symlink_to(tmp_path / "w.yaml")
    assert refused(tmp_path / "w.yaml").problems[0].message == "cannot be read: too many levels of symbolic links"


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(GOOD)

    def deny(*arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, who may read everything.
    monkeypatch.setattr(os, "open", deny)
    assert str(refused(path)) == f"{path}: may not be read by you\n\nhint: look at its rights: ls -l {path}"


def test_byte_order_mark_is_taken(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert spec.load(tmp_path / "w.yaml").name == "train"


def test_windows_lines_keep_their_places(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_bytes(b"name: train\r\ncommand: x\r\nnodes: 0\r\n")
    assert [(one.line, one.column) for one in refused(tmp_path / "w.yaml").problems] == [(3, 8)]
