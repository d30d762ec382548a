"""Events, typed: every kind is understood, and no row makes a reader raise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.cli.terminal.progress import Progress
from podwright.launch.run import explain
from podwright.runs import Fold, Home
from podwright.runs.event_reader import OF_OTHERS, OF_PILOTS, parse_event, parse_sample, slots_of
from podwright.runs.events import AttemptStarted, EngineEnded, Event, RankFailed, ResultTold, RunEnded
from tests.paths import ROOT
from tests.unit.runs.made import START, asked, end, event, go, parsed, result, write_lines
from tests.unit.runs.odd import GOOD, JUNK, odd_rows

KINDS: tuple[type[Event], ...] = (*OF_PILOTS.values(), *OF_OTHERS.values())


@pytest.mark.parametrize("row", GOOD, ids=[row["k"] for row in GOOD])
def test_every_field_of_a_row_is_taken(row: dict[str, Any]) -> None:
    parsed_event = parse_event(row)
    assert parsed_event is not None
    assert parsed_event.kind == row["k"]
    keys = {slot.key for slot in slots_of(type(parsed_event))}
    assert set(row) - keys == {"k"}


def test_there_is_a_row_of_every_kind() -> None:
    assert {type(parse_event(row)) for row in GOOD} == set(KINDS)


def test_the_table_of_the_docs_and_the_classes_name_the_same_fields() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", text, re.MULTILINE)
    documented = {kind: fields for kind, fields in rows if kind in OF_PILOTS}
    assert set(documented) == set(OF_PILOTS)
    for kind, fields in documented.items():
        keys = {slot.key for slot in slots_of(OF_PILOTS[kind])} - {"t", "e", "n", "q"}
        assert keys == {key for key in keys if re.search(rf"\b{key}\b", fields)}, kind


def test_an_end_is_the_pilots_when_it_names_a_node_else_the_engines() -> None:
    assert isinstance(parse_event(end()), RunEnded)
    assert isinstance(parse_event({"t": 1, "k": "end", "state": "failed", "reason": "", "code": None}), EngineEnded)


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "go",
        {},
        {"k": ["go"]},
        event("unheard-of"),
        event("go"),
        event("go", hosts=["a", 1]),
        {**go(), "t": float("nan")},
        {**go(), "t": 10**400},
        {**go(), "t": True},
        {**go(), "e": [0]},
        {**go(), "e": None},
        {**go(), "n": -1},
        {**go(), "n": 2**40},
        {**end(), "state": "on fire"},
        event("result", rank=0),
        {"t": 1, "k": "requeued", "why": "x"},
        {"t": 1, "k": "submitted", "handle": 7},
    ],
)
def test_what_an_event_means_nothing_without_makes_it_not_understood(row: object) -> None:
    assert parse_event(row) is None


def test_a_field_of_another_type_counts_as_not_told() -> None:
    [failed] = parsed(event("failed", rank="3", host=["a"], after_s=float("inf"), tail=["a", None], stopped={}))
    assert failed == RankFailed(time=START, epoch=(0, 0), node=0)
    [told] = parsed(result(1.0, loss=0.5, name="x", nan=float("nan"), steps=3, mllog="eval"))
    assert isinstance(told, ResultTold)
    assert (told.values, told.mllog) == ({"loss": 0.5, "steps": 3}, "eval")


def test_an_event_cannot_be_changed() -> None:
    [event] = parsed(go())
    with pytest.raises(AttributeError):
        event.time = 0.0  # type: ignore[misc]
    assert isinstance(event, AttemptStarted)
    assert (event.time, event.hosts) == (START + 1.0, ("a", "b"))


@given(JUNK | odd_rows())
def test_no_row_makes_a_parser_raise(row: object) -> None:
    for parse in (parse_event, parse_sample):
        assert parse(row) == parse(row)


SAMPLE = {"t": 1.5, "n": 0, "e": [0, 0], "v": {"cpu_percent": 12.5}}


@given(st.dictionaries(st.sampled_from(sorted(SAMPLE)), JUNK))
def test_a_sample_has_numbers_only(changes: dict[str, Any]) -> None:
    sample = parse_sample({**SAMPLE, **changes})
    assert sample is None or all(isinstance(value, int | float) for value in sample.values.values())


@given(st.lists(odd_rows(), max_size=8))
def test_whatever_is_understood_can_be_shown(rows: list[dict[str, Any]]) -> None:
    events = parsed(*rows)
    fold = Fold(asked(), "/x")
    fold.take(events)
    record = fold.record(START + 200)
    shown = [record.reason, *explain(record, events)]
    shown += [text for _, text in Progress(record).take(record, events, [])]
    assert [text.encode().decode() for text in shown] == shown


@given(st.lists(st.sampled_from(GOOD), max_size=8), st.data())
def test_what_cannot_be_understood_changes_no_record(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    junk = (JUNK | odd_rows()).filter(lambda row: parse_event(row) is None)
    mixed: list[object] = []
    for row in rows:
        mixed += [*data.draw(st.lists(junk, max_size=2)), row]
    records = []
    for written in (rows, mixed):
        fold = Fold(asked(), "/x")
        fold.take(parsed(*written))
        records.append(fold.record(START + 200))
    assert records[0] == records[1]


def test_a_reader_counts_what_it_leaves_out(home: Home, tmp_path: Path) -> None:
    home.create(asked(), {}, {})
    path = home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl"
    write_lines(path, go(), {**go(), "t": None}, event("unheard-of"))
    with path.open("a") as file:
        file.write('[1]\n{"t": 17\n')
    assert home.read("toy-2222").state == "starting"
    assert home.left_out("toy-2222") == 2
    write_lines(path, event("ready", 2.0), {})
    assert home.read("toy-2222").state == "running"
    assert home.left_out("toy-2222") == 3
