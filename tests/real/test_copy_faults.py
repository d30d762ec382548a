"""Bad days of copies: files that change meanwhile, a full disk, what may not be read, a kill, odd names."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies import transfer
from podwright.data.policies.folder import Policy
from podwright.data.policies.policies import Policies, PolicyReport
from podwright.data.selecting import copying
from podwright.data.selecting.copying import NOTES, stage_to
from podwright.data.selecting.select import Choice, make_selection
from podwright.data.selecting.selections import load
from podwright.pilot.data.sources import SourceFile, fetch
from podwright.spec.problems import Refusal
from tests.contract.sites import until
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.counted import counted
from tests.fixtures.struck import as_nobody, kill_at
from tests.paths import ROOT

LABELS = 6


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files that somebody would find, by their paths."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: data for path, data in found.items() if path not in (NOTES, "samples.jsonl")}


def files_of(tree: Path) -> dict[str, bytes]:
    """Return the files of a tree that are part of its samples."""
    return {path: data for path, data in contents(tree).items() if path != "class_list.json"}


def make_street(folder: Path, root: Path | str | None = None) -> Store:
    """Scan two scenes, and select all of them."""
    store = Store(folder / "home")
    tree = write_scenes(folder / "a2d2", scenes=2)
    scan(store, root or tree, "a2d2")
    make_selection(store, "a2d2", Choice("street"))
    return store


# files that change


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shrink(path: Path) -> None:
    os.truncate(path, 10)


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


CHANGES = {"grows": grow, "shrinks": shrink, "is-written-over": rewrite}


def archived(folder: Path) -> dict[str, bytes]:
    held = {}
    for path in folder.glob("*.tar"):
        with tarfile.open(path) as tar:
            held |= {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    return held


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("action", ["copy", "move", "archive"])
def test_a_file_that_changes_while_a_policy_copies_it_is_left_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, change: str
) -> None:
    store, tree, cold = make_street(tmp_path), tmp_path / "a2d2", tmp_path / "cold"
    labels = {path: data for path, data in contents(tree).items() if "/label/" in path}
    victim = sorted(labels)[1]
    checked = iter([True])

    def changing(path: bytes, size: int, mtime_ns: int) -> os.stat_result:
        """Look at a file as ever; somebody writes to it behind the first look."""
        status = check_same(path, size, mtime_ns)
        if path.endswith(os.fsencode(victim)) and next(checked, False):
            CHANGES[change](tree / victim)
        return status

    check_same = transfer.check_same
    monkeypatch.setattr(transfer, "check_same", changing)
    Policies(store).add(Policy("cold", "a2d2", "kind=label", action, str(cold)))
    ended = Policies(store).run("cold")
    assert [(os.fsdecode(entry.path), "while it was copied" in entry.why) for entry in ended.failed] == [
        (victim, action != "archive")
    ]
    assert (ended.policy.state, ended.done) == ("failed", LABELS - 1)
    rest = {path: data for path, data in labels.items() if path != victim}
    assert (archived(cold) if action == "archive" else contents(cold)) == rest
    after = (tree / victim).read_bytes()
    assert after != labels[victim]
    again = after_a_scan(store, tree)
    assert (again.policy.state, again.failed) == ("done", ())
    assert (archived(cold) if action == "archive" else contents(cold)) == {**rest, victim: after}


def after_a_scan(store: Store, tree: Path) -> PolicyReport:
    scan(store, tree, "a2d2")
    return Policies(store).run("cold")


def test_a_file_that_changes_on_its_server_while_it_is_staged_is_left_and_named(tmp_path: Path) -> None:
    tree = write_scenes(tmp_path / "a2d2", scenes=2)
    before = files_of(tree)
    to = tmp_path / "to"
    with counted(tree) as server:
        store = make_street(tmp_path, server.address)
        selection = load(store, "street")
        server.requests.clear()
        server.open.clear()
        said: list[str] = []
        staging = threading.Thread(target=lambda: said.append(refusal(lambda: stage_to(selection, None, to))))
        staging.start()
        asked = until(lambda: [path for verb, path in server.requests if verb == "GET"], "files are asked for")
        rewrite(tree / asked[0])
        # What was asked for breaks in the middle, and goes on with what is there by then.
        server.broken = len(server.requests)
        server.open.set()
        staging.join()
        assert said == [
            f"{server.address}/{asked[0]}: it is not what it was when the run was started: its ETag is another"
        ]
        assert contents(to).items() <= before.items()
        assert asked[0] not in contents(to)
        scan(store, server.address, "a2d2")
        make_selection(store, "a2d2", Choice("again"))
        stage_to(load(store, "again"), None, to)
    assert contents(to) == files_of(tree)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_on_its_disk_while_it_is_staged_is_left_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    store, tree, to = make_street(tmp_path), tmp_path / "a2d2", tmp_path / "to"
    before = contents(tree)
    victim = sorted(path for path in before if "/label/" in path)[1]
    source = (tree / victim).as_uri()

    def changing(wanted: SourceFile, site: Any, environ: Any, file: Any, count: Any) -> str:
        """Read a file as ever; somebody writes to it behind the first piece."""
        act = partial(CHANGES[change], tree / victim)
        return fetch(wanted, site, environ, file, lambda size: act() if wanted.source == source else None)

    monkeypatch.setattr(copying, "fetch", changing)
    said = refusal(lambda: stage_to(load(store, "street"), None, to))
    assert said.startswith(f"{source}: it ")
    monkeypatch.undo()
    there = contents(to)
    assert there.items() <= before.items()
    assert victim not in there
    scan(store, tree, "a2d2")
    make_selection(store, "a2d2", Choice("again"))
    stage_to(load(store, "again"), None, to)
    assert contents(to) == files_of(tree)


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(Refusal) as caught:
        act()
    return caught.value.problems[0].message


# what the operating system refuses


def test_what_may_not_be_read_is_named_and_the_rest_is_copied() -> None:
    with as_nobody() as folder:
        store, tree = make_street(folder), folder / "a2d2"
        before = contents(tree)
        victim = next(path for path in sorted(before) if "/label/" in path)
        (tree / victim).chmod(0)
        Policies(store).add(Policy("cold", "a2d2", "kind=label", "copy", str(folder / "cold")))
        ended = Policies(store).run("cold")
        message = refusal(lambda: stage_to(load(store, "street"), None, folder / "to"))
        copied = contents(folder / "cold")
        (tree / victim).chmod(0o600)
        stage_to(load(store, "street"), None, folder / "to")
        staged = contents(folder / "to")
    assert [(os.fsdecode(entry.path), entry.why) for entry in ended.failed] == [(victim, "permission denied")]
    assert message.endswith(f"{victim}: permission denied")
    assert copied == {path: data for path, data in before.items() if "/label/" in path and path != victim}
    assert staged == before


@pytest.mark.netns
def test_a_full_disk_is_said_and_what_was_copied_stays(tmp_path: Path) -> None:
    """Of eighteen files five have room; then there is room for all."""
    make_street(tmp_path)
    cold, to = tmp_path / "cold", tmp_path / "to"
    cli = f"{sys.executable} -c 'import sys; from podwright.cli.main import main; sys.exit(main())' data"
    policy = "--dataset a2d2 --where 'size>0' --do"
    lines = ["set -eu", f"{cli} policy add cold {policy} copy --to {cold} >&2"]
    lines += [f"{cli} policy add packed {policy} archive --to {cold}/packed >&2"]
    for folder, command in ((to, f"stage street --to {to}"), (cold, "policy run cold"), (cold, "policy run packed")):
        lines += [
            f"mkdir -p {folder} && mount -t tmpfs -o size=24k,mode=700 none {folder}",
            f"! {cli} {command} >&2",
            f"find {folder} -name '*part*'",
            f"mount -o remount,size=10m {folder}",
            f"{cli} {command} >&2",
            f"find {folder} -type f -size +0 ! -name '.staged*' ! -name samples.jsonl | wc -l",
            f"umount {folder}",
        ]
    environment = {**os.environ, "PODWRIGHT_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT / "src")}
    command = ["unshare", "--mount", "sh", "-c", "\n".join(lines)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["18", "18", "1"]
    assert "cannot be written: no space left on device" in done.stderr
    assert "there is no space left" in done.stderr


# a kill, and names

STAGE_STOPS = {
    "asked": "copying.fetch = stop",
    "fetched": "copying.fetch = after(copying.fetch)",
    "renamed": "copying.os.replace = after(copying.os.replace)",
    "listed": "copying.write_whole = stop",
}
STAGE_CHILD = """
import sys
from functools import partial
from pathlib import Path
from typing import Any
from podwright.data.selecting import copying
from podwright.data.selecting.selections import load
from podwright.data.catalog.store import Store

{patch}
copying.stage_to(load(Store(Path(sys.argv[1])), "street"), None, Path(sys.argv[2]))
"""


@pytest.mark.parametrize("place", STAGE_STOPS)
def test_a_copy_that_is_killed_leaves_nothing_half_and_goes_on(tmp_path: Path, place: str) -> None:
    store, tree, to = make_street(tmp_path), tmp_path / "a2d2", tmp_path / "to"
    kill_at(STAGE_CHILD.format(patch=STAGE_STOPS[place]), store.home, to)
    there = {path: data for path, data in contents(to).items() if not Path(path).name.startswith(".podwright-part.")}
    assert there.items() <= files_of(tree).items()
    staged = stage_to(load(store, "street"), None, to)
    assert staged.copied + staged.reused == len(files_of(tree))
    assert contents(to) == files_of(tree)


def test_names_that_are_no_text_are_staged_byte_by_byte(tmp_path: Path) -> None:
    tree = tmp_path / "odd"
    for name in (b"new\nline.bin", b"\xff\xfe.bin", b"%2e space.bin"):
        path = tree / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name)
    store = Store(tmp_path / "home")
    scan(store, tree, "odd")
    make_selection(store, "odd", Choice("all"))
    stage_to(load(store, "all"), None, tmp_path / "to")
    assert contents(tmp_path / "to") == contents(tree)
