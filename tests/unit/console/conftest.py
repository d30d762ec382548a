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

from podwright.console.desk import Desk, DeskClock
from podwright.console.routes.table import ROUTES
from podwright.console.web.app import Console
from podwright.launch import Session
from podwright.runs import Home
from tests.fixtures.run_folder import START, Shape, write_run

GOOD, BAD = "segmentation-7f3k", "segmentation-9k2p"
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
