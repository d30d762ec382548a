"""Sealing: metrics as Parquet equal what the pilots wrote, once, whoever does it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable
from typing import Any

from podwright.files.whole import write_whole
from podwright.runs import Home, RunFolder
from podwright.runs.metrics import read_metrics
from podwright.runs.seal import seal
from tests.unit.runs.made import START, end, go, write_lines

Add = Callable[..., str]


def sample(t: float, node: int, e: tuple[int, int] = (0, 0), **values: float) -> dict[str, Any]:
    return {"t": START + t, "n": node, "e": list(e), "v": values}


SAMPLES = {
    "n0.r0": [sample(0.5, 0, cpu_percent=12.5, memory_used_bytes=2**40), sample(1.5, 0, cpu_percent=13)],
    "n0.r1": [sample(2.5, 0, (1, 0), cpu_percent=1.25)],
    "n1.r0": [sample(0.5, 1, cpu_percent=99.0), sample(0.5, 1, (0, 1), **{"gpu.0.power_watts": 400.5})],
}


def finished(home: Home, add: Add) -> RunFolder:
    folder = home.folder(add("toy-2222"))
    for name, rows in SAMPLES.items():
        write_lines(folder.record_path / name / "metrics.jsonl", *rows)
    write_lines(folder.record_path / "n0.r0" / "events.jsonl", go(), end())
    return folder


def test_parquet_has_the_samples_as_they_were(home: Home, add: Add) -> None:
    folder = finished(home, add)
    before = list(folder.samples())
    assert [sample.as_row() for sample in before] == [row for rows in SAMPLES.values() for row in rows]
    record = home.read(folder.id)
    assert seal(folder, record)
    assert list(read_metrics(folder.path / "metrics.parquet")) == before
    assert list(folder.samples()) == before
    assert not list(folder.path.rglob("metrics.jsonl"))
    assert json.loads((folder.path / "record.json").read_text()) == record.as_json()
    assert folder.is_sealed


def test_sealing_again_changes_nothing(home: Home, add: Add) -> None:
    folder = finished(home, add)
    record = home.read(folder.id)
    seal(folder, record)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.rglob("*") if path.is_file()}
    assert seal(folder, record)
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.rglob("*") if path.is_file()}
    assert after == before


def test_two_at_once_seal_once(home: Home, add: Add) -> None:
    folder = finished(home, add)
    lock = os.open(folder.path / "seal.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert not seal(folder, home.read(folder.id)), "somebody else is at it"
    assert not folder.is_sealed
    os.close(lock)
    results: list[bool] = []
    record = home.read(folder.id)
    threads = [threading.Thread(target=lambda: results.append(seal(folder, record))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(results)
    assert len(list(folder.samples())) == 5
    assert not list(folder.path.glob(".*.part"))


def test_a_client_killed_between_the_two_files_loses_nothing(home: Home, add: Add) -> None:
    folder = finished(home, add)
    before = list(folder.samples())
    seal(folder, home.read(folder.id))
    (folder.path / "record.json").unlink()
    assert not folder.is_sealed
    assert seal(folder, home.read(folder.id))
    assert list(folder.samples()) == before


def test_a_run_without_metrics_is_sealed_without_them(home: Home, add: Add) -> None:
    folder = home.folder(add("toy-2222"))
    assert seal(folder, home.read(folder.id))
    assert folder.is_sealed
    assert not (folder.path / "metrics.parquet").exists()
    assert list(folder.samples()) == []


def test_a_file_is_written_whole_or_not_at_all(home: Home) -> None:
    path = home.path / "file"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
