"""Every attack that the page on security names has the test that it names."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT

NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "security.md").read_text(encoding="utf-8"))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 30
    assert len(set(NAMED)) == len(NAMED)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", text, re.M), f"{file} has no {name}"
