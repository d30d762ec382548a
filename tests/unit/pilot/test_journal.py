"""The journal: a clock that never steps back, torn lines, full disks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.protocol import rows_of
from podwright.pilot.system.journal import Clock, Journal, JsonLines
from tests.fixtures.hostile import NO_PLAIN_FILES


class Still(Clock):
    """A clock that stands."""

    def __init__(self) -> None:
        super().__init__()
        self.now = lambda: 1700000000.1234  # type: ignore[method-assign]


def test_the_clock_goes_on_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, wall = Clock(), time.time()
    seen = [clock.now()]
    for step_s in (-3600.0, +3600.0, -86400.0):
        monkeypatch.setattr(time, "time", lambda step_s=step_s: wall + step_s)
        seen.append(clock.now())
    assert seen == sorted(seen)
    assert abs(seen[-1] - wall) < 60


def test_an_event_carries_time_epoch_node_and_sequence(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "events.jsonl"), 3, Still())
    journal.say("pilot", host="a")
    journal.epoch = (1, 2)
    journal.say("go", e=[2, 0], hosts=[])
    journal.say("end")
    journal.close()
    assert list(rows_of(str(tmp_path / "events.jsonl"))) == [
        {"t": 1700000000.123, "e": [0, 0], "n": 3, "q": 0, "k": "pilot", "host": "a"},
        {"t": 1700000000.123, "e": [2, 0], "n": 3, "q": 1, "k": "go", "hosts": []},
        {"t": 1700000000.123, "e": [1, 2], "n": 3, "q": 2, "k": "end"},
    ]


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2')
    lines = JsonLines(str(path), 10)
    lines.write({"a": 3})
    assert lines.close()
    assert list(rows_of(str(path))) == [{"a": 1}, {"a": 3}]


def test_a_line_that_went_in_half_is_written_again_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    lines, write = JsonLines(str(path), 10), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:5]))
        lines.write({"a": 1})
    lines.write({"a": 2})
    assert lines.close()
    assert list(rows_of(str(path))) == [{"a": 1}, {"a": 2}]


def test_a_full_device_never_raises_and_says_at_the_end_that_lines_are_missing() -> None:
    lines = JsonLines("/dev/full", 2)
    for i in range(5):
        lines.write({"a": i})
    assert not lines.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE])
def test_whatever_the_error_lines_wait_and_what_is_given_up_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path, told = tmp_path / "events.jsonl", []
    lines = JsonLines(str(path), 3, told.append)

    def refuse(file: int, data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        for i in range(5):
            lines.write({"a": i})
    assert told == []
    lines.write({"a": 5})
    lines.write({"a": 6})
    assert lines.close()
    assert [row["a"] for row in rows_of(str(path))] == [3, 4, 5, 6]
    assert told == [3]


FULL_THEN_FREE = """
import resource, sys
from podwright.pilot.system import journal
journal.MAX_WAITING_EVENTS = int(sys.argv[2])
events = journal.Journal(sys.argv[1], 0, journal.Clock())
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
for i in range(20):
    events.say("result", i=i)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
events.say("end")
sys.exit(not events.close())
"""


def filled(path: Path, keep: int) -> list[dict[str, Any]]:
    """The events that are there after a disk was full and had room again."""
    command = [sys.executable, "-c", FULL_THEN_FREE, str(path), str(keep)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return list(rows_of(str(path)))


def test_a_disk_that_was_full_costs_nothing(tmp_path: Path) -> None:
    rows = filled(tmp_path / "events.jsonl", 100)
    assert [row.get("i", row["k"]) for row in rows] == [*range(20), "end"]


def test_what_no_longer_fitted_into_memory_is_told(tmp_path: Path) -> None:
    rows = filled(tmp_path / "events.jsonl", 5)
    kept = [row["i"] for row in rows if row["k"] == "result"]
    assert 0 < len(kept) < 20
    assert kept[-4:] == [16, 17, 18, 19]
    assert [row["k"] for row in rows[len(kept) :]] == ["end", "sensor"]
    assert (rows[-1]["name"], rows[-1]["error"]) == ("journal", f"{20 - len(kept)} events lost")


@pytest.mark.parametrize("kind", ["a pipe", "a link"])
def test_what_a_rank_put_in_place_of_the_file_is_replaced(tmp_path: Path, kind: str) -> None:
    """Before a pilot that is started anew comes to it: it neither waits for a reader nor writes elsewhere."""
    path = tmp_path / "events.jsonl"
    NO_PLAIN_FILES[kind](path)
    lines = JsonLines(str(path), 10)
    lines.write({"k": "go"})
    assert lines.close()
    assert not path.is_symlink()
    assert path.read_text() == '{"k":"go"}\n'
