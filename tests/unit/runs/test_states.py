"""The state table and its laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.cli.terminal import verdict
from podwright.runs import FINAL, SETTLED, STATES
from podwright.runs.states import ALLOWED, BY_END, BY_EVENT, move, summary

STATE = st.sampled_from(STATES)


def test_the_states_are_those_of_the_contract() -> None:
    assert STATES == ("pending", "starting", "running", "succeeded", "failed", "cancelled", "lost")
    assert {"succeeded", "failed", "cancelled", "lost"} == FINAL
    assert FINAL - {"lost"} == SETTLED


def test_the_table_names_every_state_and_no_other() -> None:
    assert set(ALLOWED) == set(STATES)
    assert set().union(*ALLOWED.values()) <= set(STATES)
    assert set(BY_EVENT.values()) | set(BY_END.values()) <= set(STATES)


@given(st.sampled_from(sorted(SETTLED)), st.lists(STATE))
def test_a_settled_state_never_changes(state: str, news: list[str]) -> None:
    for to in news:
        assert move(state, to) == state


@given(STATE)
def test_what_is_not_final_may_fail_be_cancelled_or_get_lost(to: str) -> None:
    for state in set(STATES) - FINAL:
        assert move(state, to) == to or to not in {"failed", "cancelled", "lost"}


@given(STATE.filter(lambda state: state != "lost"))
def test_a_lost_run_may_turn_up_in_any_state(to: str) -> None:
    assert move("lost", to) == to


@pytest.mark.parametrize(
    ("state", "to", "then"),
    [
        ("pending", "starting", "starting"),
        ("pending", "running", "pending"),
        ("pending", "succeeded", "pending"),
        ("starting", "running", "running"),
        ("running", "pending", "pending"),
        ("running", "starting", "running"),
        ("running", "succeeded", "succeeded"),
    ],
)
def test_move(state: str, to: str, then: str) -> None:
    assert move(state, to) == then


SUMMARIES = [
    ([], "pending"),
    (["pending", "pending"], "pending"),
    (["pending", "starting"], "running"),
    (["succeeded", "pending"], "running"),
    (["succeeded", "running"], "running"),
    (["failed", "running"], "running"),
    (["succeeded", "succeeded"], "succeeded"),
    (["succeeded", "cancelled"], "cancelled"),
    (["cancelled", "failed", "succeeded"], "failed"),
    (["failed", "lost", "succeeded"], "lost"),
]


@pytest.mark.parametrize(("states", "state"), SUMMARIES)
def test_a_parent_is_what_its_points_are(states: list[str], state: str) -> None:
    assert summary(states) == state


@given(st.lists(STATE, min_size=1))
def test_a_parent_is_over_when_all_points_are(states: list[str]) -> None:
    assert (summary(states) in FINAL) == all(state in FINAL for state in states)


def test_the_command_line_has_an_exit_code_for_every_final_state_and_no_other() -> None:
    assert set(verdict.CODES) == FINAL
