"""Which rank holds the others up: rules in order of certainty."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.pilot.life.member import Member, suspect

# rank: [silent_s, share of a core, process state, step]; ranks 0 and 1 are on node 0, 2 and 3 on node 1
CALM: dict[int, list[Any]] = {rank: [100.0, 0.5, "S", 40] for rank in range(4)}

CASES = {
    "stopped": ({2: [100.0, 0.5, "T", 40]}, (2, 1, "its process is stopped")),
    "traced": ({1: [100.0, 0.5, "t", 40]}, (1, 0, "it is being traced")),
    "in the kernel": ({3: [100.0, 0.0, "D", 40]}, (3, 1, "it waits in the kernel")),
    "stopped before in the kernel": (
        {0: [100.0, 0.0, "D", 40], 3: [1.0, 0.0, "T", 40]},
        (3, 1, "its process is stopped"),
    ),
    "behind in steps": ({1: [90.0, 0.9, "R", 39]}, (1, 0, "it is at step 39, others are further")),
    "steps before CPU": (
        {0: [100.0, 0.0, "S", 40], 3: [100.0, 0.5, "S", 12.5]},
        (3, 1, "it is at step 12.5, others are further"),
    ),
    "a rank without steps is not behind": (
        {0: [100.0, 0.5, "S", None], 1: [100.0, 0.5, "S", None], 2: [120.0, 0.5, "S", None]},
        (2, 1, "it has printed nothing for 120 s"),
    ),
    "idle among the busy": (
        {rank: [100.0, 1.0 if rank != 3 else 0.0, "R", 40] for rank in range(4)},
        (3, 1, "it uses 0% of a core, the others 100%"),
    ),
    "busy among the idle": (
        {rank: [100.0, 0.0 if rank != 1 else 1.0, "S", 40] for rank in range(4)},
        (1, 0, "it uses 100% of a core, the others 0%"),
    ),
    "a little busier is not odd": (
        {1: [100.0, 0.6, "S", 40], 2: [130.0, 0.5, "S", 40]},
        (2, 1, "it has printed nothing for 130 s"),
    ),
    "longest silent": ({0: [101.0, 0.5, "S", 40]}, (0, 0, "it has printed nothing for 101 s")),
}


def members(rows: dict[int, list[Any]]) -> list[Member]:
    found = [Member(node, {}, None) for node in (0, 1)]
    for rank, facts in rows.items():
        found[rank // 2].ranks[str(rank)] = facts
    return found


@pytest.mark.parametrize(("changes", "suspected"), CASES.values(), ids=CASES.keys())
def test_suspect(changes: dict[int, list[Any]], suspected: tuple[int, int, str]) -> None:
    assert suspect(members({**CALM, **changes})) == suspected


def test_of_two_ranks_none_is_odd() -> None:
    pair = members({0: [10.0, 1.0, "R", None], 2: [12.0, 0.0, "S", None]})
    assert suspect(pair) == (2, 1, "it has printed nothing for 12 s")


def test_ranks_of_a_node_that_is_done_are_not_suspected() -> None:
    found = members({**CALM, 3: [900.0, 0.0, "T", 1]})
    found[1].done = True
    assert suspect(found)[1] == 0


def test_without_any_word_the_first_is_named() -> None:
    assert suspect([]) == (0, 0, "no rank reported anything")
