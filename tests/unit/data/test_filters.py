"""The language of filters: what it means, and what is said about what it does not mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.data.catalog.schema import vocabulary_of
from podwright.data.query.conditions import Condition, condition_of
from podwright.data.tree.layouts import A2D2
from podwright.spec.filters import OPERATORS, Combined, Comparison, Filter, Negated, parse_filter
from podwright.spec.problems import Refusal

CLASSES = ["Car", "Pedestrian", "RD normal street"]
COUNTED = vocabulary_of("a2d2", A2D2, CLASSES, (), ["weather"])
UNCOUNTED = vocabulary_of("a2d2", A2D2, (), CLASSES, ())


def sql(text: str) -> Condition:
    return condition_of(parse_filter(text), COUNTED)


def refused(text: str, vocabulary: object = COUNTED) -> list[str]:
    with pytest.raises(Refusal) as caught:
        condition_of(parse_filter(text), vocabulary)  # type: ignore[arg-type]
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("camera=front_center", Condition('f."camera" = ?', ("front_center",))),
        ("size>=1MB", Condition("f.size >= ?", (1_000_000,))),
        ("size>=2048", Condition("f.size >= ?", (2048,))),
        ("frame<12", Condition('f."frame" < ?', (12,))),
        ("mode=0644", Condition("f.mode = ?", (0o644,))),
        ("mtime>=2026-03-02", Condition("f.mtime_ns >= ?", (1772409600 * 10**9,))),
        ("path~cam_front", Condition("contains((d.path || f.name), ?)", ("cam_front",))),
        ('"RD normal street">0', Condition("l.c2 > ?", (0,))),
        ("class=Car", Condition("l.c0 > ?", (0,))),
        ('class!="RD normal street"', Condition("(l.c2 > ?) IS NOT TRUE", (0,))),
        ("not Car>0", Condition("(l.c0 > ?) IS NOT TRUE", (0,))),
        (
            "not (ext~p and not frame=1)",
            Condition('((contains(f.ext, ?)) IS NOT TRUE) OR (f."frame" = ?)', ("p", 1)),
        ),
        ("camera!=side", Condition('(f."camera" = ?) IS NOT TRUE', ("side",))),
        ("not camera!=side", Condition('f."camera" = ?', ("side",))),
        ("folder=a/b", Condition("d.path = ?", ("a/b/",))),
        ("folder=a/b/", Condition("d.path = ?", ("a/b/",))),
        ("folder=.", Condition("d.path = ?", ("",))),
        ("folder~a/b", Condition("contains(d.path, ?)", ("a/b",))),
        (r'name="a\n\x1b\u200e\ud800\\n\q"', Condition("f.name = ?", ("a\n\x1b\u200e\ufffd\\nq",))),
        ("Car>0 and Car<9 or frame=1", Condition('((l.c0 > ?) AND (l.c0 < ?)) OR (f."frame" = ?)', (0, 9, 1))),
        ("Car>0 AND (Car<9 OR frame=1)", Condition('(l.c0 > ?) AND ((l.c0 < ?) OR (f."frame" = ?))', (0, 9, 1))),
    ],
)
def test_a_filter_becomes_a_condition(text: str, condition: Condition) -> None:
    assert sql(text) == condition


@pytest.mark.parametrize(
    ("text", "first", "hint"),
    [
        ("", "filter:1:1: is empty", "hint: write it like `camera=front_center and size>=1MB`"),
        ("camra=a", "filter:1:1: camra: unknown column", "hint: did you mean `camera`?"),
        ("frame=1 and car>0", "filter:1:13: car: unknown column", "hint: did you mean `Car`?"),
        ("class=Cars", "filter:1:7: Cars: unknown class", "hint: did you mean `Car`?"),
        ("size>=1M", 'filter:1:7: size: "1M" has no unit of a size', "hint: write `1MB` (powers of 1000) or `1MiB`"),
        ("frame=x", 'filter:1:7: frame: "x" is not a whole number', "hint: write it like `frame>=100`"),
        (f"frame={10**30}", 'filter:1:7: frame: "1000', "hint: write it like `frame>=100`"),
        ("mtime>then", 'filter:1:7: mtime: "then" is not a time', "hint: write it like `mtime>=2026-03-02`"),
        ("size~1", "filter:1:1: size: has no parts that `~` could look for", "hint: size is compared with ="),
        ("(Car>0", "filter:1:1: this bracket is never closed", "hint: close it with )"),
        ("Car>0)", "filter:1:6: this bracket was never opened", ""),
        ('name="a', "filter:1:6: this quote is never closed", 'hint: close it with another "'),
        ("name!a", 'filter:1:5: "!" is no operator', "hint: operators are ="),
        ("name", "filter:1:5: name: an operator is missing behind it", "hint: name is compared with one of ="),
        ("name=", "filter:1:6: a value is missing here", "hint: write it like"),
        ("Car>0 and", "filter:1:10: a column's name is missing here", "hint: write it like"),
        ("Car>0 Car<9", "filter:1:7: Car: is one word too many", "hint: join comparisons with `and` or `or`"),
        ("class<Car", "filter:1:1: class: cannot be compared with `<`", "hint: a class is there or not"),
        ("weather>wet", 'filter:1:9: weather: "wet" is not a number', "hint: texts are compared with =, != and ~"),
        ("(" * 200 + "a=b", "filter:1:101: has more than 100 brackets in each other", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, first: str, hint: str) -> None:
    lines = refused(text)
    assert lines[0].startswith(first)
    assert any(line.startswith(hint) for line in lines)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    lines = refused("camra=a or sice>1MB")
    assert lines[:2] == ["filter:1:1: camra: unknown column", "filter:1:12: sice: unknown column"]


@pytest.mark.parametrize("text", ["Car>0", "class=Car", '"RD normal street">0'])
def test_a_class_that_is_not_counted_yet_is_refused_with_the_command_that_counts(text: str) -> None:
    lines = refused(text, UNCOUNTED)
    assert lines[0].endswith("is a class, and its pixels are not counted yet")
    assert lines[-1] == "hint: podwright data stats a2d2"


def written(tree: Filter) -> str:
    if isinstance(tree, Negated):
        return f"not ({written(tree.part)})"
    if isinstance(tree, Combined):
        return f" {tree.word} ".join(f"({written(part)})" for part in tree.parts)
    return f"{in_quotes(tree.name)}{tree.operator}{in_quotes(tree.value)}"


def in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def shape(tree: Filter) -> object:
    if isinstance(tree, Negated):
        return ("not", shape(tree.part))
    if isinstance(tree, Combined):
        return (tree.word, *map(shape, tree.parts))
    return (tree.name, tree.operator, tree.value)


leaves = st.builds(Comparison, st.text(), st.sampled_from(OPERATORS), st.text(), st.just(1), st.just(1))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Negated, inner),
        st.builds(Combined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(trees)
def test_what_is_written_is_read_back(tree: Filter) -> None:
    assert shape(parse_filter(written(tree))) == shape(tree)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    answer: object = None
    try:
        answer = condition_of(parse_filter(text), COUNTED)
    except Refusal as refusal:
        answer = refusal.problems
    assert answer
