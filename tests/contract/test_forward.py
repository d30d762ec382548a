"""`podwright forward`: a server in a run, as a client on this machine sees it, on every engine."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from podwright.launch import Run
from tests.contract.conftest import KUBERNETES, SLURM, make
from tests.contract.sites import END_S, Site, until
from tests.paths import ROOT

PATIENCE_S = 300
MANY = 20
SERVER = f"{sys.executable} serve.py"
CLIENT = "import sys; from podwright.cli.main import main; main()"


@pytest.fixture(params=["local", SLURM[0], KUBERNETES[0]])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """An engine of each kind."""
    yield from make(request, request.param, tmp_path)


@contextmanager
def forwarding(site: Site, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Gives the command and the address that it printed; ends it."""
    environ = {**os.environ, "PODWRIGHT_HOME": str(site.home.path), "NO_COLOR": "1"}
    command = [sys.executable, "-c", CLIENT, "forward", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environ, cwd=ROOT, text=True, **pipes) as client:
        try:
            assert client.stdout is not None
            yield client, client.stdout.readline().strip()
        finally:
            client.kill()


def page(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
        return text


def port_of(site: Site, run: Run, rank: int) -> int:
    return int(until(lambda: [told.value for told in site.told(run, "port") if told.rank == rank], "its port")[0])


def test_a_server_in_a_run_is_seen_here(served: Site) -> None:
    run = served.start(nodes=2, command=SERVER, launcher="ranks")
    port = port_of(served, run, 1)
    until(lambda: run.record().state == "running", "it runs")
    with forwarding(served, run.id, f"0:{port}", "--node", "1") as (client, url):
        assert url.startswith("http://127.0.0.1:")
        assert page(f"{url}/first") == f"rank 1 of {run.id} at /first"
        with ThreadPoolExecutor(MANY) as pool:
            texts = list(pool.map(page, [f"{url}/{number}" for number in range(MANY)]))
        assert texts == [f"rank 1 of {run.id} at /{number}" for number in range(MANY)]
        run.cancel()
        assert run.wait(END_S).state == "cancelled"
        _, err = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 0, err
        assert f"cancelled {run.id} has ended, and its port with it" in err
