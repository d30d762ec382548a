"""Policies that wait for new files: at least once, never on their own output, and what becomes of one that fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.policies import Policies, PolicyReport
from tests.fixtures.a2d2 import write_frame
from tests.unit.data.conftest import Say

AGENT = """
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"path": row["path"], "tags": {"seen": "yes"}}))
"""
WRITES = """
import json, sys
from pathlib import Path
for line in sys.stdin:
    row = json.loads(line)
    copy = Path(row["file"] + ".small.png")
    copy.write_bytes(Path(row["file"]).read_bytes())
    print(json.dumps({"path": row["path"], "wrote": [row["path"] + ".small.png"]}))
"""
FAILS = (
    """
import sys
from pathlib import Path
tries = Path(sys.argv[1])
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
if len(tries.read_text()) <= int(sys.argv[2]):
    print("one\\ntwo: no such model", file=sys.stderr)
    raise SystemExit(3)
"""
    + AGENT
)


@pytest.fixture
def scanned(ask: Say, store: Store, tree: Path) -> Store:
    ask("scan", tree, "--name", "d")
    return store


def add(ask: Say, tmp_path: Path, text: str, *more: object, name: str = "p") -> None:
    script = tmp_path / f"{name}.py"
    script.write_text(text)
    command = " ".join(map(str, [sys.executable, script, *more]))
    words = ("--dataset", "d", "--where", "ext=png and kind=camera", "--do", "agent", "--program", command)
    ask("policy", "add", name, *words, "--on", "new")


def come(store: Store, tree: Path, frame: int) -> list[PolicyReport]:
    """Let a frame come, scan as a watch does, and run what waits for it; nobody sleeps between tries."""
    write_frame(tree, "20180801_145028", "front_center", frame, {})
    scan(store, tree, "d")
    return list(Policies(store, sleep=lambda seconds: None).run_new("d"))


def seen(ask: Say) -> list[int]:
    return [row["frame"] for row in ask("find", "d", "seen=yes")["files"]]


def test_what_was_there_is_no_news_and_what_comes_is_dealt_with_once(
    ask: Say, scanned: Store, tree: Path, tmp_path: Path
) -> None:
    add(ask, tmp_path, AGENT)
    assert list(Policies(scanned).run_new("d")) == []
    (report,) = come(scanned, tree, 50)
    assert (report.done, report.policy.state, seen(ask)) == (1, "done", [50])
    assert list(Policies(scanned).run_new("d")) == []
    come(scanned, tree, 51)
    assert seen(ask) == [50, 51]


def test_what_came_while_nobody_watched_is_dealt_with_later(
    ask: Say, scanned: Store, tree: Path, tmp_path: Path
) -> None:
    add(ask, tmp_path, AGENT)
    for frame in (50, 51):
        write_frame(tree, "20180801_145028", "front_center", frame, {})
        scan(scanned, tree, "d")
    assert ask("policy", "run", "p")["done"] == 2
    assert seen(ask) == [50, 51]


def test_a_policy_is_never_run_on_its_own_output(ask: Say, scanned: Store, tree: Path, tmp_path: Path) -> None:
    add(ask, tmp_path, WRITES)
    assert [report.done for report in come(scanned, tree, 50)] == [1]
    scan(scanned, tree, "d")
    assert ask("find", "d", "name~small")["count"] == 1
    assert list(Policies(scanned).run_new("d")) == []


def test_a_batch_that_fails_is_tried_again(ask: Say, scanned: Store, tree: Path, tmp_path: Path) -> None:
    add(ask, tmp_path, FAILS, tmp_path / "tries", 3)
    (report,) = come(scanned, tree, 50)
    assert (report.policy.state, report.done, (tmp_path / "tries").read_text()) == ("done", 1, "xxxx")


def test_after_its_last_try_it_has_failed_with_its_last_lines_and_others_go_on(
    ask: Say, tell: Say, scanned: Store, tree: Path, tmp_path: Path
) -> None:
    add(ask, tmp_path, FAILS, tmp_path / "tries", 100)
    add(ask, tmp_path, AGENT, name="q")
    failed, other = come(scanned, tree, 50)
    assert (failed.policy.state, other.policy.state, (tmp_path / "tries").read_text()) == ("failed", "done", "xxxx")
    assert failed.policy.tail == ("one", "two: no such model")
    document = next(row for row in ask("policy", "ls") if row["name"] == "p")
    assert (document["state"], document["on"], document["tail"]) == ("failed", "new", ["one", "two: no such model"])
    assert document["why"].endswith("ended with 3")
    assert [report.policy.name for report in come(scanned, tree, 51)] == ["q"]
    ask("policy", "resume", "p")
    (tmp_path / "tries").write_text("x" * 100)
    assert ask("policy", "run", "p")["done"] == 2


def test_a_policy_whose_agent_fails_is_not_running(ask: Say, scanned: Store) -> None:
    ask("policy", "add", "f", "--dataset", "d", "--where", "ext=json", "--do", "agent", "--program", "false")
    ask("policy", "run", "f", code=1)
    (document,) = ask("policy", "ls")
    assert (document["state"], document["why"]) == ("failed", "false ended with 1")


def test_a_policy_that_was_killed_at_work_is_ready_again(ask: Say, scanned: Store) -> None:
    ask("policy", "add", "f", "--dataset", "d", "--where", "ext=json", "--do", "tag", "--tag", "a=b")
    path = scanned.home / "policies" / "f" / "policy.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "running"}))
    assert ask("policy", "ls")[0]["state"] == "ready"
    assert ask("policy", "run", "f")["done"] == 12


def test_one_due_policy_that_fails_keeps_no_other_from_being_run(ask: Say, tell: Say, scanned: Store) -> None:
    for name, program in (("a", "false"), ("b", "true")):
        words = ("--where", "ext=json", "--do", "agent", "--program", program, "--every", "1s")
        ask("policy", "add", name, "--dataset", "d", *words)
    out, _ = tell("policy", "run", "--due", code=1)
    assert "failed    a: agent" in out
    assert "done      b: agent" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "new", "--every", "1h"), "--every: cannot be together with --on new"),
        (("--on", "lab", "--on", "pod"), "--on: is given 2 targets"),
    ],
)
def test_events_that_cannot_be_are_refused(tell: Say, scanned: Store, words: tuple[str, ...], message: str) -> None:
    rest = ("--dataset", "d", "--do", "tag", "--tag", "a=b")
    assert message in tell("policy", "add", "p", *rest, *words, code=2)[1]
