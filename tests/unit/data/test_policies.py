"""Policies: what they do, in batches, once; and what they take back."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.folder import JournalEntry, PolicyFolder
from podwright.data.policies.policies import Policies
from podwright.data.policies.tags import tag
from tests.unit.data.conftest import Say

AGENT = """
import json, sys
for line in sys.stdin:
    file = json.loads(line)
    print("looking at", file["path"])
    print(json.dumps({"path": file["path"], "tags": {"bytes": len(open(file["file"], "rb").read()), "seen": "yes"}}))
print(json.dumps({"path": "no/file/of/mine", "tags": {"seen": "yes"}}))
"""


@pytest.fixture
def scanned(store: Store, tree: Path) -> Store:
    scan(store, tree, "a2d2")
    return store


def add(ask: Say, where: str, *words: object) -> Any:
    return ask("policy", "add", "p", "--dataset", "a2d2", "--where", where, *words)


def test_a_tag_is_given_once_and_taken_back(ask: Say, scanned: Store, tree: Path) -> None:
    tag(scanned, "a2d2", "frame=1", "light", "high")
    added = add(ask, "kind=label", "--do", "tag", "--tag", "light=low", "--batch", 5)
    assert (added["state"], added["done"]) == ("ready", 0)
    dry = ask("policy", "run", "p", "--dry-run")
    assert (dry["matched"], dry["done"], len(dry["files"])) == (12, 0, 12)
    ran = ask("policy", "run", "p")
    assert [ran[key] for key in ("name", "matched", "done", "failed", "state")] == ["p", 12, 12, 0, "done"]
    assert ask("find", "a2d2", "light=low")["count"] == 12
    before = scanned.generation("a2d2")
    assert ask("policy", "run", "p")["done"] == 12
    assert scanned.generation("a2d2") == before
    assert ask("policy", "undo", "p")["state"] == "undone"
    assert ask("find", "a2d2", "light=low")["count"] == 0
    assert ask("find", "a2d2", "light=high")["count"] == 12
    assert ask("policy", "ls")[0]["name"] == "p"
    ask("policy", "rm", "p")
    assert ask("policy", "ls") == []


def test_only_new_and_changed_files_are_dealt_with_the_next_time(ask: Say, scanned: Store, tree: Path) -> None:
    add(ask, "ext=json", "--do", "checksum")
    assert ask("policy", "run", "p")["done"] == 12
    changed = sorted(tree.rglob("*.json"))[0]
    changed.write_text("other")
    (changed.parent / "new.json").write_text("new")
    ask("scan", tree, "--name", "a2d2")
    assert ask("policy", "run", "p", "--dry-run")["matched"] == 2
    assert ask("policy", "run", "p")["done"] == 13
    assert ask("find", "a2d2", 'sha256>=""')["count"] == 13


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_copies_are_the_files_and_never_written_over_others(
    ask: Say, scanned: Store, tree: Path, tmp_path: Path
) -> None:
    add(ask, "kind=label", "--do", "copy", "--to", tmp_path / "cold")
    labels = {name: data for name, data in contents(tree).items() if "/label/" in name}
    taken, same, *_ = sorted(labels)
    for name, data in ((taken, b"somebody's own"), (same, labels[same])):
        place = tmp_path / "cold" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    ran = ask("policy", "run", "p", code=1)
    assert [ran[key] for key in ("done", "failed", "state")] == [11, 1, "failed"]
    assert ran["failures"] == [{"path": taken, "why": "there is another file at its place"}]
    assert contents(tmp_path / "cold") == {**labels, taken: b"somebody's own"}
    status = (tree / same).stat()
    other = sorted(labels)[2]
    assert (tmp_path / "cold" / other).stat().st_mtime_ns == (tree / other).stat().st_mtime_ns
    assert status.st_size == len(labels[same])
    ask("policy", "undo", "p")
    assert contents(tmp_path / "cold") == {taken: b"somebody's own"}


def test_moved_files_leave_the_dataset_and_come_back(ask: Say, scanned: Store, tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    add(ask, "scene=20180802_145028", "--do", "move", "--to", tmp_path / "cold")
    assert ask("policy", "run", "p")["done"] == 9
    assert ask("find", "a2d2")["count"] == 27
    assert {**contents(tree), **contents(tmp_path / "cold")} == before
    ask("policy", "undo", "p")
    assert contents(tree) == before
    assert contents(tmp_path / "cold") == {}
    assert ask("find", "a2d2")["count"] == 36


def test_an_archive_holds_the_files_and_leaves_them(ask: Say, scanned: Store, tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    add(ask, "kind=label", "--do", "archive", "--to", tmp_path / "cold", "--batch", 8)
    assert ask("policy", "run", "p")["done"] == 12
    held = {}
    for path in sorted((tmp_path / "cold").glob("*.tar")):
        with tarfile.open(path) as tar:
            held |= {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    assert held == {name: data for name, data in before.items() if "/label/" in name}
    assert contents(tree) == before
    ask("policy", "undo", "p")
    assert contents(tmp_path / "cold") == {}


class CountedFolder(PolicyFolder):
    """Counts how often its journal is read."""

    reads = 0

    def entries(self) -> list[JournalEntry]:
        CountedFolder.reads += 1
        return super().entries()


class CountedPolicies(Policies):
    """Policies whose journals count."""

    def find(self, name: str) -> PolicyFolder:
        return CountedFolder(self._store, name)


def test_a_journal_is_read_as_often_for_many_batches_as_for_one(ask: Say, scanned: Store, tmp_path: Path) -> None:
    reads = []
    for name, batch in (("one", 12), ("many", 1)):
        words = ("--do", "archive", "--to", tmp_path / name, "--batch", batch)
        ask("policy", "add", name, "--dataset", "a2d2", "--where", "kind=label", *words)
        CountedFolder.reads = 0
        assert CountedPolicies(scanned).run(name).done == 12
        reads.append(CountedFolder.reads)
    assert reads[0] == reads[1]
    assert len(list((tmp_path / "many").glob("many-*.tar"))) == 12


def test_a_deletion_is_shown_first_and_takes_what_was_shown(ask: Say, tell: Say, scanned: Store, tree: Path) -> None:
    add(ask, "scene=20180802_145028", "--do", "delete")
    shown = ask("policy", "run", "p")
    assert [shown[key] for key in ("matched", "done", "state")] == [9, 0, "review"]
    assert len(Path(shown["review"]).read_text().splitlines()) == 9
    _, err = tell("policy", "run", "p", code=2)
    assert err.startswith("--yes: 9 files")
    kept, written, *_ = sorted((tree / "20180802_145028").rglob("*.png"))
    written.write_bytes(b"other than what was shown")
    (kept.parent / "later.png").touch()
    ask("scan", tree, "--name", "a2d2")
    ran = ask("policy", "run", "p", "--yes")
    assert ran["done"] == 8
    assert written.exists()
    assert (kept.parent / "later.png").exists()
    assert ask("find", "a2d2")["count"] == 29
    refused = ask("policy", "undo", "p", code=1)
    assert refused["errors"][0]["message"] == "a delete cannot be undone"


def test_what_an_agent_prints_becomes_tags(ask: Say, scanned: Store, tree: Path, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(AGENT)
    add(ask, "ext=json", "--do", "agent", "--program", f"{sys.executable} {script}", "--batch", 5)
    assert ask("policy", "run", "p")["done"] == 12
    assert ask("find", "a2d2", "seen=yes and bytes>20")["count"] == 12
    ask("policy", "undo", "p")
    assert "seen" not in ask("sql", "a2d2", "select distinct name from tag")["rows"]


def test_an_agent_that_fails_keeps_what_was_done_before(ask: Say, scanned: Store, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(
        f"import os\nif os.path.exists('{tmp_path}/ran'): raise SystemExit(3)\nopen('{tmp_path}/ran', 'w')\n" + AGENT
    )
    add(ask, "ext=json", "--do", "agent", "--program", f"{sys.executable} {script}", "--batch", 5)
    refused = ask("policy", "run", "p", code=1)
    assert refused["errors"][0]["message"].endswith("ended with 3")
    assert ask("find", "a2d2", "seen=yes")["count"] == 5
    (tmp_path / "ran").unlink()
    script.write_text(AGENT)
    assert ask("policy", "run", "p")["done"] == 12


def test_a_policy_is_paused_between_batches_and_goes_on(ask: Say, scanned: Store, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    pausing = f"import subprocess\nsubprocess.run({[sys.executable, '-c', PAUSE, str(scanned.home)]}, check=True)\n"
    script.write_text(pausing + AGENT)
    add(ask, "ext=json", "--do", "agent", "--program", f"{sys.executable} {script}", "--batch", 5)
    paused = ask("policy", "run", "p")
    assert [paused[key] for key in ("matched", "done", "state")] == [12, 5, "paused"]
    assert ask("policy", "run", "p", code=1)["errors"][0]["message"] == "p is paused"
    script.write_text(AGENT)
    assert ask("policy", "resume", "p")["state"] == "ready"
    assert [ask("policy", "run", "p")[key] for key in ("done", "state")] == [12, "done"]


PAUSE = """
import sys
from pathlib import Path
from podwright.data.policies.policies import Policies
from podwright.data.catalog.store import Store
Policies(Store(Path(sys.argv[1]))).pause("p")
"""


def test_run_due_runs_those_whose_time_has_come(ask: Say, tell: Say, scanned: Store) -> None:
    add(ask, "ext=json", "--do", "tag", "--tag", "a=b", "--every", "1h")
    ask("policy", "add", "never", "--dataset", "a2d2", "--where", "ext=json", "--do", "tag", "--tag", "c=d")
    assert Policies(scanned).due() == ["p"]
    tell("policy", "run", "--due")
    assert Policies(scanned).due() == []
    assert ask("find", "a2d2", "a=b")["count"] == 12
    folder = PolicyFolder(scanned, "p")
    folder.change(last_at=time.time() - 3601)
    assert Policies(scanned).due() == ["p"]
    Policies(scanned).pause("p")
    assert Policies(scanned).due() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "p", "--dataset", "a2d2", "--where", "ext=json", "--do", "burn"), '--do: "burn" is nothing'),
        (("add", "p", "--dataset", "a2d2", "--where", "ext=json", "--do", "copy"), "--do: copy needs --to"),
        (("add", "p", "--dataset", "a2d2", "--where", "ext=json", "--do", "agent"), "--do: agent needs --program or"),
        (("add", "p", "--dataset", "a2d2", "--where", "ex=json", "--do", "delete"), "filter:1:1: ex: unknown column"),
        (("add", "p", "--dataset", "a2d3", "--where", "ext=json", "--do", "delete"), 'there is no dataset "a2d3"'),
        (("add", "P", "--dataset", "a2d2", "--where", "ext=json", "--do", "delete"), 'NAME: "P" is no name'),
        (("run", "q"), 'there is no policy "q"'),
        (("dance", "p"), '"dance" is nothing that can be done'),
        (("run",), "NAME: which policy?"),
    ],
)
def test_bad_policies_are_refused_in_words(tell: Say, scanned: Store, words: tuple[str, ...], message: str) -> None:
    _, err = tell("policy", *words, code=2)
    assert err.startswith(message)


def test_copies_within_the_dataset_are_refused(tell: Say, scanned: Store, tree: Path) -> None:
    words = ("--dataset", "a2d2", "--where", "ext=json", "--do", "copy", "--to", tree / "copies")
    _, err = tell("policy", "add", "p", *words, code=2)
    assert err.startswith("--to: lies within the dataset")


def test_odd_names_go_through_journal_agent_and_copies(ask: Say, store: Store, tmp_path: Path) -> None:
    odd = os.fsdecode(b"new\nline\xff.json")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / odd).write_text("odd")
    scan(store, tmp_path / "odd", "a2d2")
    script = tmp_path / "agent.py"
    script.write_text(AGENT)
    add(ask, "size>0", "--do", "agent", "--program", f"{sys.executable} {script}")
    assert ask("policy", "run", "p")["done"] == 1
    assert ask("find", "a2d2", "bytes=3")["count"] == 1
    ask("policy", "add", "q", "--dataset", "a2d2", "--where", "size>0", "--do", "move", "--to", tmp_path / "cold")
    assert ask("policy", "run", "q")["done"] == 1
    assert os.listdir(os.fsencode(tmp_path / "cold")) == [os.fsencode(odd)]  # noqa: PTH208
    assert json.loads(PolicyFolder(store, "q").path.joinpath("journal.jsonl").read_text())["path"] == odd
