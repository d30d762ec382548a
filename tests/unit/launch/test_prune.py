"""Old runs go, those that have ended and no others; what cannot be reached is left and named."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from podwright.clients.ssh import reach_to
from podwright.engines.base import Status
from podwright.engines.slurm.upload import clear_part
from podwright.launch import Session, recent
from podwright.launch.prune import Left, old_runs, prunable_checkpoints, prunable_runs, prune_runs
from podwright.runs import Home, RunFolder
from podwright.spec.problems import refuse
from tests.fixtures.bad_runs import add_run, bad_home, call
from tests.fixtures.fake_engine import FakeEngine

__all__ = ["bad_home"]

DAY_S = 86400.0


@pytest.fixture
def old(bad_home: Home) -> list[str]:
    """Give two runs that ended long ago, beside those that ended just now."""
    for days, run_id in ((90, "old-2222"), (60, "old-3333")):
        folder = add_run(bad_home, run_id, created_at=time.time() - days * DAY_S)
        (folder / "checkpoints").mkdir()
        (folder / "checkpoints" / "step-1.pt").write_bytes(b"x" * 5000)
    return ["old-2222", "old-3333"]


def there(home: Home) -> list[str]:
    return sorted(run_id for run_id in home.all_ids() if run_id.startswith("old"))


def test_what_ended_long_ago_goes(bad_home: Home, old: list[str]) -> None:
    code, out, err = call("prune", "--yes", "--json")
    document = json.loads(out)
    assert (code, document["runs"], document["left"]) == (0, 2, []), err
    assert document["bytes"] > 10_000
    assert there(bad_home) == []
    assert bad_home.is_there("good-2222")


def test_the_newest_are_kept(bad_home: Home, old: list[str]) -> None:
    assert call("prune", "--yes", "--older", "0s", "--keep-last", "4")[0] == 0
    assert there(bad_home) == ["old-3333"]


def test_a_dry_run_and_a_question_nobody_can_answer_remove_nothing(bad_home: Home, old: list[str]) -> None:
    code, out, _ = call("prune", "--dry-run", "--json")
    assert (code, json.loads(out)["runs"]) == (0, 2)
    code, _, err = call("prune")
    assert code == 2
    assert "--yes: 2 runs would be removed" in err
    assert there(bad_home) == old


def test_only_checkpoints_go(bad_home: Home, old: list[str]) -> None:
    code, out, _ = call("prune", "--checkpoints", "--yes", "--json")
    assert (code, json.loads(out)) == (0, {"runs": 2, "bytes": 10_000, "left": []})
    assert not (bad_home.runs / "old-2222" / "checkpoints").exists()
    assert there(bad_home) == old


class AwayEngine(FakeEngine):
    """An engine whose target cannot be reached."""

    def remove(self, folder: RunFolder) -> None:
        raise refuse("the cluster is away", exit_code=3)


def test_a_run_that_cannot_be_reached_is_left_and_named(bad_home: Home, old: list[str]) -> None:
    session = Session(bad_home, engines={"local": AwayEngine})
    pruned = prune_runs(session, prunable_runs(session, old_runs(recent(session, None), 30 * DAY_S)))
    assert (pruned.runs, pruned.size_bytes) == ((), 0)
    assert pruned.left == tuple(Left(run_id, "the cluster is away", True) for run_id in old)
    assert there(bad_home) == old


def test_runs_that_have_not_ended_stay(bad_home: Home) -> None:
    add_run(bad_home, "old-2222", created_at=time.time() - 90 * DAY_S)
    events = bad_home.runs / "old-2222" / "record" / "n0.r0" / "events.jsonl"
    events.write_text("".join(line + "\n" for line in events.read_text().splitlines()[:-1]))
    assert old_runs([bad_home.read("old-2222")], 30 * DAY_S) == []


def test_show_has_a_runs_size(bad_home: Home, old: list[str]) -> None:
    assert json.loads(call("show", "old-2222", "--json")[1])["bytes"] > 5000
    assert "\nsize      " in call("show", "old-2222")[1]


class FarEngine(FakeEngine):
    """An engine with a folder of this machine as its cluster, reached as one without a login is."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        return clear_part(reach_to(None, None), str(self.root), folders, name, remove)


def put_far(root: Path, *runs: str) -> None:
    for run_id in runs:
        (root / run_id / "checkpoints").mkdir(parents=True)
        (root / run_id / "checkpoints" / "step-1.pt").write_bytes(b"x" * 50_000)


def test_checkpoints_on_a_cluster_go_too(bad_home: Home, old: list[str], tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    put_far(root, "old-2222", "good-2222")
    session = Session(bad_home, engines={"local": lambda: FarEngine(root)})
    planned = prunable_checkpoints(session, old_runs(recent(session, None), 30 * DAY_S))
    assert list(planned.sizes) == old
    assert planned.sizes["old-2222"] > 50_000 > planned.sizes["old-3333"]
    assert (root / "old-2222" / "checkpoints").is_dir(), "it was only planned"
    pruned = prune_runs(session, planned)
    assert (pruned.runs, pruned.left) == (tuple(old), ())
    assert not (root / "old-2222" / "checkpoints").exists()
    assert (root / "old-2222").is_dir()
    assert (root / "good-2222" / "checkpoints" / "step-1.pt").exists()


@pytest.mark.parametrize("link", ["old-2222", "old-2222/checkpoints"])
def test_a_link_on_the_cluster_leads_to_nobodys_checkpoints(
    bad_home: Home, old: list[str], tmp_path: Path, link: str
) -> None:
    root = tmp_path / "cluster"
    put_far(root, "good-2222")
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(root / "good-2222" / link.partition("/")[2])
    session = Session(bad_home, engines={"local": lambda: FarEngine(root)})
    prune_runs(session, prunable_checkpoints(session, old_runs(recent(session, None), 30 * DAY_S)))
    assert (root / "good-2222" / "checkpoints" / "step-1.pt").exists()


class AwayCheckpoints(FakeEngine):
    """An engine whose target cannot be asked about a part of its runs."""

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        raise refuse("the cluster is away", exit_code=3)


def test_a_run_whose_checkpoints_cannot_be_reached_keeps_all_of_them(bad_home: Home, old: list[str]) -> None:
    session = Session(bad_home, engines={"local": AwayCheckpoints})
    planned = prunable_checkpoints(session, old_runs(recent(session, None), 30 * DAY_S))
    pruned = prune_runs(session, planned)
    assert (pruned.runs, pruned.left) == ((), tuple(Left(run_id, "the cluster is away", True) for run_id in old))
    assert (bad_home.runs / "old-2222" / "checkpoints").is_dir()


def test_a_run_that_began_again_meanwhile_keeps_its_checkpoints(bad_home: Home, old: list[str]) -> None:
    """It was lost, and could go; then its pilots were heard of again."""
    folder = bad_home.runs / old[0]
    events = folder / "record" / "n0.r0" / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[:-1]))
    ended = json.loads(lines[-1])["t"]
    with (folder / "client.jsonl").open("a") as client:
        client.write(json.dumps({"t": ended + 10, "k": "lost", "why": "it is gone"}) + "\n")
    engine = FakeEngine()
    engine.says = Status("there")
    session = Session(bad_home, engines={"local": lambda: engine})
    prunable = prunable_checkpoints(session, old_runs([bad_home.read(run_id) for run_id in old], 30 * DAY_S))
    assert list(prunable.sizes) == old
    heard = {**json.loads(lines[2]), "t": ended + 20}
    with events.open("a") as pilot:
        pilot.write(json.dumps(heard) + "\n")
    pruned = prune_runs(session, prunable)
    assert pruned.runs == (old[1],)
    assert [(left.id, left.reason) for left in pruned.left] == [(old[0], "it is running again")]
    assert (folder / "checkpoints" / "step-1.pt").exists()
