"""The bounds within which what others wrote is read: a hang, a loop and a gigabyte are found, and words alone pass."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from podwright.spec.problems import refuse
from tests.fixtures import damage
from tests.fixtures.damage import TooLong, bounded


def test_what_stands_still_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "WALL_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    before = signal.getitimer(signal.ITIMER_REAL)
    with pytest.raises(TooLong, match="SIGALRM"), bounded():
        (tmp_path / "pipe").read_bytes()
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (before[0] > 0)


def test_what_loops_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "CPU_S", 0.1)
    with pytest.raises(TooLong, match="SIGPROF"), bounded():
        _loop()


def _loop() -> None:
    while True:
        pass


def test_gigabytes_are_not_given() -> None:
    with pytest.raises(MemoryError), bounded():
        bytearray(2 << 30)


def test_a_refusal_needs_words() -> None:
    with bounded():
        raise refuse("this is none")
    with pytest.raises(AssertionError, match="without words"), bounded():
        raise refuse("")
