"""Data that the pilots bring to their nodes: the source is read once, a second run reads nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podwright import launch, spec
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.progress import Advance
from podwright.data.selecting.copying import stage_to
from podwright.data.selecting.pool import DataSample, SampleFile
from podwright.data.selecting.selections import Selection, Split, freeze, load
from podwright.engines.local.engine import marked
from podwright.launch import Run, Session
from podwright.runs import Home
from podwright.runs.events import Staged
from tests.contract.sites import until
from tests.fixtures.counted import CountedServer, counted

PROGRAM = """
import hashlib, json, os, pathlib, sys
root = pathlib.Path(sys.argv[1])
rows = [json.loads(line) for line in (root / "samples.jsonl").read_text().splitlines()]
digest = hashlib.sha256()
for row in rows:
    digest.update((root / row["image"]).read_bytes())
print("digest", len(rows), digest.hexdigest())
import podwright_data
assert list(podwright_data.share(9, 0, podwright_data.RankPlace(0, 1)).positions) == list(range(9))
assert "site-packages" not in podwright_data.__file__
"""
FILES, SIZE = 12, 50_000


def make_files(folder: Path) -> list[Path]:
    folder.mkdir()
    paths = []
    for number in range(FILES):
        path = folder / f"frame {number:02}.png"
        path.write_bytes(hashlib.sha256(str(number).encode()).digest() * (SIZE // 32))
        paths.append(path)
    return paths


def select(session: Session, root: str, paths: list[Path], name: str = "far", sums: bool = True) -> None:
    """Freeze a selection of files that lie behind an address."""
    samples = []
    for path in paths:
        data = path.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest() if sums else None
        samples.append(DataSample(path.name, None, (SampleFile(path.name, None, "image", len(data), sha256),)))
    split = Split(tuple(samples), None)
    selection = Selection(name, "frames", root.encode(), "plain", 0, {"generation": 1}, {"all": split}, (), 0.0)
    freeze(Store(session.home.path), selection)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Home.open(tmp_path / "home"))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return make_files(tmp_path / "frames")


@pytest.fixture
def server(files: list[Path]) -> Iterator[CountedServer]:
    with counted(files[0].parent) as server:
        yield server


def workload(tmp_path: Path, data: str = "selection:far", nodes: int = 2, **more: Any) -> spec.Workload:
    folder = tmp_path / "work"
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "code" / "look.py").write_text(PROGRAM)
    lines = "".join(f"{name}: {value}\n" for name, value in more.items())
    text = f"name: looks\ncode: code\ncommand: python3 look.py {{data.frames}}\nnodes: {nodes}\n"
    (folder / "workload.yaml").write_text(f"{text}data: {{frames: '{data}'}}\n{lines}")
    return spec.load_workload(folder / "workload.yaml")


def seen(run: Run) -> set[str]:
    return {line.text for line in run.folder.log_lines() if line.text.startswith("digest")}


def expected(files: list[Path]) -> str:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files))
    return f"digest {len(files)} {digest.hexdigest()}"


def staged(run: Run) -> list[Staged]:
    return [event for event in run.folder.events_of(Staged) if event.what == "data"]


@pytest.mark.parametrize("sums", [True, False])
def test_two_nodes_read_the_source_once_and_a_second_run_reads_nothing(
    session: Session, tmp_path: Path, files: list[Path], server: CountedServer, sums: bool
) -> None:
    select(session, server.address, files, sums=sums)
    run = launch.start(session, workload(tmp_path))
    record = run.wait(120)
    assert (record.state, record.reason) == ("succeeded", "")
    assert seen(run) == {expected(files)}
    total = sum(path.stat().st_size for path in files)
    assert server.sent_bytes == total
    events = staged(run)
    assert {event.node for event in events} == {0, 1}
    assert sum(event.from_source or 0 for event in events) == total
    again = launch.start(session, workload(tmp_path))
    assert again.wait(120).state == "succeeded"
    assert seen(again) == {expected(files)}
    assert server.sent_bytes == total
    assert [event.reused for event in staged(again)] == [total, total]
    assert json.loads((run.folder.path / "run.json").read_bytes())["inputs"]["frames"]["selection"] == "far"
    assert not list((session.home.path / "cache" / "runs").iterdir())


def test_a_selection_is_copied_once_and_what_was_touched_again(
    session: Session, tmp_path: Path, files: list[Path], server: CountedServer
) -> None:
    select(session, server.address, files, sums=False)
    selection = load(Store(session.home.path), "far")
    folder = tmp_path / "copy"
    shown: list[Advance] = []
    first = stage_to(selection, None, folder, shown.append)
    assert [advance.done for advance in shown] == sorted(advance.done for advance in shown)
    assert shown[-1] == Advance("staging", first.bytes, first.bytes, f"{FILES} of {FILES} files")
    assert (first.files, first.copied, first.reused, first.from_peers) == (FILES, FILES, 0, 0)
    assert server.sent_bytes == first.bytes
    assert {path.name: path.read_bytes() for path in folder.glob("*.png")} == {
        path.name: path.read_bytes() for path in files
    }
    (folder / files[0].name).write_bytes(b"other")
    (folder / files[1].name).unlink()
    again = stage_to(selection, None, folder)
    assert (again.copied, again.reused) == (2, FILES - 2)
    assert (folder / files[0].name).read_bytes() == files[0].read_bytes()
    assert len((folder / "samples.jsonl").read_text().splitlines()) == FILES


def test_a_run_whose_source_is_gone_fails_with_its_address(
    session: Session, tmp_path: Path, files: list[Path], server: CountedServer
) -> None:
    select(session, server.address, files)
    files[3].unlink()
    run = launch.start(session, workload(tmp_path, nodes=1))
    record = run.wait(120)
    assert record.state == "failed"
    assert "frame%2003.png: the server says 404" in (record.reason or "")
    assert record.attempts == 0


def test_index_pages_of_a_server_are_scanned(session: Session, files: list[Path], server: CountedServer) -> None:
    store = Store(session.home.path)
    scanned = scan(store, server.address, "web")
    assert (scanned.files, scanned.directories) == (FILES, 1)
    assert scan(store, server.address, "web").changed == 0
    files[2].write_bytes(files[2].read_bytes()[::-1])
    assert scan(store, server.address, "web").changed == 1


def pilot_of(run: Run, node: int) -> int | None:
    """The process that is the pilot of a node."""
    for pid in marked().get(run.id, []):
        with suppress(OSError):
            words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            environ = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
            if b"node" in words and f"PODWRIGHT_NODE={node}".encode() in environ:
                return pid
    return None


def test_a_pilot_that_is_killed_while_it_brings_data_is_replaced_and_nothing_half_is_given(
    session: Session, tmp_path: Path, files: list[Path], server: CountedServer
) -> None:
    select(session, server.address, files)
    server.open.clear()
    server.requests.clear()
    run = launch.start(session, workload(tmp_path))
    until(lambda: len(server.requests) >= FILES, "every file is being read")
    pid = until(lambda: pilot_of(run, 1), "the pilot of node 1")
    os.kill(pid, signal.SIGKILL)
    server.open.set()
    record = run.wait(120)
    assert (record.state, record.reason, record.attempts) == ("succeeded", "", 1)
    assert seen(run) == {expected(files)}
    held = [path for path in (session.home.path / "cache" / "objects").rglob("*") if path.is_file()]
    assert {path.name for path in held} == {hashlib.sha256(path.read_bytes()).hexdigest() for path in held}
