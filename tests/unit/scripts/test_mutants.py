"""The chosen lines are there, a line that was moved is refused by name, and what is drawn at random is Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts.mutants import Mutant, Verdict, lost, page, read_mutants
from scripts.random_mutants import changes_of, draw
from tests.paths import ROOT

MUTANTS = read_mutants()
ONE = Mutant("a sign", "a.py", "return x + 1", "return x - 1", ())


def test_there_are_as_many_as_were_promised_over_all_bands() -> None:
    assert len(MUTANTS) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    bands = {Path(mutant.path).parts[2] for mutant in MUTANTS}
    assert bands >= {"bringup", "pilot", "runs", "clients", "launch", "engines", "spec", "data", "design", "analysis"}


def test_every_line_and_every_test_of_the_list_is_there() -> None:
    assert lost(MUTANTS) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_another_program(mutant: Mutant) -> None:
    before = (ROOT / mutant.path).read_text()
    after = mutant.applied(before)
    if mutant.path.endswith(".py"):
        assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    # Of other forms it is enough that blanks are not all that differs.
    assert after.split() != before.split()


@pytest.mark.parametrize(
    ("text", "words"), [("return x + 2\n", "is no longer there"), ("return x + 1\n" * 2, "stands there 2 times")]
)
def test_a_line_that_was_moved_is_refused_loudly(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert lost([ONE], tmp_path) == [f"a.py: a sign: this line {words}: return x + 1"]


def test_the_page_has_both_passes() -> None:
    survived = Mutant(**{**vars(ONE), "first": "survived"})
    drawn = [Verdict(ONE, outcome, 1.0) for outcome in ("killed", "killed", "killed", "survived")]
    text = page([Verdict(survived, "killed", 1.0), Verdict(ONE, "survived", 1.0)], drawn, 7, "2026-01-02")
    assert "| a sign | `a.py` | survived | killed |\n| a sign | `a.py` | killed | survived |" in text
    assert "Of 2 lines 1 survived the first pass, before any test was mended; now 1 do." in text
    assert "4 changes drawn with seed 7 from src: 3 were noticed (75%)" in text


def test_every_kind_of_change_is_made() -> None:
    source = "def f(x: int = 3) -> bool:\n    if x < 2:\n        g(x)\n    x += 1\n    return x in (True, 'ä')\n"
    changes = list(changes_of(source))
    assert [(line, what) for line, what, _ in changes] == [
        (1, "3 moved by one"),
        (2, "x < 2 negated"),
        (2, "x < 2 turned"),
        (2, "2 moved by one"),
        (3, "g(x) dropped"),
        (4, "x += 1 dropped"),
        (4, "1 moved by one"),
        (5, "x in (True, 'ä') turned"),
        (5, "True turned"),
    ]
    for _, _, after in changes:
        ast.parse(after)
        assert after != source


def test_the_same_seed_draws_the_same() -> None:
    first, again = draw(ROOT, 20, 3), draw(ROOT, 20, 3)
    assert [mutant.name for mutant in first] == [mutant.name for mutant in again]
    assert all(mutant.tests for mutant in first)
    for mutant in first:
        ast.parse(mutant.after)
