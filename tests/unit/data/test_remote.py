"""Data behind an address: an HTTP server's index pages, whatever they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.data.tree import remote
from podwright.data.tree.remote import RemoteFile
from podwright.pilot.data import sources
from tests.fixtures.canned import answer_of, opener_of
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


ODD = {"negative": (-1, 0.0), "huge": (1 << 70, 0.0), "old": (3, -1.0), "never": (3, 1e18)}


def test_sizes_and_times_that_no_file_has_are_named_and_left_out(ask: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [RemoteFile(path, *facts, "v1") for path, facts in {**ODD, "good.txt": (3, 0.0)}.items()]
    monkeypatch.setitem(remote._LISTERS, "http", lambda address: iter(listed))  # type: ignore[index]
    scanned = ask("scan", "http://127.0.0.1:1/x", "--name", "web", code=1)
    assert {row["path"]: row["why"] for row in scanned["unread"]} == dict.fromkeys(
        ODD, "has a size or a time that no file has"
    )
    assert scanned["files"] == 1


@pytest.mark.parametrize("header", ["Content-Length: x", f"Content-Length: {10**40}", "X: y"])
def test_a_server_that_says_no_size_is_refused_in_words(ask: Say, monkeypatch: pytest.MonkeyPatch, header: str) -> None:
    """Its page has links that are no addresses, too."""
    page = answer_of(b"<a href='http://[x'><a href='//[::1'><a href='one.txt'>")
    opener = opener_of(lambda request: page if request.get_method() == "GET" else answer_of(b"", header))
    monkeypatch.setattr(sources, "_opener", lambda signed: opener)
    (problem,) = ask("scan", "http://127.0.0.1:1/x", "--name", "web", code=3)["errors"]
    assert problem["message"] == "http://127.0.0.1:1/x/one.txt: the server does not say how large it is"


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


def test_files_whose_list_names_no_version_are_summed_by_size_and_time(
    ask: Say, tree: Path, served: CountedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [replace(file, etag="") for file in remote._LISTERS["http"](served.address)]
    monkeypatch.setitem(remote._LISTERS, "http", lambda address: iter(listed))  # type: ignore[index]
    assert ask("scan", served.address, "--name", "web", "--checksums")["summed"] == 36
    other = listed[0]
    listed[0] = replace(other, mtime_s=other.mtime_s - 5)
    ask("scan", served.address, "--name", "web", "--checksums")
    query = "select path from files where sha256 is null"
    assert ask("sql", "web", query)["rows"] == [[other.path]], "it is not what the list says"


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
