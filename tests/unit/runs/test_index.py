"""The index is only a cache: thrown away, broken or elsewhere, the folders tell the same."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from podwright.runs import Home, Record, index
from podwright.runs.index import Index, file_system_of, index_path
from tests.unit.runs.made import START, asked, end, go, write_lines

Add = Callable[..., str]

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
nas:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
scratch /scratch/a\\040b lustre rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> str:
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    return str(path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/x", "ext4"),
        ("/home/user", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/user", "ext4"),
        ("/home/local/user", "xfs"),
        ("/scratch/a b/c", "lustre"),
    ],
)
def test_the_longest_mount_point_counts(mounts: str, path: str, kind: str) -> None:
    assert file_system_of(Path(path), mounts) == kind


def test_without_a_list_of_mounts_the_kind_is_unknown(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, str(tmp_path / "none")) == ""


def test_on_a_network_file_system_the_index_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    homes = [tmp_path / "a", tmp_path / "b"]
    assert index_path(homes[0]) == homes[0] / "index.db"
    monkeypatch.setattr(index, "file_system_of", lambda path: "nfs4")
    there = [index_path(home) for home in homes]
    assert {path.parent for path in there} == {tmp_path / "cache" / "podwright"}
    assert len(set(there)) == 2
    home = Home.open(homes[0])
    home.create(asked(), {}, {})
    assert home.resolve("toy") == "toy-2222"
    assert there[0].exists()
    assert not (homes[0] / "index.db").exists()


def filled(home: Home, add: Add) -> list[str]:
    ids = [add(f"toy-{letter * 4}", created_at=START + i) for i, letter in enumerate("abcd")]
    write_lines(home.runs / ids[0] / "record" / "n0.r0" / "events.jsonl", go(), end())
    home.sync()
    return ids


def listed(home: Home) -> list[tuple[str, str]]:
    home.sync()
    return [(record.id, record.state) for record in home.index.latest(None)]


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "not a database": lambda path: path.write_bytes(b"not a database at all" * 100),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "scribbled on": lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xaa" * (path.stat().st_size - 4096)),
    "of another version": lambda path: sqlite3.connect(path).execute("PRAGMA user_version = 77").connection.close(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_index_is_made_anew(home: Home, add: Add, damage: Callable[[Path], object]) -> None:
    ids = filled(home, add)
    before = listed(home)
    home.index.close()
    damage(home.path / "index.db")
    other = Home.open(home.path)
    assert listed(other) == before == list(zip(ids, ["succeeded", "pending", "pending", "pending"], strict=True))
    other.index.close()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_rebuild_mends_any_damage(home: Home, add: Add, damage: Callable[[Path], object]) -> None:
    filled(home, add)
    home.index.close()
    damage(home.path / "index.db")
    other = Home.open(home.path)
    assert other.rebuild() == 4
    assert len(listed(other)) == 4
    other.index.close()


def test_rebuild_clears_up_after_killed_clients(home: Home, add: Add) -> None:
    add("toy-2222")
    for name in (".toy-3333.77.part", ".toy-4444.78.gone", ".toy-5555.79.part"):
        (home.runs / name / "job").mkdir(parents=True)
    os.utime(home.runs / ".toy-3333.77.part", (START, START))
    os.utime(home.runs / ".toy-4444.78.gone", (START, START))
    home.rebuild()
    assert sorted(path.name for path in home.runs.iterdir()) == [".toy-5555.79.part", "toy-2222"]


def record(run_id: str, state: str, created_at: float = START, parent: str | None = None) -> Record:
    return Record(run_id, "toy", "local", state, "/x", 1, 1, created_at, parent)


def test_open_runs_are_those_that_may_still_change(home: Home, add: Add) -> None:
    records = [
        record("a", "running"),
        record("b", "succeeded"),
        record("c", "running", parent="a"),
        record("d", "lost", START - 8 * 86400),
        record("e", "lost", START - 86400),
        record("f", "pending", START - 90 * 86400),
    ]
    home.index.put(records)
    assert home.index.open_ids(START) == ["f", "e", "a"]


def test_many_threads_with_an_index_each_do_not_hurt_each_other(home: Home) -> None:
    """As ten clients on one home: each has its own connection."""
    home.index.put([record("first", "pending")])
    errors: list[BaseException] = []

    def client(number: int) -> None:
        own = Index(home.path / "index.db")
        try:
            for i in range(10):
                own.put([record(f"{number}-{i}", "pending", time.time())])
                own.latest(3)
        except sqlite3.Error as error:
            errors.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(home.index.ids()) == 101
    home.index.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE runs; CREATE TABLE runs (id TEXT)",
        "DROP TABLE seen",
        "UPDATE runs SET record = '{'",
        "UPDATE runs SET record = '[]'",
        "UPDATE runs SET record = json_set(record, '$.nodes', 'two')",
        "UPDATE runs SET record = json_set(record, '$.state', 'weird')",
        "UPDATE runs SET record = json_set(record, '$.id', 'other-2222')",
        "UPDATE runs SET record = x'00ff'",
        "UPDATE seen SET runs_ns = 'soon'",
    ],
)
def test_an_index_of_another_shape_is_made_anew(home: Home, add: Add, damage: str) -> None:
    add("toy-2222")
    add("toy-3333", created_at=START + 1)
    home.sync()
    home.index.see(7)
    home.index.close()
    with closing(sqlite3.connect(home.path / "index.db")) as link:
        link.executescript(damage)
    again = Home.open(home.path)
    again.sync()
    assert [record.id for record in again.index.latest(None)] == ["toy-2222", "toy-3333"]
