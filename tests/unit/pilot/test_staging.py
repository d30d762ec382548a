"""Nodes that bring data, each with a cache of its own, in one process: real sockets, a real server."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.data.cache import STALE_S, Cache, NoRoom
from podwright.pilot.data.manifest import StagedInput
from podwright.pilot.data.peers import PeerAddress, PeerServer
from podwright.pilot.data.seals import SEALED_NS
from podwright.pilot.data.staging import Stager, StagingIdentity
from podwright.pilot.system.loop import Loop
from tests.fixtures.counted import CountedServer, counted

TOKEN = b"token"
COUNT, SIZE = 20, 30_000


class StagingNode:
    """A node with its shelf and its door, whose loop turns in a thread."""

    def __init__(self, number: int, nodes: int, rows: list[dict[str, Any]], cache: Cache, run: str = "toy") -> None:
        self.number, self.cache, self.run = number, cache, run
        self.answers: list[str | None] = []
        self.answered = threading.Event()
        identity = StagingIdentity(run, number, nodes, f"n{number}.r0")
        self.stager = Stager(identity, lambda: [StagedInput("frames", {}, rows)], cache, TOKEN, {}, self._done)
        self.loop = Loop()
        self.server = PeerServer(self.loop, "127.0.0.1", TOKEN, f"i{number}", nodes, self.stager.shelf)
        self._over = False
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()
        self.stager.start()

    def _turn(self) -> None:
        while not self._over:
            self.loop.turn(0.02)

    def _done(self, why: str | None) -> None:
        self.answers.append(why)
        self.answered.set()

    @property
    def address(self) -> PeerAddress:
        return PeerAddress(self.number, "127.0.0.1", self.server.port)

    def close(self) -> None:
        if self._over:
            return
        self._over = True
        self._thread.join()
        self.server.close()
        self.loop._selector.close()
        self.stager.close()


def stage(nodes: list[StagingNode]) -> list[str | None]:
    """Let the nodes know each other and wait for all; return what each said last."""
    for node in nodes:
        node.answered.clear()
    for node in nodes:
        node.stager.stage([other.address for other in nodes])
    for node in nodes:
        assert node.answered.wait(60)
    return [node.answers[-1] for node in nodes]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CountedServer]:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.bin").write_bytes(os.urandom(SIZE))
    with counted(folder) as server:
        yield server


def rows_of(server: CountedServer, sums: bool = True) -> list[dict[str, Any]]:
    rows = []
    for path in sorted(server.root.iterdir()):
        data = path.read_bytes()
        row = {"path": f"sub/{path.name}", "size": len(data), "source": f"{server.address}/{path.name}"}
        rows.append({**row, "sha256": hashlib.sha256(data).hexdigest() if sums else None, "etag": None})
    return rows


Start = Callable[..., list[StagingNode]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[StagingNode] = []

    def make(
        count: int, rows: list[dict[str, Any]], run: str = "toy", limit: int | None = None, verify: bool = False
    ) -> list[StagingNode]:
        nodes = []
        for number in range(count):
            cache = Cache(str(tmp_path / f"cache{number}"), limit, reserve_bytes=0, verify=verify)
            nodes.append(StagingNode(number, count, rows, cache, run))
        started.extend(nodes)
        return nodes

    yield make
    for node in started:
        node.close()


def check_files(node: StagingNode, server: CountedServer) -> None:
    folder = Path(node.cache.run_folder(node.run)) / "frames" / "sub"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in server.root.iterdir()
    }


@pytest.mark.parametrize("sums", [True, False])
def test_three_nodes_with_caches_of_their_own_read_the_source_once(
    server: CountedServer, start: Start, sums: bool
) -> None:
    nodes = start(3, rows_of(server, sums))
    assert stage(nodes) == [None] * 3
    assert server.sent_bytes == COUNT * SIZE
    for node in nodes:
        check_files(node, server)
        counts = node.stager.counts
        assert counts.from_source + counts.from_peers == COUNT * SIZE
        assert (os.stat(node.cache.root).st_mode & 0o777) == 0o700  # noqa: PTH116
        node.close()
        assert not os.listdir(node.cache.run_folder("..") + "/runs")  # noqa: PTH208
    again = start(3, rows_of(server, sums), "again")
    assert stage(again) == [None] * 3
    assert server.sent_bytes == COUNT * SIZE
    assert [node.stager.counts.reused for node in again] == [COUNT * SIZE] * 3


def test_a_node_that_replaces_a_lost_one_gets_all_from_its_peers(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    first, second = start(2, rows)
    assert stage([first, second]) == [None, None]
    second.close()
    shutil.rmtree(second.cache.root)
    new = start(2, rows)[1]
    assert stage([first, new]) == [None, None]
    check_files(new, server)
    assert server.sent_bytes == COUNT * SIZE
    assert new.stager.counts.from_peers == COUNT * SIZE


def test_a_node_that_is_lost_while_it_brings_data_holds_up_nobody_for_good(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    server.open.clear()
    first, second = start(2, rows)
    for node in (first, second):
        node.stager.stage([first.address, second.address])
    while not any(method == "GET" for method, _ in list(server.requests)):
        threading.Event().wait(0.01)
    second.close()
    server.open.set()
    third = start(2, rows)[1]
    assert stage([first, third]) == [None, None]
    check_files(first, server)
    check_files(third, server)


def test_what_a_lost_node_was_to_give_is_read_by_who_it_falls_to(server: CountedServer, start: Start) -> None:
    (node,) = start(1, rows_of(server))
    # As a connection of the turn before leaves it, which breaks only when the next turn has begun.
    node.stager.shelf.claimed.add(3)
    server.open.clear()
    node.stager.stage([])
    while not any(method == "GET" for method, _ in list(server.requests)):
        threading.Event().wait(0.01)
    with node.stager._lock:
        node.stager.shelf.claimed.discard(3)
    server.open.set()
    assert node.answered.wait(60)
    check_files(node, server)


def test_what_is_whole_and_has_no_name_yet_is_not_cleared_away(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"), None, reserve_bytes=0)
    cache.make()
    part = tmp_path / "cache" / "part" / "content"
    part.write_bytes(b"whole")
    os.utime(part, ns=(SEALED_NS, SEALED_NS))
    cache.make_room(1, {}, set())
    assert part.exists()
    cache._clear_stale(time.time() + 2 * STALE_S)
    assert not part.exists()


def test_what_is_not_what_was_chosen_is_not_kept(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    (server.root / "3.bin").write_bytes(os.urandom(SIZE))
    (why,) = stage(start(1, rows))
    assert why is not None
    assert "3.bin: its SHA-256 is not that of the file that was chosen" in why


def test_a_stranger_is_not_served(server: CountedServer, start: Start) -> None:
    from podwright.pilot.data.peers import Peer
    from podwright.pilot.system.links import Broken

    (node,) = start(1, rows_of(server))
    assert stage([node]) == [None]
    with pytest.raises(Broken):
        Peer(node.address, b"another token")
    peer = Peer(node.address, TOKEN)
    assert peer.have() == b"\xff\xff\x0f"
    peer.close()


def test_a_full_cache_evicts_what_no_run_uses_and_its_source_still_has(
    server: CountedServer, start: Start, tmp_path: Path
) -> None:
    rows = rows_of(server)
    limit = 12 * SIZE
    (old,) = start(1, rows[:6], "old", limit)
    assert stage([old]) == [None]
    gone = server.root / rows[0]["path"].removeprefix("sub/")
    gone.unlink()
    old.close()
    (living,) = start(1, rows[6:10], "living", limit)
    assert stage([living]) == [None]
    # 10 are there, 12 have room, 6 more are needed: 4 of the old run's must go, and not the one that is the only copy.
    (new,) = start(1, rows[10:16], "new", limit)
    assert stage([new]) == [None]
    keys = {path.name for path in Path(new.cache.root, "objects").rglob("*") if path.is_file()}
    assert rows[0]["sha256"] in keys
    assert {row["sha256"] for row in rows[6:16]} <= keys
    assert len(keys) <= 12
    (more,) = start(1, rows[16:20], "more", limit)
    (why,) = stage([more])
    assert why is not None
    assert "are missing in the cache" in why
    assert sum(path.stat().st_nlink > 1 for path in Path(new.cache.root, "objects").rglob("*") if path.is_file()) == 10


def test_holes_are_holes_on_every_node_that_a_file_comes_to(server: CountedServer, start: Start) -> None:
    path = server.root / "0.bin"
    with path.open("r+b") as file:
        file.truncate(16 << 20)
    nodes = start(2, rows_of(server)[:1])
    assert stage(nodes) == [None] * 2
    assert sorted(node.stager.counts.from_peers for node in nodes) == [0, 16 << 20]
    for node in nodes:
        copy = Path(node.cache.run_folder(node.run)) / "frames" / "sub" / "0.bin"
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_blocks * 512 < 1 << 20


def test_what_was_written_since_is_brought_anew(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    (node,) = start(1, rows)
    assert stage([node]) == [None]
    path = Path(node.cache.object(rows[0]["sha256"]))
    path.chmod(0o600)
    path.write_bytes(b"\0" * SIZE)
    node.close()
    (again,) = start(1, rows, "again")
    assert stage([again]) == [None]
    check_files(again, server)
    assert again.stager.counts.from_source == SIZE


def poison(path: Path) -> None:
    """Write other bytes over a content as a careless rank may, and set size and times back."""
    path.chmod(0o600)
    path.write_bytes(b"\0" * SIZE)
    os.utime(path, ns=(time.time_ns(), SEALED_NS))
    path.chmod(0o400)


@pytest.mark.parametrize("sums", [True, False])
def test_bytes_that_a_run_changed_and_set_back_in_time_never_reach_the_next(
    server: CountedServer, start: Start, sums: bool
) -> None:
    rows = rows_of(server, sums)
    (node,) = start(1, rows)
    assert stage([node]) == [None]
    staged = Path(node.cache.run_folder(node.run)) / "frames" / "sub"
    poison(staged / "0.bin")
    poison(staged / "1.bin")
    node.close()
    (again,) = start(1, rows, "again")
    assert stage([again]) == [None]
    check_files(again, server)
    assert again.stager.counts.from_source == 2 * SIZE


def read_again(cache: Cache) -> list[str]:
    """Return the contents that a run would read again, as something touched them since the cache did."""
    touched = []
    for path in Path(cache.root, "objects").rglob("*"):
        if path.is_file() and not cache.seals.is_as_noted(str(path)):
            touched.append(path.name)
    return touched


def test_what_the_cache_itself_does_to_a_content_is_no_reason_to_read_it_again(
    server: CountedServer, start: Start
) -> None:
    rows = rows_of(server)
    (first,) = start(1, rows)
    assert stage([first]) == [None]
    assert read_again(first.cache) == []
    (second,) = start(1, rows, "second")
    assert stage([second]) == [None]
    assert read_again(first.cache) == []
    first.close()
    assert read_again(second.cache) == []
    Path(second.cache.object(rows[0]["sha256"])).chmod(0o440)
    second.close()
    assert read_again(second.cache) == [rows[0]["sha256"]]
    (third,) = start(1, rows, "third")
    assert stage([third]) == [None]
    assert (read_again(third.cache), third.stager.counts.reused) == ([], COUNT * SIZE)


def test_a_run_that_verifies_reads_all_of_it_again(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    (node,) = start(1, rows)
    assert stage([node]) == [None]
    path = Path(node.cache.object(rows[0]["sha256"]))
    poison(path)
    # Somebody who forges what the cache knows, too.
    facts = path.stat()
    node.cache.seals.note(facts, rows[0]["sha256"], rows[0]["sha256"])
    node.close()
    (trusting,) = start(1, rows, "trusting")
    assert stage([trusting]) == [None]
    assert trusting.stager.counts.from_source == 0
    trusting.close()
    (again,) = start(1, rows, "again", verify=True)
    assert stage([again]) == [None]
    assert again.stager.counts.from_source == SIZE
    check_files(again, server)


def test_an_evicted_content_leaves_nothing_behind(server: CountedServer, start: Start) -> None:
    rows = rows_of(server)
    (node,) = start(1, rows)
    assert stage([node]) == [None]
    cache = node.cache
    node.close()
    with pytest.raises(NoRoom):
        Cache(cache.root, SIZE, reserve_bytes=0).make_room(2 * SIZE, {}, set())
    assert [path for path in Path(cache.root, "objects").rglob("*") if path.is_file()] == []
    assert {path.name for path in Path(cache.root, "seals").rglob("*") if path.is_file()} == {"lock"}
