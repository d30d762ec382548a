"""Data behind an address: an HTTP server's index pages, whatever they say."""

from __future__ import annotations

import pytest

from podwright.data.tree import remote
from podwright.data.tree.remote import RemoteFile
from tests.unit.data.conftest import Say

HOSTILE = ("../../escaped.txt", "/etc/escaped.txt", "a/../../b", "a//b", "./c", "nul\0name")


def test_names_that_are_no_path_are_named_and_left_out(ask: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [RemoteFile(path, 3, 0.0, "v1") for path in (*HOSTILE, "good.txt", "a/fine..txt")]
    monkeypatch.setitem(remote._LISTERS, "http", lambda address: iter(listed))  # type: ignore[index]
    scanned = ask("scan", "http://127.0.0.1:1/x", "--name", "web", code=1)
    assert scanned["files"] == 2
    assert {row["path"] for row in scanned["unread"]} == set(HOSTILE)
    assert {row["why"] for row in scanned["unread"]} == {"is no path below the address"}
    assert sorted(row["path"] for row in ask("find", "web")["files"]) == ["a/fine..txt", "good.txt"]
