"""A record is put together again from whatever of its frames came."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.engines.frames import assemble
from podwright.pilot.protocol import Frame, encode_frame

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
