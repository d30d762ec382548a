"""The journal: a clock that never steps back, torn lines, full disks."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podwright.pilot.journal import Clock, Journal, Lines
from podwright.pilot.protocol import read_lines


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
    assert read_lines(str(tmp_path / "events.jsonl"))[0] == [
        {"t": 1700000000.123, "e": [0, 0], "n": 3, "q": 0, "k": "pilot", "host": "a"},
        {"t": 1700000000.123, "e": [2, 0], "n": 3, "q": 1, "k": "go", "hosts": []},
        {"t": 1700000000.123, "e": [1, 2], "n": 3, "q": 2, "k": "end"},
    ]


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2')
    lines = Lines(str(path))
    assert lines.write({"a": 3})
    lines.close()
    assert read_lines(str(path))[0] == [{"a": 1}, {"a": 3}]


def test_a_line_that_went_in_half_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, told = tmp_path / "events.jsonl", []
    lines, write = Lines(str(path), told.append), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:5]))
        assert not lines.write({"a": 1})
    assert lines.write({"a": 2})
    assert lines.write({"a": 3})
    lines.close()
    assert read_lines(str(path))[0] == [{"a": 2}, {"a": 3}]
    assert told == [1]


def test_a_full_device_never_raises() -> None:
    told: list[int] = []
    lines = Lines("/dev/full", told.append)
    assert [lines.write({"a": i}) for i in range(3)] == [False, False, False]
    assert (lines.lost, told) == (3, [])
    lines.close()


FULL_THEN_FREE = """
import resource, sys
from podwright.pilot.journal import Clock, Journal
journal = Journal(sys.argv[1], 0, Clock())
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
for i in range(20):
    journal.say("result", i=i)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.say("end")
journal.close()
"""


def test_what_a_full_disk_took_is_told_once_it_has_room_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL_THEN_FREE, path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    rows = read_lines(str(path))[0]
    kept = [row["i"] for row in rows if row["k"] == "result"]
    assert 0 < len(kept) < 20
    assert kept == list(range(len(kept)))
    assert [row["k"] for row in rows[len(kept) :]] == ["end", "sensor"]
    assert (rows[-1]["name"], rows[-1]["error"]) == ("journal", f"{20 - len(kept)} events lost")


def test_every_error_of_a_write_is_a_loss_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(str(tmp_path / "events.jsonl"))
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE):

        def refuse(file: int, data: bytes, number: int = number) -> int:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", refuse)
            assert not lines.write({})
    assert lines.write({"a": 1})
    lines.close()
    assert json.loads((tmp_path / "events.jsonl").read_text()) == {"a": 1}
