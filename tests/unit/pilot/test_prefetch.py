"""The role that fills a cache before a run has its nodes, as a process of its own, from a real server."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.engines.payload import pilot_zip
from podwright.pilot.data.manifest import pack_manifest
from podwright.pilot.protocol import EXIT_FAILED, EXIT_STOPPED, Order
from tests.contract.sites import until
from tests.fixtures.counted import CountedServer, counted

COUNT, SIZE = 12, 30_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CountedServer]:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.bin").write_bytes(hashlib.sha256(str(number).encode()).digest() * (SIZE // 32))
    with counted(folder) as server:
        yield server


def ordered(tmp_path: Path, server: CountedServer) -> list[str]:
    """Lay a job's files, and return the command that Slurm's script has."""
    rows = []
    for path in sorted(server.root.iterdir()):
        data = path.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        rows.append({"path": path.name, "size": len(data), "sha256": sha256, "source": f"{server.address}/{path.name}"})
    job = tmp_path / "job"
    job.mkdir(exist_ok=True)
    manifest = pack_manifest(rows)
    (job / "data.gz").write_bytes(manifest)
    (job / "pilot.pyz").write_bytes(pilot_zip())
    entry = {"name": "frames", "manifest": "data.gz", "sha256": hashlib.sha256(manifest).hexdigest(), "site": {}}
    order = Order(
        "toy-2222", "slurm", 2, 1, "ranks", ["true"], "..", "", True, "0.0.0.0", "checkpoints",
        data=[entry], cache={"path": str(tmp_path / "cache"), "bytes": None},
    )  # fmt: skip
    (job / "order.json").write_text(order.text())
    return [sys.executable, "-I", "-S", str(job / "pilot.pyz"), "stage", str(job / "order.json")]


def begin(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_it_fills_the_cache_and_leaves_nothing_else(tmp_path: Path, server: CountedServer) -> None:
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in server.root.iterdir())
    total = sum(path.stat().st_size for path in server.root.iterdir())
    command = ordered(tmp_path, server)
    for from_source in (total, 0):
        with begin(command) as process:
            said = process.communicate()[1]
        assert said == f"podwright: {total} of {total} bytes are in the cache, {from_source} from the source\n"
        assert process.returncode == 0
        assert names(tmp_path / "cache" / "objects") == digests
        assert names(tmp_path / "cache" / "runs") == names(tmp_path / "cache" / "part") == []
    assert server.sent_bytes == total


def test_one_that_is_stopped_leaves_nothing_half(tmp_path: Path, server: CountedServer) -> None:
    """The source says nothing all the while."""
    server.open.clear()
    total = sum(path.stat().st_size for path in server.root.iterdir())
    with begin(ordered(tmp_path, server)) as process:
        until(lambda: server.requests, "a file is asked for")
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1]
    assert process.returncode == EXIT_STOPPED
    assert said == f"podwright: stopped; 0 of {total} bytes are in the cache, 0 from the source\n"
    assert [names(tmp_path / "cache" / folder) for folder in ("objects", "runs", "part")] == [[], [], []]


def test_one_whose_source_is_gone_says_so(tmp_path: Path, server: CountedServer) -> None:
    command = ordered(tmp_path, server)
    (server.root / "3.bin").unlink()
    with begin(command) as process:
        said = process.communicate()[1]
    assert process.returncode == EXIT_FAILED
    assert "3.bin: the server says 404" in said
    assert names(tmp_path / "cache" / "part") == []
