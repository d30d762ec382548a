"""What `not` means and what a missing value is, whatever tests are compiled to: here they are asked of a dict."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.spec.filter_fields import Field, FieldTest, FieldTests, Joint, Vocabulary, resolve_filter
from podwright.spec.filters import Combined, Comparison, Filter, Negated, parse_filter

FIELDS = {
    "name": Field("name", "text", "name"),
    "frame": Field("frame", "whole", "frame"),
    "weather": Field("weather", "tag", "weather"),
}
WORDS = Vocabulary("runs", FIELDS)
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Row = Mapping[str, str | int]


def fits(tests: FieldTests, row: Row) -> bool:
    """Say whether a row fits, by the two rules alone: what is missing fits no test, and `not` is the rest."""
    if isinstance(tests, Joint):
        answers = [fits(part, row) for part in tests.parts]
        return all(answers) if tests.word == "and" else any(answers)
    value = row.get(tests.field.name)
    return (value is not None and holds(tests, value)) != tests.negated


def holds(test: FieldTest, value: str | int) -> bool:
    if test.operator == "~":
        return str(test.value) in str(value)
    if isinstance(test.value, float):
        return value.replace(".", "").isdigit() and COMPARE[test.operator](float(value), test.value)  # type: ignore[union-attr]
    return bool(COMPARE[test.operator](value, test.value))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("not frame=1", "frame!=1"),
        ("not not frame<2", "frame<2"),
        ("not (frame=2 and name=a)", "frame!=2 or name!=a"),
        ("not (frame=2 or not name=a)", "frame!=2 and name=a"),
        ("not not frame!=2", "not frame=2"),
        ("not weather=rain", "weather!=rain"),
    ],
)
def test_not_is_moved_down_to_the_tests(text: str, same: str) -> None:
    assert resolve_filter(parse_filter(text), WORDS) == resolve_filter(parse_filter(same), WORDS)


def test_what_is_negated_is_marked() -> None:
    for text in ("name~a", "frame<2", "weather>4", "weather~rain"):
        plain = resolve_filter(parse_filter(text), WORDS)
        assert isinstance(plain, FieldTest)
        assert resolve_filter(parse_filter(f"not {text}"), WORDS) == plain.opposite()
        assert (plain.negated, plain.opposite().negated) == (False, True)
        assert plain.opposite().opposite() == plain


def comparisons(name: str, operators: list[str], values: str) -> st.SearchStrategy[Comparison]:
    at = st.just(1)
    return st.builds(Comparison, st.just(name), st.sampled_from(operators), st.sampled_from(values), at, at)


trees = st.recursive(
    st.one_of(
        comparisons("name", [*COMPARE, "~"], "ab"),
        comparisons("frame", [*COMPARE], "012"),
        comparisons("weather", [*COMPARE, "~"], "45"),
    ),
    lambda inner: st.one_of(
        st.builds(Negated, inner),
        st.builds(Combined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from("abc"), "frame": st.integers(0, 2), "weather": st.sampled_from(["4", "rain"])}
)


@given(trees, rows)
def test_a_row_fits_a_filter_or_its_opposite(tree: Filter, row: Row) -> None:
    both = [fits(resolve_filter(tree, WORDS), row), fits(resolve_filter(Negated(tree), WORDS), row)]
    assert both in ([True, False], [False, True])
