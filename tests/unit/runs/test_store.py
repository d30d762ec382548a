"""The home: runs appear whole, are found by what a user types, and a bad home is said in words."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podwright.runs import Home, store
from podwright.runs.store import home_refusal
from podwright.spec.problems import Refusal
from tests.unit.runs.made import START, asked, end, event, go, result, write_lines

Add = Callable[..., str]
NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write everywhere; another user may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that another user may enter: pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        for folder in [path, *path.rglob("*")]:
            if folder.is_dir():
                folder.chmod(0o755)


# making


def test_a_new_home_has_its_layout(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "a" / "home")
    assert (home.path / "version").read_text() == "1\n"
    assert sorted(path.name for path in home.path.iterdir()) == ["code", "runs", "version"]
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert Home.open(home.path).path == home.path


def test_the_home_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "mine"))
    assert Home.open().path == tmp_path / "mine"
    monkeypatch.delenv("PODWRIGHT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Home.open().path == tmp_path / "data" / "podwright"


def test_a_home_of_a_newer_version_is_refused(home: Home) -> None:
    (home.path / "version").write_text("2\n")
    with pytest.raises(Refusal) as caught:
        Home.open(home.path)
    assert str(caught.value) == (
        f"{home.path} was written by a newer Podwright (layout 2, this one knows 1)\n\n"
        "hint: update Podwright, or set PODWRIGHT_HOME to another folder"
    )
    assert caught.value.exit_code == 2


def test_a_damaged_version_is_refused(home: Home) -> None:
    (home.path / "version").write_text("one\n")
    with pytest.raises(Refusal, match=r"version is damaged: it should hold a number"):
        Home.open(home.path)


def test_a_file_in_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(Refusal, match=r"home cannot be written: not a directory"):
        Home.open(tmp_path / "home")


def test_runs_that_were_removed_by_hand_leave_a_home_that_works(home: Home) -> None:
    home.runs.rmdir()
    fresh = Home.open(home.path)
    fresh.sync()
    assert list(fresh.all_ids()) == []


# creating


def test_a_run_appears_whole(home: Home) -> None:
    stored = home.store(b"tar", "tar")
    folder = home.create(asked(), {"job/node.sh": b"#!/bin/sh\n", "token": b"t\n"}, {"job/code.tar": stored})
    assert folder.asked == asked()
    names = ("job/node.sh", "job/code.tar", "token", "run.json")
    modes = {name: stat.S_IMODE((folder.path / name).stat().st_mode) for name in names}
    assert modes == {"job/node.sh": 0o700, "job/code.tar": 0o400, "token": 0o600, "run.json": 0o600}
    assert [path.name for path in home.runs.iterdir()] == ["toy-2222"]


@pytest.mark.parametrize("step", range(6))
def test_a_client_killed_while_creating_leaves_no_run(home: Home, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Whatever it was doing: what is there afterwards is nothing that looks like a run."""
    calls = {"n": 0}

    class Killed(BaseException):
        pass

    def count(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            calls["n"] += 1
            if calls["n"] > step:
                raise Killed
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "replace", "hardlink_to"):
            patch.setattr(Path, name, count(getattr(Path, name)))
        patch.setattr(store, "_write", count(store._write))
        with pytest.raises(Killed):
            home.create(asked(), {"job/order.json": b"{}"}, {})
    assert list(home.all_ids()) == []
    assert not home.has("toy-2222")
    assert Home.open(home.path).rebuild() == 0


def test_an_id_that_is_taken_is_not_overwritten(home: Home) -> None:
    home.create(asked(), {"a": b"first"}, {})
    with pytest.raises(Refusal, match=r"cannot be written: directory not empty"):
        home.create(asked(), {"a": b"second"}, {})
    assert (home.runs / "toy-2222" / "a").read_bytes() == b"first"
    assert [path.name for path in home.runs.iterdir()] == ["toy-2222"]


def test_a_full_disk_is_said_and_leaves_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Refusal) as caught:
            home.create(asked(), {"job/order.json": b"{}"}, {})
        with pytest.raises(Refusal, match="no space left on device"):
            home.store(b"tar", "tar")
    assert str(caught.value) == (
        f"{home.path} cannot be written: no space left on device\n\n"
        "hint: free some space, or set PODWRIGHT_HOME to a folder on another disk"
    )
    assert list(home.runs.iterdir()) == list(home.code.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EDQUOT, "free some of your quota, or set PODWRIGHT_HOME to a folder elsewhere"),
        (errno.EROFS, "set PODWRIGHT_HOME to a folder that can be written"),
        (errno.EACCES, "set PODWRIGHT_HOME to a folder of your own"),
        (errno.EIO, "set PODWRIGHT_HOME to another folder"),
    ],
)
def test_each_trouble_has_its_hint(number: int, hint: str) -> None:
    words = str(home_refusal(Path("/h"), OSError(number, os.strerror(number))))
    assert words == f"/h cannot be written: {os.strerror(number).lower()}\n\nhint: {hint}"


def test_a_home_that_cannot_be_made_is_said(readable: Path) -> None:
    readable.chmod(0o555)
    with as_nobody(), pytest.raises(Refusal) as caught:
        Home.open(readable / "home")
    assert str(caught.value) == (
        f"{readable / 'home'} cannot be written: permission denied\n\nhint: set PODWRIGHT_HOME to a folder of your own"
    )


def test_a_read_only_home_is_still_read(readable: Path) -> None:
    home = Home.open(readable / "home")
    home.create(asked(), {}, {})
    write_lines(home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl", go(), end())
    home.rebuild()
    home.index.close()
    for path in [home.path, *home.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with as_nobody():
        other = Home.open(home.path)
        assert other.resolve("toy") == "toy-2222"
        assert other.read("toy-2222").state == "succeeded"
        assert [record.state for record in other.index.latest(10)] == ["succeeded"]
        with pytest.raises(Refusal, match=r"cannot be written: permission denied"):
            other.create(asked("toy-3333"), {}, {})
        other.index.close()


# finding


def test_what_a_user_may_type(home: Home, add: Add) -> None:
    add("toy-2222", created_at=START)
    add("toy-2345", created_at=START + 2)
    add("segmentation-7f3k", created_at=START + 1)
    assert home.resolve("toy-2222") == "toy-2222"
    assert home.resolve("toy-22") == "toy-2222"
    assert home.resolve("seg") == "segmentation-7f3k"
    assert home.resolve("last") == "toy-2345"


@pytest.mark.parametrize(
    "ref",
    [
        "none",
        "",
        " ",
        "../x",
        "../runs/toy-2222",
        "/etc",
        ".",
        "..",
        "toy-2222/",
        "a\0b",
        "x" * 5000,
        "%",
        "_",
        "\udcff",
    ],
)
def test_what_is_no_run(home: Home, add: Add, ref: str) -> None:
    add("toy-2222")
    with pytest.raises(Refusal) as caught:
        home.resolve(ref)
    assert caught.value.problems[0].message.startswith("there is no run ")
    assert caught.value.problems[0].hint == "`podwright ps --all` lists them"


def test_an_ambiguous_start_names_the_runs(home: Home, add: Add) -> None:
    add("toy-2222")
    add("toy-2233")
    with pytest.raises(Refusal) as caught:
        home.resolve("toy-2")
    assert str(caught.value) == "'toy-2' may be any of toy-2222, toy-2233\n\nhint: give more of the id"


def test_no_run_yet(home: Home) -> None:
    with pytest.raises(Refusal) as caught:
        home.resolve("last")
    assert str(caught.value) == "there is no run yet\n\nhint: start one with `podwright run WORKLOAD`"


def test_the_start_of_a_parent_is_the_parent(home: Home, add: Add) -> None:
    add("toy-2222", points=30)
    for i in range(30):
        add(f"toy-2222-{i + 1}", parent="toy-2222", index=i)
    assert home.resolve("toy") == "toy-2222"
    assert home.resolve("toy-2222-3") == "toy-2222-3"
    assert home.resolve("last") == "toy-2222"


def test_many_points_do_not_hide_another_run(home: Home, add: Add) -> None:
    add("toy-2222", points=30)
    for i in range(30):
        add(f"toy-2222-{i + 1}", parent="toy-2222", index=i)
    add("toy-zzzz")
    with pytest.raises(Refusal, match="may be any of toy-2222, toy-zzzz"):
        home.resolve("toy")


def test_a_run_whose_name_starts_with_anothers_id_is_not_hidden(home: Home, add: Add) -> None:
    add("toy-2222")
    add("toy-2222-3333", name="toy-2222")
    with pytest.raises(Refusal, match="may be any of toy-2222, toy-2222-3333"):
        home.resolve("toy")


def test_new_ids_are_free_and_readable(home: Home) -> None:
    ids = {home.new_id("toy") for _ in range(50)}
    assert len(ids) == 50
    assert all(len(one) == 8 and not set("01ilou") & set(one[4:]) for one in ids)


# reading, removing


def test_a_parent_is_read_from_its_points(home: Home, add: Add) -> None:
    add("toy-2222", points=2)
    for i in (1, 2):
        add(f"toy-2222-{i}", parent="toy-2222")
        write_lines(home.runs / f"toy-2222-{i}" / "record" / "n0.r0" / "events.jsonl", go(), end())
    assert home.read("toy-2222").state == "succeeded"


def test_a_parent_without_any_point_is_lost_in_the_end(home: Home, add: Add) -> None:
    """Its client died between the two; it must not stay pending forever."""
    add("toy-2222", points=2)
    record = home.read("toy-2222")
    assert (record.state, record.reason) == ("lost", "the client that started it died before it was submitted")


def test_what_was_read_goes_on_from_there(home: Home, add: Add) -> None:
    add("toy-2222")
    events = home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl"
    assert home.read("toy-2222").state == "pending"
    write_lines(events, go())
    assert home.read("toy-2222").state == "starting"
    write_lines(events, end())
    assert home.read("toy-2222").state == Home.open(home.path).read("toy-2222").state == "succeeded"


def test_removing_takes_the_folder_and_what_no_run_was_made_with_lately(home: Home) -> None:
    old, used = home.store(b"old", "tar"), home.store(b"used", "tar")
    for path in (old, used):
        os.utime(path, (START, START))
    home.store(b"used", "tar")
    home.create(asked("toy-2222"), {}, {"code.tar": old})
    home.create(asked("toy-3333"), {}, {"code.tar": used})
    home.remove("toy-2222")
    assert list(home.all_ids()) == ["toy-3333"]
    assert list(home.code.iterdir()) == [used]
    with pytest.raises(Refusal, match="there is no run 'toy-2222'"):
        home.resolve("toy-2222")


def test_a_run_may_lie_where_the_nodes_of_a_cluster_see_it(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "shared" / "runs"
    folder = home.create(asked("far-2222"), {"job/batch.sh": b"#!/bin/sh"}, {}, root)
    assert folder.path.resolve() == root / "far-2222"
    assert home.has("far-2222")
    assert list(home.all_ids()) == ["far-2222"]
    assert home.resolve("far") == "far-2222"
    home.remove("far-2222")
    assert list(root.iterdir()) == []
    assert list(home.runs.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "it holds no JSON object"),
        ('{"id": "toy-2222", "unknown": 1}', "name is missing"),
        ("[" * 100_000, "maximum recursion depth"),
    ],
)
def test_a_run_whose_file_is_damaged_is_shown_lost_with_the_reason(
    home: Home, add: Add, text: str, reason: str
) -> None:
    add("toy-2222")
    add("toy-3333")
    (home.runs / "toy-2222" / "run.json").write_text(text)
    with pytest.raises(Refusal, match=rf"run\.json cannot be read: {reason}"):
        home.read("toy-2222")
    assert home.rebuild() == 2
    shown = {record.id: record for record in home.index.latest(None)}
    assert shown["toy-2222"].state == "lost"
    assert shown["toy-2222"].reason.startswith(f"its record cannot be read: run.json cannot be read: {reason}")
    assert shown["toy-3333"].state == "pending"


def test_a_file_of_another_run_is_not_taken_for_its_own(home: Home, add: Add) -> None:
    add("toy-2222")
    add("toy-3333")
    text = (home.runs / "toy-3333" / "run.json").read_text()
    (home.runs / "toy-2222" / "run.json").write_text(text)
    with pytest.raises(Refusal, match="it is the file of another run"):
        Home.open(home.path).read("toy-2222")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("created_at", "soon"),
        ("created_at", 1e300),
        ("nodes", "2"),
        ("nodes", -1),
        ("workload", []),
        ("points", 10**12),
        ("parent", 7),
        ("target", None),
    ],
)
def test_a_field_of_another_type_is_said(home: Home, add: Add, field: str, value: object) -> None:
    add("toy-2222")
    path = home.runs / "toy-2222" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(Refusal, match=rf"run\.json cannot be read: {field} is"):
        home.read("toy-2222")


def test_files_that_were_made_anew_are_read_from_their_beginning(home: Home, add: Add) -> None:
    add("toy-2222")
    path = home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl"
    write_lines(path, go(), event("ready", 2.0), result(3.0, loss=0.5))
    assert home.read("toy-2222").state == "running"
    path.unlink()
    assert home.read("toy-2222").attempts == 0
    write_lines(path, end())
    assert home.read("toy-2222").state == "succeeded"


@pytest.mark.parametrize("content", [b"\xc2\xb2\n", b"\xff\xfe", b"", b"9" * 5000])
def test_a_version_that_is_no_number_is_said(home: Home, content: bytes) -> None:
    (home.path / "version").write_bytes(content)
    with pytest.raises(Refusal, match="version is damaged: it should hold a number"):
        Home.open(home.path)


def test_a_home_of_a_user_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", "~nosuchuser/x")
    with pytest.raises(Refusal, match="PODWRIGHT_HOME is ~nosuchuser/x, and there is no such user"):
        Home.open()


MAKER = """
import sys
from pathlib import Path
from podwright.runs import Home
from tests.unit.runs.made import asked
Home.open(Path(sys.argv[1])).create(asked(sys.argv[2]), {}, {})
"""


def test_a_run_made_by_another_process_is_seen(home: Home, add: Add) -> None:
    add("toy-2222", created_at=START)
    home.sync()
    subprocess.run([sys.executable, "-c", MAKER, home.path, "late-7777"], check=True)
    home.sync()
    assert home.index.ids() == {"toy-2222", "late-7777"}
    Home.open(home.path).remove("late-7777")
    home.sync()
    assert home.index.ids() == {"toy-2222"}
