"""Frames: pieces of a record on their way through a container's output."""

from __future__ import annotations

import base64
import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.protocol import FRAME_LIMIT_BYTES, SEPARATOR, Frame, decode_frame, encode_frame, frame_crc

COUNT = st.integers(0, 10**9)
FRAMES = st.builds(
    Frame, COUNT, st.tuples(COUNT, COUNT), COUNT, st.text(max_size=40), COUNT, st.binary(max_size=12_000)
)
ONE = Frame(1, (0, 2), 7, "n1.r0/events.jsonl", 120, b'{"k":"go"}\n')


def line_of(head: object, data: bytes = b"x", node: object = 0, epoch: str = "0.0", seq: object = 0) -> str:
    """A frame with a right checksum and any contents: what a program that means harm may print."""
    raw = head if isinstance(head, bytes) else json.dumps(head).encode()
    payload = base64.b64encode(zlib.compress(raw + b"\n" + data)).decode()
    crc = frame_crc(f"{node} {epoch} {seq}", payload)
    return f"{SEPARATOR}pw1 {node} {epoch} {seq} {crc:08x} {payload}"


@given(FRAMES)
def test_a_frame_comes_back_and_is_small_or_is_refused(frame: Frame) -> None:
    line = encode_frame(frame)
    if line is not None:
        assert len(line.encode()) + 1 <= 8 * 1024
        assert "\n" not in line
        assert decode_frame(line) == frame


def test_what_does_not_fit_is_refused() -> None:
    noise = random.Random(1).randbytes(FRAME_LIMIT_BYTES)
    assert encode_frame(ONE._replace(data=noise)) is None
    assert encode_frame(ONE._replace(data=b"a" * 1_000_000)) is not None


@given(st.data())
def test_a_damaged_frame_is_nothing(data: st.DataObject) -> None:
    line = encode_frame(ONE)
    assert line is not None
    at = data.draw(st.integers(0, len(line) - 1))
    damage = data.draw(st.sampled_from(["cut", "lost", "changed"]))
    other = data.draw(st.characters(exclude_categories=["Cs"]).filter(lambda c: c != line[at]))
    broken = {"cut": line[:at], "lost": line[:at] + line[at + 1 :], "changed": line[:at] + other + line[at + 1 :]}
    found = decode_frame(broken[damage])
    assert found is None or found == ONE


@given(st.text(max_size=200))
def test_chatter_is_nothing(text: str) -> None:
    assert decode_frame(text) is None
    assert decode_frame(f"{SEPARATOR}pw1 {text}") is None


def test_a_frame_is_found_behind_a_time_stamp() -> None:
    assert decode_frame(f"2026-11-16T04:00:00Z {encode_frame(ONE)}\n") == ONE


@pytest.mark.parametrize(
    "line",
    [
        line_of([1]),
        line_of(None),
        line_of({}),
        line_of({"f": "a"}),
        line_of({"f": "a", "o": None}),
        line_of({"f": "a", "o": "x"}),
        line_of({"f": "a", "o": -1}),
        line_of(b'{"f": "a", "o": Infinity}'),
        line_of(b'{"f": "a", "o": NaN}'),
        line_of({"f": "a", "o": 10**30}),
        line_of({"f": 5, "o": [0]}),
        line_of(b"[" * 50_000),
        line_of(b"\xff"),
        line_of({"f": "a", "o": 0}, node=-1),
        line_of({"f": "a", "o": 0}, seq=-1),
        line_of({"f": "a", "o": 0}, seq=10**30),
        line_of({"f": "a", "o": 0}, epoch="0"),
        line_of({"f": "a", "o": 0}, epoch="0.0.0"),
        line_of({"f": "a", "o": 0}, epoch="a.b"),
        line_of({"f": "a", "o": 0}, node="+1"),
        line_of({"f": "a", "o": 0}, seq="1_0"),
    ],
    ids=range(21),
)
def test_a_made_up_frame_is_nothing(line: str) -> None:
    assert decode_frame(line) is None


@pytest.mark.parametrize("place", ["2 0.2 7", "1 1.2 7", "1 0.3 7", "1 0.2 8"])
def test_a_damaged_digit_moves_no_piece_to_another_place(place: str) -> None:
    """Node, restart, retry and sequence are of the checksum too."""
    line = encode_frame(ONE)
    assert line is not None
    assert "pw1 1 0.2 7 " in line
    assert decode_frame(line.replace("pw1 1 0.2 7 ", f"pw1 {place} ")) is None
