"""Reading a run's folder while it grows."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from podwright.runs import Home, LogLine, LogTail, RunFolder
from podwright.runs.folder import parse_log_line
from tests.unit.runs.made import event as row
from tests.unit.runs.made import write_lines

Add = Callable[..., str]


def put(folder: RunFolder, name: str, text: str) -> None:
    path = folder.record_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def test_a_log_line_is_parsed() -> None:
    assert parse_log_line(1, b"1731700000.123 3 o step 12  loss\n") == LogLine(
        1731700000.123, 1, 3, "o", "step 12  loss"
    )
    assert parse_log_line(0, b"1.0 - e words\n") == LogLine(1.0, 0, None, "e", "words")
    assert parse_log_line(0, b"1.0 3 o \n") == LogLine(1.0, 0, 3, "o", "")


@given(st.binary(max_size=80))
def test_no_bytes_make_the_log_reader_raise(raw: bytes) -> None:
    line = parse_log_line(0, raw)
    assert line is None or isinstance(line.text, str)


def test_lines_of_all_nodes_come_in_order_of_time(home: Home, add: Add) -> None:
    folder = home.folder(add("toy-2222"))
    put(folder, "n0.r0/merged.log.1", "1.0 0 o a\n")
    put(folder, "n0.r0/merged.log", "3.0 0 o c\n4.5 0 e e\n")
    put(folder, "n1.r0/merged.log", "2.0 2 o b\n4.0 2 o d\nhalf")
    put(folder, "n0.r1/merged.log", "5.0 0 o f\n")
    assert [(line.text, line.node) for line in folder.log_lines()] == [
        ("a", 0),
        ("b", 1),
        ("c", 0),
        ("d", 1),
        ("e", 0),
        ("f", 0),
    ]


def test_a_tail_gives_each_line_once_even_when_the_log_is_turned_over(home: Home, add: Add) -> None:
    folder = home.folder(add("toy-2222"))
    tail = LogTail(folder)
    assert tail.read() == []
    put(folder, "n0.r0/merged.log", "1.0 0 o a\n2.0 0 o b")
    assert [line.text for line in tail.read()] == ["a"]
    put(folder, "n0.r0/merged.log", "b\n3.0 0 o c\n")
    log = folder.record_path / "n0.r0" / "merged.log"
    log.replace(log.with_name("merged.log.1"))
    put(folder, "n0.r0/merged.log", "4.0 0 o d\n")
    put(folder, "n1.r0/merged.log", "3.5 1 o x\n")
    assert [line.text for line in tail.read()] == ["bb", "c", "x", "d"]
    assert tail.read() == []


def test_events_of_all_writers_come_once(home: Home, add: Add) -> None:
    folder = home.folder(add("toy-2222"))
    tail = folder.event_tail()
    write_lines(folder.path / "client.jsonl", {"t": 1, "k": "created"})
    assert [event.kind for event in tail.read()] == ["created"]
    write_lines(folder.record_path / "n1.r0" / "events.jsonl", row("pilot", n=1))
    write_lines(folder.record_path / "n0.r0" / "events.jsonl", row("pilot", n=0))
    write_lines(folder.path / "client.jsonl", {"t": 2, "k": "submitted", "handle": "7"})
    assert [(event.kind, event.node) for event in tail.read()] == [("pilot", 0), ("pilot", 1), ("submitted", None)]
    assert tail.read() == []
    assert [event.kind for event in folder.events()] == ["pilot", "pilot", "created", "submitted"]
