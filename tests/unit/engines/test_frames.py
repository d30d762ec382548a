"""A record is put together again from whatever of its frames came."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest

from podwright.engines.frames import assemble
from podwright.pilot.protocol import FRAME_LIMIT_BYTES, Frame, decode_frame, encode_frame, frame_crc

PIECES = [b"one\n", b"two\n", b"three\n", b"four\n"]


def frame(seq: int, offset: int, data: bytes, file: str = "n0.r0/merged.log") -> str:
    line = encode_frame(Frame(0, (0, 0), seq, file, offset, data))
    assert line is not None
    return line


def lines() -> list[str]:
    offsets = [sum(map(len, PIECES[:i])) for i in range(len(PIECES))]
    return [frame(i, offsets[i], piece) for i, piece in enumerate(PIECES)]


def put(folder: Path, *rows: str) -> Path:
    path = folder / "n0.r0.log"
    path.write_bytes("".join(row + "\n" for row in rows).encode())
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pieces_come_together(tmp_path: Path) -> None:
    log = put(tmp_path, "chatter of the image", *lines(), "\x1epw1 more chatter")
    assert assemble([log], tmp_path / "record") == []
    assert tree(tmp_path / "record") == {"n0.r0/merged.log": b"".join(PIECES)}


def test_a_series_comes_too(tmp_path: Path) -> None:
    log = put(tmp_path, frame(0, 0, b"{}\n", "n0.r0/rank12.series.jsonl"))
    assert assemble([log], tmp_path / "record") == []
    assert tree(tmp_path / "record") == {"n0.r0/rank12.series.jsonl": b"{}\n"}


def test_twice_gives_the_same(tmp_path: Path) -> None:
    log = put(tmp_path, *lines())
    assemble([log], tmp_path / "record")
    before = tree(tmp_path / "record")
    assert assemble([log], tmp_path / "record") == []
    assert tree(tmp_path / "record") == before


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (0, 0, 1, 1, 2, 3, 3), (2, 0, 3, 1, 2)])
def test_doubles_and_disorder_do_no_harm(tmp_path: Path, order: tuple[int, ...]) -> None:
    log = put(tmp_path, *[lines()[i] for i in order])
    assert assemble([log], tmp_path / "record") == []
    assert tree(tmp_path / "record") == {"n0.r0/merged.log": b"".join(PIECES)}


def test_a_gap_is_told_in_words_and_filled_when_the_piece_comes(tmp_path: Path) -> None:
    first, second, third, fourth = lines()
    log = put(tmp_path, first, second[:-9] + second[-8:], fourth)
    assert assemble([log], tmp_path / "record") == ["n0.r0: 2 of 4 pieces of the record are missing"]
    assert (tmp_path / "record/n0.r0/merged.log").read_bytes() == b"one\n" + b"\0" * 10 + b"four\n"
    put(tmp_path, first, second, third, fourth)
    assert assemble([log], tmp_path / "record") == []
    assert (tmp_path / "record/n0.r0/merged.log").read_bytes() == b"".join(PIECES)


def test_a_frame_that_is_still_being_written_waits(tmp_path: Path) -> None:
    first, second, *_ = lines()
    log = put(tmp_path, first)
    with log.open("a") as file:
        file.write(second[:40])
    assert assemble([log], tmp_path / "record") == []
    assert tree(tmp_path / "record") == {"n0.r0/merged.log": b"one\n"}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "n0.r0/../evil",
        "n0.r0/../../evil",
        "n0.r0/sub/events.jsonl",
        "n0.r0/rank0.log",
        "n0.r0/rank².series.jsonl",
        "n0.r0/rank0.series.jsonl/x",
        "n0.r0/series.parquet",
        "n0.r0/closed",
        "n0.r0/",
        "n0.r0",
        "..r0/events.jsonl",
        "record/events.jsonl",
        "n0.r0\\events.jsonl",
        "",
    ],
)
def test_a_name_that_leaves_its_place_is_not_written(tmp_path: Path, name: str) -> None:
    log = put(tmp_path, frame(0, 0, b"evil", name), frame(1, 0, b"good\n"))
    assert assemble([log], tmp_path / "record") == ["n0.r0: 1 of 2 pieces of the record are missing"]
    assert tree(tmp_path) == {"n0.r0.log": log.read_bytes(), "record/n0.r0/merged.log": b"good\n"}


def test_no_frames_make_no_record(tmp_path: Path) -> None:
    assert assemble([put(tmp_path, "only chatter", "\x1e")], tmp_path / "record") == []
    assert assemble([], tmp_path / "record") == []
    assert not (tmp_path / "record").exists()


def forged(place: str, head: object, data: bytes) -> str:
    payload = base64.b64encode(zlib.compress(json.dumps(head).encode() + b"\n" + data, 9)).decode()
    return f"\x1epw1 {place} {frame_crc(place, payload):08x} {payload}"


@pytest.mark.parametrize(
    "line",
    [
        forged("0 0.0 0", {"f": "n².r0/events.jsonl", "o": 0}, b"x"),
        forged("0 0.0 0", {"f": "n1.r0/events.jsonl", "o": 0}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/report.html", "o": 0}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/../../run.json", "o": 0}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/events.jsonl", "o": 1 << 39}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/events.jsonl", "o": -1}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/events.jsonl", "o": "²"}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/events.jsonl"}, b"x"),
        forged("0 0.0 0", [], b"x"),
        forged("² 0.0 0", {"f": "n0.r0/events.jsonl", "o": 0}, b"x"),
        forged("0 0 0", {"f": "n0.r0/events.jsonl", "o": 0}, b"x"),
        forged("0 0.0 0", {"f": "n0.r0/events.jsonl", "o": 0}, bytes(4 << 20)),
    ],
)
def test_a_forged_frame_writes_nothing(tmp_path: Path, line: str) -> None:
    assert assemble([put(tmp_path, line)], tmp_path / "record") == []
    assert tree(tmp_path / "record") == {}


def test_a_small_frame_that_inflates_to_much_is_refused_before_it_does() -> None:
    line = forged("0 0.0 0", {"f": "n0.r0/merged.log", "o": 0}, bytes(4 << 20))
    assert len(line) < FRAME_LIMIT_BYTES
    assert decode_frame(line) is None


def test_what_lies_in_the_way_of_a_piece_makes_it_missing(tmp_path: Path) -> None:
    (tmp_path / "record" / "n0.r0" / "merged.log").mkdir(parents=True)
    rows = [*lines(), frame(4, 0, b"{}\n", "n0.r0/events.jsonl")]
    assert assemble([put(tmp_path, *rows)], tmp_path / "record") == ["n0.r0: 4 of 5 pieces of the record are missing"]
    assert tree(tmp_path / "record") == {"n0.r0/events.jsonl": b"{}\n"}


def test_a_log_of_frames_that_is_a_folder_has_none(tmp_path: Path) -> None:
    assert assemble([tmp_path], tmp_path / "record") == []
