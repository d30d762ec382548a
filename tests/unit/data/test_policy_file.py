"""A policy that one file describes: its steps in turn, conditions on samples, undone as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.data.policies.policy_file import read_policy
from podwright.spec.problems import Refusal
from tests.fixtures.a2d2 import write_frame
from tests.unit.data.conftest import Say

POLICY = """\
dataset: a2d2
on: new
where: kind=camera and ext=png
steps:
  - do: stats
  - do: tag
    tag: seen=yes
  - if: Pedestrian>0 and light=night
    do: tag
    tag: pool=yes
  - if: pool=yes
    do: checksum
"""


def test_a_new_image_is_counted_tagged_and_put_into_the_pool(ask: Say, tree: Path, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    ask("stats", "a2d2")
    ask("tag", "a2d2", "name~nothing", "light=night")
    (tmp_path / "night.yaml").write_text(POLICY)
    added = ask("policy", "add", tmp_path / "night.yaml")
    assert (added["name"], added["state"]) == ("night", "ready")
    for frame, people in ((50, 3), (51, 0), (52, 2)):
        write_frame(tree, "20180801_145028", "front_center", frame, {"Sky": 2, "Pedestrian": people})
    ask("scan", tree, "--name", "a2d2")
    ask("tag", "a2d2", "frame>=50 and frame<=51", "light=night")
    ran = ask("policy", "run", "--due")
    assert (ran["state"], ran["done"]) == ("done", 3)
    assert [row["frame"] for row in ask("find", "a2d2", "seen=yes")["files"]] == [50, 51, 52]
    assert [row["frame"] for row in ask("find", "a2d2", "pool=yes")["files"]] == [50], "at night, with people"
    assert ask("sql", "a2d2", "select count(sha256) from files")["rows"] == [[1]]
    assert ask("find", "a2d2", "Pedestrian>0 and frame>=50", "--count")["count"] == 2, "its label was counted"
    assert ask("policy", "run", "night")["done"] == 3, "once"
    ask("policy", "undo", "night")
    assert ask("sql", "a2d2", "select distinct name from tag")["rows"] == [["light"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("tag: seen=yes", "iff: x=1"), "unknown field"),
        (("    tag: seen=yes\n", ""), "has no tag"),
        (("do: checksum", "do: delete"), "steps[3].do"),
        (("on: new", "on: new\nevery: 1h"), "cannot be together with `on: new`"),
        (("  - do: stats", "  - do: stats\n    tag: a=b"), "means nothing to `do: stats`"),
        (("dataset: a2d2\n", ""), "dataset"),
        (("if: pool=yes", "if: pool="), "steps[3].if"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(POLICY.replace(*change))
    with pytest.raises(Refusal) as caught:
        read_policy(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
