"""The order, record lines, result lines and join ports."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.protocol import (
    PORT_FIRST,
    PORT_SPAN,
    PORT_TRIES,
    join_ports,
    mac,
    parse_line,
    parse_record_name,
    parse_result,
    read_order,
    read_piece,
    record_folders,
    record_name,
    rows_of,
    same_mac,
    whole_number,
)
from tests.unit.pilot.made import ORDER

DEEP = b"[" * 50_000


def written(folder: Path, **changes: object) -> str:
    path = folder / "order.json"
    path.write_text(json.dumps({**json.loads(ORDER.text()), **changes}))
    return str(path)


def test_an_order_comes_back_as_it_was_written(tmp_path: Path) -> None:
    order = ORDER._replace(
        setup=["module load cuda"],
        env={"A": "ä"},
        secrets=["KEY"],
        time_limit_s=7200.0,
        goal={"metric": "mean_iou", "at_least": 0.65},
        code={"file": "code.tar", "sha256": "ab"},
    )
    path = tmp_path / "order.json"
    path.write_text(order.text())
    assert read_order(str(path)) == order
    assert order.world_size == 4


def test_an_order_of_another_version_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, version=2)
    with pytest.raises(ValueError, match=r"order\.json is no order of version 1$"):
        read_order(path)


def test_an_order_with_unknown_fields_names_them(tmp_path: Path) -> None:
    path = written(tmp_path, nods=2, banana=1)
    with pytest.raises(ValueError, match=r"has fields this pilot does not know: banana, nods$"):
        read_order(path)


def test_an_order_that_lacks_fields_names_them(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text('{"version": 1, "run": "a", "engine": "local"}')
    words = "lacks bind, checkpoint, command, folder, launcher, nodes, ranks_per_node, scratch, shared$"
    with pytest.raises(ValueError, match=words):
        read_order(str(path))


@pytest.mark.parametrize("text", ["[]", "null", '"order"', "{"])
def test_what_is_no_order_is_a_value_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"order|Expecting"):
        read_order(str(path))


RESULTS = [
    (b'{"podwright": {"step": 120, "loss": 0.41}}', {"step": 120, "loss": 0.41}),
    (b'  {"podwright": {"step": 1}}  ', {"step": 1}),
    (b'[rank 3] {"podwright": {"step": 1}}', {"step": 1}),
    (b'{"podwright": {"loss": NaN, "best": Infinity, "low": -Infinity, "step": 2}}', {"step": 2}),
    (b'{"podwright": {"huge": 1e999, "step": 2}}', {"step": 2}),
    (b'{"podwright": {"long": 1' + b"0" * 400 + b', "step": 2}}', {"step": 2}),
    (
        b'{"podwright": {"done": true, "name": "x", "list": [1], "more": {"a": 1}, "none": null, "step": 2}}',
        {"step": 2},
    ),
    (b'{"podwright": {"done": true}}', None),
    (b'{"podwright": {}}', None),
    (b'{"podwright": 3}', None),
    (b'{"podwright": [1]}', None),
    (b'{"podwright": {"step": 1}', None),
    (b'{"podwright" ' + DEEP, None),
    (b'{"podwright": ' + DEEP + b"]" * 50_000 + b"}", None),
    (b'{"other": {"step": 1}}', None),
    (b"step 12 loss 0.4", None),
    (b"", None),
    (b'\xff\xfe{"podwright": {"step": 1}}\xff', None),
    (b'\xff\xfe{"podwright": {"step": 1}}', {"step": 1}),
    (
        b':::MLLOG {"key": "eval_accuracy", "value": 0.75, "time_ms": 1700000000000}',
        {"mllog": "eval_accuracy", "eval_accuracy": 0.75, "time_ms": 1700000000000},
    ),
    (b'0: :::MLLOG {"key": "run_start", "value": null, "time_ms": 5}', {"mllog": "run_start", "time_ms": 5}),
    (b':::MLLOG {"key": "submission_org", "value": "us"}', {"mllog": "submission_org"}),
    (b':::MLLOG {"key": "ok", "value": true}', {"mllog": "ok"}),
    (b':::MLLOG {"key": 3, "value": 1}', None),
    (b':::MLLOG {"value": 1}', None),
    (b":::MLLOG ", None),
    (b":::MLLOG [1]", None),
    (b":::MLLOG " + DEEP, None),
]


@pytest.mark.parametrize(("line", "values"), RESULTS, ids=range(len(RESULTS)))
def test_a_result_line(line: bytes, values: dict[str, object] | None) -> None:
    assert parse_result(line) == values


STARTS = st.sampled_from([b"", b":::MLLOG ", b'{"podwright"', b'{"podwright": {', b':::MLLOG {"key": "a", "value": '])


@given(STARTS, st.binary(max_size=200))
def test_no_line_makes_the_reader_of_results_raise(start: bytes, rest: bytes) -> None:
    values = parse_result(start + rest)
    assert values is None or isinstance(values, dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=5))
def test_only_finite_numbers_are_results(values: dict[str, object]) -> None:
    told = parse_result(json.dumps({"podwright": values}).encode()) or {}
    assert all(name in values for name in told)
    assert all(math.isfinite(value) and not isinstance(value, bool) for value in told.values())
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_lines_are_read_from_an_offset_and_a_torn_one_waits(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a"')
    assert read_piece(str(path)) == (b'{"a":1}\n{"a":2}\n', 16)
    assert read_piece(str(path), 16) == (b"", 16)
    with path.open("ab") as file:
        file.write(b":3}\n")
    assert read_piece(str(path), 16) == (b'{"a":3}\n', 24)


def test_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'\n[1]\n\xff\xff\n\0\0\0{"a":1}\nnull\n{"a":1}\n' + DEEP + b"\n")
    assert list(rows_of(str(path))) == [{"a": 1}]


def test_a_file_that_is_not_there_has_no_lines_yet(tmp_path: Path) -> None:
    assert read_piece(str(tmp_path / "none"), 7) == (b"", 7)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3), max_size=5))
def test_json_lines_come_back(rows: list[dict[str, object]]) -> None:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert [parse_line(line) for line in data.splitlines()] == rows


def test_join_ports_depend_on_the_run_alone_and_lie_in_their_span() -> None:
    ports = join_ports("segmentation-7f3k")
    assert ports == join_ports("segmentation-7f3k")
    assert ports != join_ports("segmentation-7f3j")
    assert len(ports) == PORT_TRIES
    assert all(PORT_FIRST <= port < PORT_FIRST + PORT_SPAN for port in ports)
    assert PORT_FIRST + PORT_SPAN <= 32768, "above it the kernel hands out ports for outgoing connections"


def test_parts_of_a_mac_cannot_be_shifted_into_each_other() -> None:
    assert not same_mac(mac(b"k", "ab", "c"), mac(b"k", "a", "bc"))
    assert not same_mac(mac(b"k", "a"), mac(b"l", "a"))
    assert same_mac(mac(b"k", "a", 1), mac(b"k", "a", 1))


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1\n", "1_0", "1.0", "0x1", "²", "\u0661", "1" * 21])
def test_text_that_is_not_digits_alone_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None


@given(st.integers(0, 2**64))
def test_a_whole_number_is_what_its_digits_say(number: int) -> None:
    assert whole_number(str(number)) == number


@pytest.mark.parametrize(
    "name", ["n1", "n.r1", "n1.r", "x1.r1", "n1.r1.r1", "n-1.r1", "../n1.r1", "n1.r1/..", "n².r1", ""]
)
def test_what_is_no_record_folder(name: str) -> None:
    assert parse_record_name(name) is None


def test_record_folders_come_by_node_then_restart(tmp_path: Path) -> None:
    for name in ("n10.r0", "n2.r1", "n2.r0", ".n3.r0", "other"):
        (tmp_path / name).mkdir()
    found = [(node, restart) for node, restart, _ in record_folders(str(tmp_path))]
    assert found == [(2, 0), (2, 1), (10, 0)]
    assert parse_record_name(record_name(12, 3)) == (12, 3)
    assert list(record_folders(str(tmp_path / "none"))) == []
