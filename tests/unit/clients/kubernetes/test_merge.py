"""A user's patch over what we render."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.clients.kubernetes.manifest import yaml_objects, yaml_text
from podwright.clients.kubernetes.merge import merged
from podwright.clients.kubernetes.quantities import number_of, size_text

CASES: list[tuple[Any, Any, Any]] = [
    ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"c": None}}, {"a": {"b": 1}}),
    ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
    ),
    (
        {"volumeMounts": [{"name": "job", "mountPath": "/a"}, {"name": "job", "mountPath": "/b"}]},
        {"volumeMounts": [{"name": "other", "mountPath": "/b"}]},
        {"volumeMounts": [{"name": "job", "mountPath": "/a"}, {"name": "other", "mountPath": "/b"}]},
    ),
    ({"tolerations": [{"key": "a"}]}, {"tolerations": None}, {}),
]


@pytest.mark.parametrize(("value", "patch", "result"), CASES)
def test_merged(value: Any, patch: Any, result: Any) -> None:
    assert merged(value, patch) == result


scalars = st.one_of(st.integers(), st.text(max_size=8), st.booleans())
inner = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.text(max_size=4), scalars, max_size=2))
trees = st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3)


@given(trees)
def test_laying_the_same_over_itself_changes_nothing(tree: dict[str, Any]) -> None:
    assert merged(tree, tree) == tree


@given(st.lists(trees, min_size=1, max_size=2))
def test_objects_come_back_from_their_text(objects: list[dict[str, Any]]) -> None:
    assert yaml_objects(yaml_text(objects)) == objects


@given(st.integers(min_value=0, max_value=1 << 60))
def test_sizes_are_exact(size: int) -> None:
    assert number_of(size_text(size)) == size


@pytest.mark.parametrize(("text", "number"), [("127500m", 127), ("1.5Gi", 3 << 29), ("8", 8), (8, 8), ("2k", 2000)])
def test_quantities(text: Any, number: int) -> None:
    assert number_of(text) == number
