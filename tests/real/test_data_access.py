"""A catalog that root shares: each user sees of it what he sees of the tree, and can open nothing else."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.checksums import add_checksums
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
ALICE, BOB, CAROL, TEAM = 4101, 4102, 4103, 4242
USERS = {"alice": (ALICE, []), "bob": (BOB, [TEAM]), "carol": (CAROL, [])}

# What Python needs is imported as root, who may read wherever it lies; then the process becomes somebody else.
CHILD = """
import contextlib, io, json, os, subprocess, sys
from pathlib import Path
import duckdb
from podwright.cli.main import main
from podwright.cli.terminal import meter
from podwright.data.policies import checksums
from podwright.data.catalog import rescan

def ask(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["data", *words, "--json"])
    return {"code": code, **json.loads(out.getvalue())}

uid, groups, home, catalog, words = json.loads(sys.argv[1])
os.environ.update(PODWRIGHT_CATALOG=catalog)
for question in (("find", "tree"), ("ls", "tree"), ("find", "tree", "path~zzz"), ("find", "nothing")):
    ask(*question)
os.setgroups(groups)
os.setgid(uid)
os.setuid(uid)
os.environ.update(PODWRIGHT_HOME=home)
seen = {"asked": [ask(*question) for question in words], "opened": [], "rows": "", "strings": ""}
for folder, _, names in os.walk(catalog):
    for name in names:
        with contextlib.suppress(PermissionError):
            seen["strings"] += Path(folder, name).read_bytes().decode("latin-1")
listed = json.loads(Path(catalog, "tree/current/shared.json").read_bytes())["files"]
for path in [Path(catalog, "tree/current/own.duckdb"), *(Path(catalog, "tree/current", row["path"]) for row in listed)]:
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.IOException:
        continue
    seen["opened"].append(str(path))
    seen["strings"] += path.read_bytes().decode("latin-1")
    for (table,) in connection.execute("select table_name from information_schema.tables").fetchall():
        seen["rows"] += str(connection.execute(f"select * from {table}").fetchall())
print(json.dumps(seen))
"""


@dataclass(frozen=True)
class Shared:
    """A tree, and the catalog of it that root shares."""

    folder: Path
    tree: Path
    store: Store

    def ask_as(self, user: str, *questions: Sequence[str]) -> dict[str, Any]:
        """What a user gets from the command line, and what he finds in the files of the catalog."""
        uid, groups = USERS[user]
        home = self.folder / f"home-{user}"
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, uid, uid)
        given = json.dumps([uid, groups, str(home), str(self.store.path), questions])
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PODWRIGHT_HOME": str(self.folder / "root")}
        command = [sys.executable, "-c", CHILD, given]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def found_as(self, user: str) -> list[str]:
        """What `find` gives a user."""
        uid, groups = USERS[user]
        command = ["find", str(self.tree), "-not", "-type", "d", "-printf", "%P\n"]
        done = subprocess.run(
            command, user=uid, group=uid, extra_groups=groups, capture_output=True, text=True, check=False
        )
        return sorted(done.stdout.split())


def make(folder: Path, owner: tuple[int, int], mode: int, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"content of {name}")
    os.chown(folder, *owner)
    folder.chmod(mode)
    return folder


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    tree = make(folder / "tree", (0, 0), 0o755)
    make(tree / "open", (0, 0), 0o755, "a1.png", "a2.png")
    (tree / "open" / "a2.png").chmod(0o600)
    make(tree / "team", (ALICE, TEAM), 0o750, "plan1.png", "plan2.png", "plan3.png")
    make(tree / "diary", (ALICE, ALICE), 0o700, "secret1.png")
    make(tree / "diary" / "deep", (0, 0), 0o755, "secret2.png")
    make(tree / "drop" / "inner", (0, 0), 0o755, "unlisted.png")
    (tree / "drop").chmod(0o711)
    make(tree / "closed", (0, 0), 0o750, "keys.png")
    make(tree / "both", (BOB, BOB), 0o750, "never.png")
    guarded = make(tree / "guarded", (0, 0), 0o750, "list.png")
    with suppress(OSError):  # a file system without lists of access: then root alone may enter
        entries = ((1, 7, -1), (2, 5, CAROL), (4, 0, -1), (16, 7, -1), (32, 0, -1))
        packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
        os.setxattr(guarded, "system.posix_acl_access", struct.pack("<I", 2) + packed)
    (folder / "catalog").mkdir()
    (folder / "catalog").chmod(0o755)
    store = Store(folder / "root", folder / "catalog")
    scan(store, tree, "tree", layout="images")
    add_checksums(store, "tree")
    yield Shared(folder, tree, store)
    shutil.rmtree(folder)


def labels(paths: Sequence[str]) -> dict[str, int]:
    """How many files lie in each innermost folder, as the layout of image folders has it."""
    return dict(Counter(path.split("/")[-2] for path in paths))


@pytest.mark.parametrize("user", USERS)
def test_a_user_sees_of_a_catalog_what_find_gives_him(shared: Shared, user: str) -> None:
    visible = shared.found_as(user)
    hidden = {Path(path).name for path in every_file(shared.tree)} - {Path(path).name for path in visible}
    query = ("sql", "tree", "select path, size from files order by path")
    seen = shared.ask_as(
        user, ("find", "tree"), ("ls", "tree"), ("find", "tree", "path~secret"), ("find", "tree", "size>0"), query
    )
    everything, facets, secrets, sized, answer = seen["asked"]
    assert answer["rows"] == [[path, (shared.tree / path).stat().st_size] for path in visible]
    assert sorted(row["path"] for row in everything["files"]) == visible
    assert everything["count"] == sized["count"] == facets["files"] == len(visible)
    assert facets["columns"]["label"] == labels(visible)
    assert secrets["count"] == sum("secret" in path for path in visible)
    assert seen["opened"]
    assert hidden
    for name in (*hidden, *(name.removesuffix(".png") for name in hidden)):
        assert name not in seen["strings"]
        assert name not in seen["rows"]
    assert all(name in seen["rows"] for name in labels(visible))


def every_file(tree: Path) -> list[str]:
    done = subprocess.run(["find", tree, "-type", "f", "-printf", "%P\n"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_checksum_of_a_file_is_for_those_who_may_read_it(shared: Shared) -> None:
    seen = shared.ask_as("carol", ("find", "tree", 'label=open and sha256>=""'))
    assert [row["path"] for row in seen["asked"][0]["files"]] == ["open/a1.png"]


def test_files_and_gates_belong_to_the_publisher_and_no_reader_can_change_them(shared: Shared) -> None:
    generation = (shared.store.path / "tree" / "current").resolve()
    parts = [path for path in generation.rglob("*") if path.name in ("in", "rows.duckdb")]
    assert len(parts) > len(USERS)
    for path in [generation, *parts]:
        status = path.stat()
        assert (status.st_uid, status.st_mode & 0o022) == (0, 0), path
    tries = 0
    for uid, groups in USERS.values():
        for path in parts:
            for command in (["chmod", "u+w", path], ["mv", path, f"{path}.mine"], ["touch", path.parent / "new"]):
                done = subprocess.run(
                    command, user=uid, group=uid, extra_groups=groups, capture_output=True, check=False
                )
                assert done.returncode, (uid, command)
                tries += 1
    assert tries > 50


def test_only_its_owner_writes_a_shared_catalog(shared: Shared) -> None:
    seen = shared.ask_as("carol", ("tag", "tree", "size>0", "a=b"), ("scan", str(shared.tree), "--name", "mine"))
    assert [answer["code"] for answer in seen["asked"]] == [1, 1], seen["asked"]
    assert "only root writes" in seen["asked"][0]["errors"][0]["message"]


def test_a_file_that_was_written_over_is_left_out(shared: Shared) -> None:
    team = [path for path in parts_of(shared) if path.stat().st_gid == TEAM]
    assert shared.ask_as("bob", ("find", "tree", "label=team"))["asked"][0]["count"] == 3
    for path in team:
        path.write_bytes(path.read_bytes())
    answer = shared.ask_as("bob", ("find", "tree", "label=team"), ("find", "tree"))["asked"]
    assert [row["count"] for row in answer] == [0, 3]
    assert answer[1]["left_out"] == 1


def parts_of(shared: Shared) -> list[Path]:
    return list((shared.store.path / "tree" / "current").resolve().rglob("rows.duckdb"))


def test_a_generation_whose_gates_belong_to_readers_is_refused_until_root_scans_again(shared: Shared) -> None:
    before = shared.store.generation("tree")
    gate = next(path.parent for path in parts_of(shared) if path.stat().st_gid == TEAM)
    os.chown(gate, ALICE, TEAM)
    listed = (shared.store.path / "tree" / "current").resolve() / "shared.json"
    document = json.loads(listed.read_bytes())
    listed.write_text(json.dumps({"files": document["files"]}))
    (answer,) = shared.ask_as("carol", ("find", "tree"))["asked"]
    (problem,) = answer["errors"]
    assert answer["code"] == 1
    assert "was shared by an earlier version" in problem["message"]
    assert problem["hint"] == "root makes it again: podwright data scan PATH --name tree"
    again = scan(shared.store, shared.tree, "tree", layout="images")
    assert (again.changed, again.generation) == (0, before + 1)
    seen = shared.ask_as("carol", ("find", "tree"), ("find", "tree", 'sha256>=""'))["asked"]
    assert sorted(row["path"] for row in seen[0]["files"]) == shared.found_as("carol")
    assert seen[1]["count"] > 0, "what was known came over"


def test_the_catalog_of_an_ordinary_user_is_his_alone() -> None:
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, ALICE, ALICE)
    make(folder / "tree", (ALICE, ALICE), 0o755, "a.png")
    os.seteuid(ALICE)
    try:
        store = Store(folder / "home")
        scan(store, folder / "tree", "tree")
        modes = {path.stat().st_mode & 0o077 for path in store.path.rglob("*") if not path.is_symlink()}
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)
    assert modes == {0}
