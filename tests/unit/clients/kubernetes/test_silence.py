"""One budget for all questions to a server that does not answer."""

from __future__ import annotations

import socket

import pytest

from podwright.clients.kubernetes.api import Api, Away
from podwright.clients.kubernetes.silence import Silence
from tests.unit.clients.kubernetes.test_api import entry_at


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_budget_counts_from_the_first_question_and_one_answer_renews_it() -> None:
    clock = Clock()
    silence = Silence(8.0, clock)
    silence.begin(100.0)
    clock.now = 107.0
    silence.begin(106.0)
    assert (silence.left_s(), silence.is_spent()) == (1.0, False)
    silence.end()
    assert silence.left_s() == 8.0


def test_a_server_that_was_waited_for_is_asked_once_a_second() -> None:
    clock = Clock()
    silence = Silence(8.0, clock)
    silence.begin(90.0)
    assert (silence.is_spent(), silence.rests()) == (True, True)
    clock.now = 101.0
    assert (silence.is_spent(), silence.rests()) == (True, False)


def test_the_second_question_does_not_wait_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = Api(entry_at(taken.getsockname()[1]), pauses_s=(0.0, 0.0, 0.0), budget_s=0.0)
        with pytest.raises(Away, match="connection refused"):
            api.get("/version")
        assert api.requests == 1, "there is no budget for a second try"
        with pytest.raises(Away, match="it did not answer a moment ago"):
            api.get("/version")
        assert api.requests == 1
