"""Locks that are files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from podwright.files.locks import locked_text, only, try_lock, wait_for


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with try_lock(path) as first, try_lock(path) as second:
        assert (first, second) == (True, False)
    with try_lock(path) as third:
        assert third


def test_the_words_of_a_lock_are_read_only_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert locked_text(path) is None
    with try_lock(path):
        path.write_text("17\n")
        assert locked_text(path) == "17\n"
    assert locked_text(path) is None


def test_whoever_must_be_the_only_one_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with try_lock(path), pytest.raises(RuntimeError, match="taken"), only(path, RuntimeError("taken")):
        pass
    with only(path, RuntimeError("taken")), try_lock(path) as again:
        assert not again


def test_whoever_waits_for_a_lock_is_told_and_gets_it(tmp_path: Path) -> None:
    path, order = tmp_path / "a.lock", []

    def wait() -> None:
        with wait_for(path, lambda: order.append("waits")):
            order.append("held")

    with wait_for(path, lambda: order.append("never")):
        waiter = threading.Thread(target=wait)
        waiter.start()
        while "waits" not in order:
            time.sleep(0.01)
        order.append("left")
    waiter.join()
    assert order == ["waits", "left", "held"]


def test_who_waited_for_a_lock_holds_it_alone(tmp_path: Path) -> None:
    path, done = tmp_path / "a.lock", threading.Event()
    waited = threading.Event()

    def wait() -> None:
        with wait_for(path, waited.set):
            done.wait(60)

    with try_lock(path):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert waited.wait(60)
    # It takes a moment until the waiter has it; from then on nobody else gets it until it lets go.
    while locked_text(path) is None:
        time.sleep(0.01)
    with try_lock(path) as again:
        assert not again
    done.set()
    waiter.join()
