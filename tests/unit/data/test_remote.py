"""Data behind an address: an HTTP server's index pages, whatever they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.data.tree import remote
from podwright.data.tree.remote import RemoteFile
from tests.fixtures.counted import CountedServer
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


@pytest.fixture
def served(tree: Path) -> Iterator[CountedServer]:
    with CountedServer(tree) as server:
        yield server


def test_data_behind_an_address_is_counted_and_chosen_as_in_a_folder(
    ask: Say, tree: Path, served: CountedServer
) -> None:
    ask("scan", tree, "--name", "here", "--checksums")
    assert ask("scan", served.address, "--name", "web", "--checksums")["summed"] == 36
    served.busy, served.broken = 3, 2  # taken up where it broke
    here, web = ask("stats", "here"), ask("stats", "web")
    assert web == {**here, "dataset": "web"}
    sums = "select path, sha256 from files order by path"
    assert ask("sql", "web", sums)["rows"] == ask("sql", "here", sums)["rows"]
    choice = ("--split", "train=0.5,validation=0.5", "--representative")
    first, second = ask("select", "here", "--name", "one", *choice), ask("select", "web", "--name", "two", *choice)
    assert (first["digest"], first["splits"]) == (second["digest"], second["splits"])


def test_what_a_server_does_not_give_is_not_read_and_not_broken(ask: Say, tree: Path, served: CountedServer) -> None:
    ask("scan", served.address, "--name", "web")
    label = sorted(tree.rglob("*_label_*.png"))[0]
    content = label.read_bytes()
    label.unlink()
    stats = ask("stats", "web", code=1)
    assert (stats["images"], stats["broken"], stats["not_read"], stats["counted"]) == (11, 0, 1, 11)
    (named,) = stats["not_read_files"]
    assert named == {"path": str(label.relative_to(tree)), "why": "the server says 404 not found"}
    label.write_bytes(content)
    again = ask("stats", "web")
    assert (again["images"], again["not_read"], again["counted"]) == (12, 0, 1)


def test_a_server_that_is_gone_publishes_nothing(ask: Say, tree: Path, served: CountedServer) -> None:
    ask("scan", served.address, "--name", "web")
    for path in tree.rglob("*_label_*.png"):
        path.unlink()
    (problem,) = ask("stats", "web", code=3)["errors"]
    assert problem["message"].startswith("none of 12 labels could be read: ")
    (problem,) = ask("select", "web", "--name", "x", "--representative", code=2)["errors"]
    assert problem["hint"] == "podwright data stats web"


def test_an_object_that_was_renamed_keeps_what_is_known(ask: Say, tree: Path, served: CountedServer) -> None:
    note = tree / "note.txt"
    note.write_text("one of its kind")
    ask("scan", served.address, "--name", "web", "--checksums")
    ask("tag", "web", "name=note.txt", "seen=yes")
    note.rename(tree / "other.txt")
    assert ask("scan", served.address, "--name", "web")["renamed"] == 1
    assert ask("find", "web", 'seen=yes and name=other.txt and sha256>""')["count"] == 1
