"""The series of a run: the same values from lines, from Parquet and, of older runs, from events."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.runs import Home, RunFolder
from podwright.runs.metrics import read_metrics
from podwright.runs.parquet import Unreadable
from podwright.runs.seal import seal
from podwright.runs.series import SERIES_FILE, ToldValue, read_series
from tests.unit.runs.made import START, end, go, result, write_lines

Add = Callable[..., str]
ATTEMPTS = ((0, 0), (0, 1))


def line(t: float, e: tuple[int, int] = (0, 0), of: int | None = None, **values: Any) -> dict[str, Any]:
    count = {} if of is None else {"of": of}
    return {"t": START + t, "e": list(e), "v": values, **count}


LINES = {
    "n0.r0/rank0.series.jsonl": [
        line(1.0, step=1, loss=2.0),
        line(1.5, mean_iou=0.25),
        line(2.0, step=9, epoch=1, loss=1, of=8),
    ],
    "n0.r0/rank1.series.jsonl": [line(1.0, loss=3.0), line(3.0, (0, 1), loss=2.5)],
    "n1.r0/rank2.series.jsonl": [line(1.0, step=5, loss=4.0), line(4.0, (0, 1), loss=0.5)],
}
VALUES = [
    (1.0, 0, 0, 0, 0, 1.0, None, 1, "step", 1.0),
    (1.0, 0, 0, 0, 0, 1.0, None, 1, "loss", 2.0),
    (1.5, 0, 0, 0, 0, 1.0, None, 1, "mean_iou", 0.25),
    (2.0, 0, 0, 0, 0, 9.0, 1.0, 8, "step", 9.0),
    (2.0, 0, 0, 0, 0, 9.0, 1.0, 8, "epoch", 1.0),
    (2.0, 0, 0, 0, 0, 9.0, 1.0, 8, "loss", 1.0),
    (1.0, 0, 0, 0, 1, None, None, 1, "loss", 3.0),
    (3.0, 0, 0, 1, 1, None, None, 1, "loss", 2.5),
    (1.0, 1, 0, 0, 2, 5.0, None, 1, "step", 5.0),
    (1.0, 1, 0, 0, 2, 5.0, None, 1, "loss", 4.0),
    (4.0, 1, 0, 1, 2, None, None, 1, "loss", 0.5),
]
EXPECTED = [ToldValue(START + t, *rest) for t, *rest in VALUES]


def finished(home: Home, add: Add) -> RunFolder:
    folder = home.folder(add("toy-2222"))
    for name, rows in LINES.items():
        write_lines(folder.record_path / name, *rows)
    write_lines(folder.record_path / "n0.r0" / "events.jsonl", go(), result(2.0, loss=1.0), end())
    return folder


def test_every_value_comes_with_its_rank_its_attempt_and_its_step(home: Home, add: Add) -> None:
    assert list(finished(home, add).series()) == EXPECTED


def test_parquet_has_the_series_as_it_was_and_the_lines_are_gone(home: Home, add: Add) -> None:
    folder = finished(home, add)
    assert seal(folder, home.read(folder.id))
    assert list(read_series(folder.path / SERIES_FILE)) == EXPECTED
    assert list(folder.series()) == EXPECTED
    assert not list(folder.path.rglob("*.series.jsonl"))


def test_a_run_without_a_series_has_that_of_its_events(home: Home, add: Add) -> None:
    folder = home.folder(add("toy-2222"))
    rows = [result(1.0, step=1, loss=2.0), result(2.0, rank=2, mllog="run_start", time_ms=7), result(3.0, loss=1.0)]
    write_lines(folder.record_path / "n0.r0" / "events.jsonl", go(), *rows, end())
    values = [(value.rank, value.step, value.name, value.value) for value in folder.series()]
    assert values == [(0, 1.0, "step", 1.0), (0, 1.0, "loss", 2.0), (2, None, "time_ms", 7.0), (0, 1.0, "loss", 1.0)]
    seal(folder, home.read(folder.id))
    assert not (folder.path / SERIES_FILE).exists()
    assert len(list(folder.series())) == 4


@pytest.mark.parametrize("name", ["rank².series.jsonl", "rank-1.series.jsonl", f"rank{1 << 40}.series.jsonl", "rank1"])
def test_a_file_of_no_rank_is_no_series(home: Home, add: Add, name: str) -> None:
    folder = finished(home, add)
    write_lines(folder.record_path / "n0.r0" / name, line(1.0, loss=7.0))
    assert list(folder.series()) == EXPECTED


def test_lines_that_say_nothing_are_left_out(home: Home, add: Add) -> None:
    folder = finished(home, add)
    with (folder.record_path / "n1.r0" / "rank2.series.jsonl").open("a") as file:
        file.write(
            '{"t":1}\n[]\n{"t":"x","e":[0,0],"v":{}}\n{"t":1,"e":[0],"v":{}}\n{"t":1,"e":[0,0],"v":{"a":"b"}}\n{'
        )
    assert list(folder.series()) == EXPECTED
    assert seal(folder, home.read(folder.id))
    assert list(folder.series()) == EXPECTED


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(40)
    path.write_bytes(data)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [_cut, _scribble, _pipe, _folder])
def test_a_damaged_parquet_file_is_said_in_words(home: Home, add: Add, damage: Callable[[Path], None]) -> None:
    folder = finished(home, add)
    samples = [{"t": START + i, "n": 0, "e": [0, 0], "v": {"cpu_percent": 1.0}} for i in range(3)]
    write_lines(folder.record_path / "n0.r0" / "metrics.jsonl", *samples)
    seal(folder, home.read(folder.id))
    for name, read in ((SERIES_FILE, read_series), ("metrics.parquet", read_metrics)):
        damage(folder.path / name)
        with pytest.raises(Unreadable, match=f"^{name} cannot be read: "):
            list(read(folder.path / name))


def test_a_sparse_file_of_a_terabyte_is_passed_over(home: Home, add: Add) -> None:
    folder = finished(home, add)
    for name in ("events.jsonl", "rank1.series.jsonl", "metrics.jsonl"):
        path = folder.record_path / "n0.r0" / name
        path.touch()
        os.truncate(path, 1 << 40)
        with path.open("ab") as file:
            file.write(b'{"t":1,"e":[0,0],"n":0,"k":"signal","name":"SIGUSR1","v":{"loss":7}}\n')
    events = list(folder.events())
    assert [event.kind for event in events] == ["go", "result", "end", "signal"]
    assert [value.value for value in folder.series() if value.rank == 1] == [3.0, 2.5, 7.0]
    assert home.read(folder.id).state == "succeeded"
    assert [sample.values for sample in folder.samples()] == [{"loss": 7}]
