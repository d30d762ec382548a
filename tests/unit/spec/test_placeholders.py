"""Placeholders in commands and environments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.spec.placeholders import Scalar, fill, names_in

VALUES: dict[str, Scalar] = {
    "data.frames": "/data/a2d2",
    "matrix.lr": 0.01,
    "matrix.fast": True,
    "checkpoint": "/run/checkpoints",
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--data {data.frames}/x", "--data /data/a2d2/x"),
        ("{matrix.lr} {matrix.fast}", "0.01 true"),
        ("{checkpoint}", "/run/checkpoints"),
        ("{data.other} {matrix.seed}", "{data.other} {matrix.seed}"),
        ('{"a": {b}} ${HOME} {} {{checkpoint}}', '{"a": {b}} ${HOME} {} {/run/checkpoints}'),
        ("{data.} {data} {checkpoint.x} {DATA.frames}", "{data.} {data} {checkpoint.x} {DATA.frames}"),
    ],
)
def test_fill(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


def test_what_was_filled_in_is_not_filled_again() -> None:
    assert fill("{data.a}", {"data.a": "{data.b}", "data.b": "x"}) == "{data.b}"


def test_names_in_their_order() -> None:
    assert names_in("{matrix.lr} {x} {checkpoint} {data.a-b}") == ["matrix.lr", "checkpoint", "data.a-b"]


@given(st.text())
def test_text_without_our_names_stays(text: str) -> None:
    assert fill(text, {}) == text
    if not names_in(text):
        assert fill(text, VALUES) == text
