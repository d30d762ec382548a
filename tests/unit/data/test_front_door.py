"""The front door with parts made by hand: what a scan that is killed leaves, and what is asked of who starts runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import podwright.data
from podwright.data import Advance, Catalog, Choice, FindRequest, ScanRequest, ShowRequest, StatsRequest
from podwright.data.catalog.history import Keep
from podwright.data.catalog.store import Store
from podwright.spec.problems import Refusal, refuse
from tests.fixtures.struck import kill_at

FILES = 36
CHILD = """
import sys
from pathlib import Path
from podwright.data import Catalog, ScanRequest
from podwright.data.catalog.store import Store

class Server:
    @property
    def version(self):
        stop()

class WithServer(Catalog):
    def _answering(self, catalog):
        return Server()

def progress(advance):
    if advance.what == sys.argv[3]:
        stop()

request = ScanRequest(Path(sys.argv[2]), "a2d2", checksums=True, catalog="pod")
WithServer(Store(Path(sys.argv[1])), lambda: None).scan(request, progress)
"""


class Launcher:
    """Keeps what it is asked, and starts nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def start(self, workload: Any, target: str) -> Any:
        self.asked.append(("start", workload.nodes, target))
        raise refuse("nothing is started here", exit_code=3)

    def find(self, ref: str) -> Any:
        self.asked.append(("find", ref))
        raise refuse("there is no run")

    def catalog_of(self, pod: str) -> str:
        self.asked.append(("catalog_of", pod))
        return "clickhouse://127.0.0.1:9/nothing"

    def history(self) -> Keep:
        return Keep()


@pytest.fixture
def launcher() -> Launcher:
    return Launcher()


@pytest.fixture
def catalog(store: Store, launcher: Launcher) -> Catalog:
    return Catalog(store, lambda: launcher)


def count(catalog: Catalog, where: str | None = None) -> int:
    return catalog.find(FindRequest("a2d2", where, limit=0)).count


# Where it is killed: the generation that is there then, its files, and how many of them have a checksum.
KILLED = {
    "scan": (1, FILES, 0),
    "checksums": (2, FILES + 1, 0),
    "published": (3, FILES + 1, FILES + 1),
}


@pytest.mark.parametrize("step", KILLED)
def test_a_scan_that_is_killed_between_its_steps_leaves_whole_generations(
    catalog: Catalog, store: Store, tree: Path, step: str
) -> None:
    catalog.scan(ScanRequest(tree, "a2d2"))
    (tree / "new.txt").write_text("new")
    kill_at(CHILD, store.home, tree, Path(step))
    left = (store.generation("a2d2"), count(catalog), count(catalog, 'sha256>=""'))
    assert left == KILLED[step]
    again = catalog.scan(ScanRequest(tree, "a2d2", checksums=True))
    assert (again.generation, again.files, again.unread) == (3, FILES + 1, ())
    assert count(catalog, 'sha256>=""') == FILES + 1
    assert sorted(path.name for path in (store.path / "a2d2").iterdir()) == ["current", "g000001", "g000003", "lock"]


def test_each_kind_of_work_tells_how_far_it_is(catalog: Catalog, tree: Path, tmp_path: Path) -> None:
    heard: list[Advance] = []
    catalog.scan(ScanRequest(tree, "a2d2", checksums=True), heard.append)
    catalog.stats(StatsRequest("a2d2"), heard.append)
    catalog.select("a2d2", Choice("all"))
    catalog.stage("all", tmp_path / "staged", heard.append)
    last = {advance.what: advance for advance in heard}
    assert list(last) == ["scan", "checksums", "stats", "staging"]
    assert (last["scan"].done, last["checksums"].total, last["stats"].total) == (FILES, FILES, 12)
    assert last["staging"].done == last["staging"].total
    assert last["staging"].text == "36 of 36 files"


def test_runs_and_pods_are_asked_of_what_was_handed_in(catalog: Catalog, launcher: Launcher, tree: Path) -> None:
    catalog.scan(ScanRequest(tree, "a2d2"))
    with pytest.raises(Refusal, match="nothing is started here"):
        catalog.stats(StatsRequest("a2d2", target="adas", nodes=2))
    with pytest.raises(Refusal, match="there is no run"):
        catalog.select("a2d2", Choice("hard", confusion="last"))
    with pytest.raises(Refusal) as caught:
        catalog.find(FindRequest("a2d2", catalog="adas"))
    assert caught.value.exit_code == 3
    assert launcher.asked == [("start", 2, "adas"), ("find", "last"), ("catalog_of", "adas")]


def test_nothing_is_forgotten_that_was_not_agreed_to(catalog: Catalog, tree: Path) -> None:
    catalog.scan(ScanRequest(tree, "a2d2"))
    catalog.select("a2d2", Choice("all"))
    asked: list[str | None] = []

    def refuse_it(address: str | None) -> bool:
        asked.append(address)
        return False

    for name in ("a2d2", "all"):
        assert not catalog.forget(name, agree=refuse_it)
    assert asked == [None, None]
    assert len(catalog.ls().datasets) == len(catalog.ls().selections) == 1
    assert catalog.forget("all")
    with pytest.raises(Refusal, match='there is no dataset or selection "all"'):
        catalog.show(ShowRequest("all"))
    assert catalog.forget("a2d2")
    assert catalog.ls().as_json() == {"datasets": [], "selections": []}


def test_every_public_name_is_there() -> None:
    assert {name: getattr(podwright.data, name).__name__ for name in podwright.data.__all__ if name != "Progress"} == {
        name: name for name in podwright.data.__all__ if name != "Progress"
    }
