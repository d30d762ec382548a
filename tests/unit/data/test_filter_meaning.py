"""What filters mean, held against plain Python over the rows: in `find` by SQL and indexes, and in policies.

tests/real/test_clickhouse.py holds ClickHouse to the same.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.policies.folder import Policy, PolicyFolder
from podwright.data.policies.policies import Policies
from podwright.data.policies.tags import tag
from podwright.data.query import bitmaps
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.filters import SECOND, random_filter
from tests.unit.data.conftest import Say

MANY = [pytest.param(200, id="200"), pytest.param(2000, id="2000", marks=pytest.mark.nightly)]


def write_tree(folder: Path) -> Path:
    """Scenes, odd names, and files whose times are of one second, 300 days apart from the rest."""
    tree = write_scenes(folder / "a2d2", scenes=3, frames=3)
    (tree / "odd" / "deep").mkdir(parents=True)
    for number in range(20):
        (tree / "odd" / f"notes{number}.txt").write_text("x" * (number % 7))
    for name in ("new\nline.txt", "back\\slash.txt", 'quo"te.txt', "new\\nline.txt"):
        (tree / "odd" / "deep" / name).touch()
    for number, path in enumerate(sorted(path for path in tree.rglob("*") if path.is_file())):
        second = (SECOND, SECOND + 1, SECOND - 300 * 86400)[number % 3]
        os.utime(path, ns=(second * 10**9, second * 10**9 + (number % 5 == 0)))
    return tree


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    """All rows as Python has them, with tags."""
    answer = dataset.query("select * exclude (mtime), epoch_ns(mtime) as mtime from files order by id")
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    for file, name, value in dataset.connection.execute("select file, name, value from tag").fetchall():
        rows[file][name] = value
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("meaning")
    tree, store = write_tree(folder), Store(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "SPAN_ROWS", 16)  # few files shall lie in many blocks
        scan(store, tree, "a2d2")
    count_labels(store, "a2d2")
    tag(store, "a2d2", "frame=1", "weather", "rain")
    tag(store, "a2d2", "frame=2", "weather", "snow")
    return store


@pytest.mark.parametrize("count", MANY)
def test_filters_choose_what_plain_python_chooses(home: Store, count: int) -> None:
    chance = random.Random(count)
    policies = Policies(home)
    with open_dataset(home, "a2d2") as dataset:
        rows = rows_of(dataset)
        assert sum(row["mtime"] == SECOND * 10**9 for row in rows) > 5
        for number in range(count):
            text, test = random_filter(chance)
            wanted = [row["path"] for row in rows if test(row)]
            condition = dataset.condition(text)
            assert [match.path for match in dataset.find(condition)] == wanted, text
            assert dataset.count_files(condition) == len(wanted), text
            if number % 20 == 0:
                name = f"p{number}-{count}"
                policies.add(Policy(name, "a2d2", text, "checksum"))
                assert [match.path for match in policies.dry_run(name).files] == wanted, text


def test_times_that_are_equal_are_neither_before_nor_behind(home: Store) -> None:
    with open_dataset(home, "a2d2") as dataset:
        times = [row["mtime"] for row in rows_of(dataset)]
        moment = SECOND * 10**9
        for sign, wanted in (("<", sum(time < moment for time in times)), (">", sum(time > moment for time in times))):
            assert dataset.count_files(dataset.condition(f"mtime{sign}2023-11-14T22:13:20")) == wanted


def test_a_name_is_typed_back_as_it_is_shown(store: Store, tell: Any, ask: Say, tmp_path: Path) -> None:
    scan(store, write_tree(tmp_path), "a2d2")
    out, _ = tell("find", "a2d2", "folder=odd/deep")
    shown = [line.split("  ", 1)[1].strip() for line in out.splitlines() if "odd/deep/" in line]
    assert len(shown) == 4
    for path in shown:
        typed = path.replace('"', '\\"')
        (match,) = ask("find", "a2d2", f'path="{typed}"')["files"]
        assert match["path"].startswith("odd/deep/")


def test_a_policy_whose_filter_means_more_now_waits_for_somebody(home: Store) -> None:
    policies = Policies(home)
    for name, where in (("more", "not scene=20180801_145028"), ("same", "not ext=png")):
        policies.add(Policy(name, "a2d2", where, "checksum"))
        PolicyFolder(home, name).change(rules=1)  # as 0.2 kept it
    report = policies.run("more")
    assert (report.policy.state, report.done) == ("paused", 0)
    assert report.policy.why.startswith("its filter chose 18 files and chooses 42 since")
    assert policies.resume("more").policy.state == "ready"
    assert policies.run("more").done == 42
    assert policies.run("same").policy.state == "done"
