"""Objects as text: what the dumper itself would write, though it is asked for scalars alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podwright.clients.kubernetes.manifest import WIDTH, _dumped, yaml_objects, yaml_text

words = st.text("abZ019 -_./:#{'\"\n\u00e9", max_size=12)
long = st.sampled_from(["word " * 40, " word\n" * 3, "a\n\n", "true", "1000", "", "- a", "a: b", "...\n", "a\n...\n"])
leaves = st.none() | st.booleans() | st.integers() | words | long
names = st.text("abZ019-_./ :#", min_size=1, max_size=6)
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
objects = st.dictionaries(names, trees, max_size=4)


@given(objects)
def test_the_text_is_the_dumpers_own(one: dict[str, Any]) -> None:
    assert yaml_text([one]) == "\n".join(_dumped(one, WIDTH)) + "\n"


@given(st.lists(objects, min_size=1, max_size=2))
def test_objects_come_back_from_their_text(some: list[dict[str, Any]]) -> None:
    assert yaml_objects(yaml_text(some)) == some


def test_a_name_too_long_for_one_line_comes_back_too() -> None:
    some = [{"k" * 200: {"a": [1, {"b": []}]}, "z": {"k" * 200: {}}}]
    assert yaml_objects(yaml_text(some)) == some
