"""Which patterns of `results:` are taken."""

from __future__ import annotations

import pytest

from podwright import spec
from podwright.spec.patterns import backtracks
from podwright.spec.problems import Refusal


@pytest.mark.parametrize(
    "pattern", [r"loss[ =:]+([0-9.eE+-]+)", r"x{1,5}(\d+)", r"(?:a|b)=(\d+)", r"(?=loss).*?=(\d+)"]
)
def test_taken(pattern: str) -> None:
    assert not backtracks(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+b", r"(?:a|a)*b(\d)", r".*.*.*x(.)", r"(?:ab)+(\d)", r"(a{1,99})*b", r"(?:(?:a)*)*(b)"]
)
def test_would_take_for_ever(pattern: str) -> None:
    assert backtracks(pattern)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("loss=[0-9]+", "must have one group, and has 0"),
        ("(a)(b)", "must have one group, and has 2"),
        ("(", "is no regular expression: "),
        ("(a+)+b", "may take for ever on some lines"),
    ],
)
def test_refused_with_its_words(pattern: str, message: str) -> None:
    from pathlib import Path

    from podwright.spec.loader import workload_of

    with pytest.raises(Refusal) as refused:
        workload_of({"name": "a", "command": "b", "results": {"loss": pattern}}, Path())
    [problem] = refused.value.problems
    assert problem.field == "results.loss"
    assert problem.message.startswith(message)
    assert problem.hint
    assert spec.schema("workload")["properties"]["results"]
