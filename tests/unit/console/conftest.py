"""A console over a home of recorded runs, asked without a socket."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

import podwright
from podwright.console.desk import Desk, DeskClock
from podwright.console.routes.table import ROUTES
from podwright.console.web.app import Console
from podwright.data import Choice, ScanRequest, StatsRequest
from podwright.launch import Session, pods
from podwright.prove import SuiteFolder
from podwright.runs import Home
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.repeats import Planted, write_repeats
from tests.fixtures.run_folder import START, Shape, write_run
from tests.fixtures.suites import write_history
from tests.paths import ROOT

GOOD, BAD = "segmentation-7f3k", "segmentation-9k2p"
SIDES, SAMPLES = ("plain-00aa", "fused-00aa"), ((61.2, 60.4, 62.0, 61.6, 60.9), (60.1, 59.2, 61.9, 59.6, 60.8))
POD, SUITE = "superpod-140", "scale-strong-local-resnet"
DATASET, SELECTIONS = "scenes", ("half", "small")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
LINES = "".join(f"step {number} loss {1 / (number + 1):.4f}\n" for number in range(20_000))


@dataclass
class Hands:
    """Clocks that tests move."""

    time_s: float = START + 3600
    moving_s: float = field(default=1000.0)

    def clock(self) -> DeskClock:
        return DeskClock(lambda: self.moving_s, lambda: self.time_s)


@dataclass
class Site:
    """A console, with what tests look at behind it."""

    session: Session
    desk: Desk
    hands: Hands

    def client(self, base: str = "", **options: object) -> TestClient:
        """A browser that nobody has signed in with."""
        return TestClient(Console(self.desk, ROUTES, base), "http://localhost", follow_redirects=False, **options)  # type: ignore[arg-type]

    def entered(self, base: str = "") -> TestClient:
        """A browser that came by a link."""
        client = self.client(base)
        answer = client.get(f"{base}/enter", params={"key": self.desk.people.new_link()})
        assert answer.status_code == 303
        return client

    def token(self, *rights: str, days: int = 30) -> dict[str, str]:
        """The header of a token with these rights."""
        _, text = self.desk.people.make_token("a program", rights, days)
        return {"Authorization": f"Bearer {text}"}


@contextmanager
def listening(site: Site, base: str = "") -> Iterator[int]:
    """Serve a console on a port of the loopback."""
    server = uvicorn.Server(uvicorn.Config(Console(site.desk, ROUTES, base), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def furnish(site: Site) -> None:
    """Put into a home what is beside runs: repeats of two kinds, a suite with a slow round, one that scales, a pod."""
    home = site.session.home
    for name, samples in zip(SIDES, SAMPLES, strict=True):
        write_repeats(home, name, samples, Planted(driver="550" if name == SIDES[0] else "535"))
    for suite in (SUITE, "nightly"):
        write_history(SuiteFolder(home.path / "suites" / suite), [1.0, 1.0, 1.0, 1.2], ["sha256:1"] * 4)
    pods.add(home, ROOT / "examples" / f"{POD}.yaml")


def furnish_data(site: Site, folder: Path) -> Path:
    """Scan a few scenes of a folder, and freeze two selections of them."""
    tree = write_scenes(folder, frames=4)
    catalog = podwright.catalog(site.session)
    catalog.scan(ScanRequest(tree, DATASET))
    catalog.stats(StatsRequest(DATASET))
    for name, count in zip(SELECTIONS, (12, 6), strict=True):
        catalog.select(DATASET, Choice(name, size=count, split="train=0.75,validation=0.25"))
    return tree


def csrf(page: str) -> str:
    """The proof that a page's forms carry."""
    return page.partition('name="csrf" value="')[2].partition('"')[0]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as they were recorded, written once."""
    folder = tmp_path_factory.mktemp("recorded")
    write_run(folder / GOOD, Shape(seconds=90, pictures=False))
    shape = Shape(run=BAD, state="failed", retry_at=None, fail_at=30, seconds=32, said=HOSTILE)
    (write_run(folder / BAD, shape) / "token").write_text("a secret")
    (folder / GOOD / "record" / "n0.r0" / "rank0.log").write_text(LINES)
    return folder


@pytest.fixture
def site(tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    home = Home.open(tmp_path / "home")
    shutil.copytree(recorded, home.runs, dirs_exist_ok=True)
    hands = Hands()
    with Session(home) as session:
        desk = Desk(session, clock=hands.clock())
        yield Site(session, desk, hands)
        desk.close()
