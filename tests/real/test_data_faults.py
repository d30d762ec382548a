"""Bad days of a catalog: killed writers, folders that may not be read, a full disk, damaged files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.policies.folder import Policy
from podwright.data.policies.policies import Policies
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.struck import as_nobody, kill_at
from tests.paths import ROOT

# Each stops for ever at one place of a write, after it has said so.
STOPS = {
    "scan": "walk.walk_some = stop",
    "build": "schema.build_statements = stop",
    "publish": "Store.publish = stop",
    "link": "Path.symlink_to = stop",
    "index": "bitmaps.build = stop",
    "stats": "counting.count_images = stop",
}
CHILD = """
import sys
from pathlib import Path
from podwright.data.query import bitmaps
from podwright.data.labels import counting, recount
from podwright.data.catalog import scan, schema
from podwright.data.tree import walk
from podwright.data.catalog.store import Store

{patch}
if {stats}:
    recount.count_labels(Store(Path(sys.argv[1])), "a2d2")
else:
    scan.scan(Store(Path(sys.argv[1])), Path(sys.argv[2]), "a2d2")
"""


@pytest.mark.parametrize("place", STOPS)
def test_a_writer_that_is_killed_leaves_the_old_generation(tmp_path: Path, place: str) -> None:
    store = Store(tmp_path / "home")
    tree = write_scenes(tmp_path / "a2d2")
    scan(store, tree, "a2d2")
    (tree / "new.txt").touch()
    script = CHILD.format(patch=STOPS[place], stats=place == "stats")
    kill_at(script, store.home, tree)
    with open_dataset(store, "a2d2") as before:
        assert before.count(before.condition("name=new.txt"))[0] == 0
        assert before.count(before.condition("kind=label"))[0] == 12
    again = scan(store, tree, "a2d2")
    assert (again.generation, again.changed) == (2, 1)
    assert count_labels(store, "a2d2").images == 12
    assert sorted(path.name for path in (store.path / "a2d2").iterdir()) == ["current", "g000001", "g000003", "lock"]


# Where a policy's own process stops: before and behind each step that changes something.
POLICY_STOPS = {
    "begun": "transfer.check_same = stop",
    "copied": "transfer._put = stop",
    "linked": "transfer._put = after(transfer._put)",
    "moved": "PolicyFolder.note = stop",
    "noted": "PolicyFolder.note = after(PolicyFolder.note)",
    "scanned": "policies.rescan = after(policies.rescan)",
}
POLICY_CHILD = """
import sys
from pathlib import Path
from podwright.data.policies import policies, transfer
from podwright.data.policies.folder import PolicyFolder
from podwright.data.catalog.store import Store

{patch}
policies.Policies(Store(Path(sys.argv[1]))).run("cold")
"""


@pytest.mark.parametrize("place", POLICY_STOPS)
def test_a_policy_that_is_killed_loses_nothing_and_goes_on(tmp_path: Path, place: str) -> None:
    store = Store(tmp_path / "home")
    tree = write_scenes(tmp_path / "a2d2", scenes=2)
    before = {path.name: path.read_bytes() for path in tree.rglob("*_label_*.png")}
    scan(store, tree, "a2d2")
    to = tmp_path / "cold"
    Policies(store).add(Policy("cold", "a2d2", "kind=label", "move", str(to), batch=2))
    kill_at(POLICY_CHILD.format(patch=POLICY_STOPS[place]), store.home)
    there = {path.name: path.read_bytes() for path in [*tree.rglob("*_label_*.png"), *to.rglob("*.png")]}
    assert there == before
    ended = Policies(store).run("cold")
    assert (ended.policy.state, ended.failed) == ("done", ())
    assert {path.name: path.read_bytes() for path in to.rglob("*") if path.is_file()} == before
    assert list(tree.rglob("*_label_*.png")) == []
    with open_dataset(store, "a2d2") as opened:
        assert opened.count_files(opened.condition("kind=label")) == 0


def test_a_folder_that_may_not_be_read_is_named_and_the_rest_is_scanned() -> None:
    with as_nobody() as folder:
        tree = write_scenes(folder / "a2d2", scenes=2)
        closed = tree / "20180801_145028" / "label"
        closed.chmod(0)
        try:
            scanned = scan(Store(folder / "home"), tree, "a2d2")
        finally:
            closed.chmod(0o700)
    assert scanned.unread == (("20180801_145028/label/", "permission denied"),)
    assert scanned.files == 6 + 9


def test_a_label_that_may_not_be_read_is_not_broken_and_says_why() -> None:
    with as_nobody() as folder:
        tree = write_scenes(folder / "a2d2", scenes=2)
        next(tree.rglob("*_label_*.png")).chmod(0)
        scan(Store(folder / "home"), tree, "a2d2")
        statistics = count_labels(Store(folder / "home"), "a2d2")
    assert (statistics.images, statistics.broken, statistics.not_read) == (5, 0, 1)
    assert statistics.not_read_files[0]["why"] == "permission denied"


@pytest.mark.netns
def test_a_full_disk_is_said_in_words_and_the_old_generation_stays(tmp_path: Path) -> None:
    tree = write_scenes(tmp_path / "a2d2")
    home = tmp_path / "home"
    home.mkdir()
    cli = f"{sys.executable} -c 'import sys; from podwright.cli.main import main; sys.exit(main())'"
    lines = [
        "set -eu",
        f"mount -t tmpfs -o size=8m,mode=700 none {home}",
        f"{cli} data scan {tree} --name a2d2 >/dev/null",
        f"touch {tree}/new.txt",
        f"head -c 100m /dev/zero > {home}/full 2>/dev/null || true",
        f"! {cli} data scan {tree} --name a2d2",
        f"{cli} data find a2d2 name=new.txt --json",
    ]
    environment = {**os.environ, "PODWRIGHT_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    command = ["unshare", "--mount", "sh", "-c", "\n".join(lines)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "there is no space left" in done.stderr
    assert json.loads(done.stdout)["count"] == 0


def test_a_sparse_file_of_ten_gigabytes_is_not_read(tmp_path: Path) -> None:
    tree = write_scenes(tmp_path / "a2d2", scenes=1)
    with (tree / "20180801_145028" / "camera" / "cam_front_center" / "large.png").open("wb") as file:
        file.truncate(10 << 30)
    store = Store(tmp_path / "home")
    assert scan(store, tree, "a2d2").size_bytes > 10 << 30
    with open_dataset(store, "a2d2") as opened:
        assert opened.count(opened.condition("size>=10GiB"))[0] == 1


MAX_MEMORY_KB = 1 << 20
"""A tenth of the file: whoever held it would have taken all of it."""
MAX_DISK_BYTES = 10 << 20
"""A thousandth of it: its holes are holes where it comes to."""
ZEROS_SHA256 = "732377e7f4a2abdc13ddfa1eb4c9c497fd2a2b294674d056cf51581b47dd586d"
"""Of ten gigabytes of zeros, by sha256sum."""


def told_in_little_memory(home: Path, *arguments: object) -> dict[str, Any]:
    """What a command of ours says as JSON; it may not have taken much memory for it."""
    program = "import sys; from podwright.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "data", *map(str, arguments), "--json"]
    environment = {**os.environ, "PODWRIGHT_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        document = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    assert used.ru_maxrss < MAX_MEMORY_KB
    return dict(json.loads(document))


@pytest.mark.nightly
def test_ten_gigabytes_are_summed_found_and_staged_in_little_memory(tmp_path: Path) -> None:
    tree, home, to = tmp_path / "tree", tmp_path / "home", tmp_path / "staged"
    tree.mkdir()
    with (tree / "large.bin").open("wb") as file:
        file.truncate(10 << 30)
    (tree / "small.txt").write_text("small")
    assert told_in_little_memory(home, "scan", tree, "--name", "large", "--checksums")["summed"] == 2
    (match,) = told_in_little_memory(home, "find", "large", f"size>=10GiB and sha256={ZEROS_SHA256}")["files"]
    assert match["path"] == "large.bin"
    told_in_little_memory(home, "select", "large", "--name", "whole")
    copied = told_in_little_memory(home, "stage", "whole", "--to", to)
    assert (copied["files"], copied["copied"]) == (2, 2)
    assert (to / "large.bin").stat().st_size == 10 << 30
    assert (to / "large.bin").stat().st_blocks * 512 < MAX_DISK_BYTES
    assert told_in_little_memory(home, "stage", "whole", "--to", to)["copied"] == 0
