"""Logs: bounded, merged, and without secrets."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.masking import Masker
from podwright.pilot.ranks.logs import LINE_BYTES, TAIL_LINES, BoundedFile, NodeLog, RankLog


def log_in(folder: Path, limit_bytes: int = 1 << 20, secrets: tuple[str, ...] = ()) -> NodeLog:
    clock = itertools.count(1700000000)
    return NodeLog(str(folder), limit_bytes, Masker(secrets), lambda: float(next(clock)))


def fed(folder: Path, pieces: list[bytes], secrets: tuple[str, ...] = ()) -> RankLog:
    node = log_in(folder, secrets=secrets)
    rank = node.rank("3")
    for piece in pieces:
        rank.feed("o", piece)
    rank.end()
    rank.close()
    node.close()
    return rank


def test_a_hundred_times_the_limit_keeps_the_newest_within_it(tmp_path: Path) -> None:
    limit = 64 * 1024
    node = log_in(tmp_path, limit)
    rank = node.rank("0")
    line = b"x" * 99 + b"\n"
    for i in range(100 * limit // 1000):
        rank.feed("o", line * 9 + b"%099d\n" % i)
    rank.close()
    node.close()
    for name in ("rank0.log", "merged.log"):
        kept = [tmp_path / f"{name}.1", tmp_path / name]
        sizes = [path.stat().st_size for path in kept]
        assert limit / 2 < sum(sizes) <= limit
        assert kept[1].read_bytes().endswith(b"%099d\n" % i) or not sizes[1]


def test_a_file_goes_on_where_an_older_process_left_it(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"a" * 400)
    file = BoundedFile(str(path), 1000)
    file.write(b"b" * 200)
    file.close()
    assert path.read_bytes() == b"b" * 200
    assert (tmp_path / "rank0.log.1").read_bytes() == b"a" * 400


def test_a_full_disk_loses_lines_and_nothing_else() -> None:
    file = BoundedFile("/dev/full", 1000)
    file.write(b"x" * 400)
    file.write(b"x" * 400)
    file.close()
    assert file.lost_bytes == 800


@pytest.mark.parametrize("broken", ["replace", "open"])
def test_a_turn_that_fails_leaves_no_foreign_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    file = BoundedFile(str(tmp_path / "log"), 100)
    file.write(b"a" * 50)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, refuse)
        file.write(b"b" * 50)
    with (tmp_path / "other").open("wb") as other:
        file.write(b"c" * 50)
        other.write(b"mine")
    assert (tmp_path / "other").read_bytes() == b"mine"
    assert (tmp_path / "log").read_bytes() == b"c" * 50
    assert (tmp_path / "log.1").read_bytes() == b"a" * 50
    file.close()


def test_lines_come_whole_however_they_are_cut(tmp_path: Path) -> None:
    node = log_in(tmp_path)
    rank = node.rank("3")
    assert rank.feed("o", b"one\ntw") == [b"one"]
    assert rank.feed("e", b"warn") == []
    assert rank.feed("o", b"o\n") == [b"two"]
    assert rank.feed("o", b"half") == []
    assert rank.end() == [b"half", b"warn"]
    rank.close()
    node.close()
    assert (tmp_path / "rank3.log").read_bytes() == b"one\ntwo\nhalf\nwarn\n"
    assert (tmp_path / "merged.log").read_bytes() == (
        b"1700000000.000 3 o one\n1700000001.000 3 o two\n1700000002.000 3 o half\n1700000003.000 3 e warn\n"
    )


def test_ranks_and_the_launcher_are_merged_in_the_order_they_speak(tmp_path: Path) -> None:
    node = log_in(tmp_path)
    logs = [node.rank("0"), node.rank("1"), node.rank("-")]
    for text in (b"a\nb\n", b"c\n"):
        for log in logs:
            log.feed("o", text)
    for log in logs:
        log.close()
    node.close()
    words = [line.split(" ")[1:] for line in (tmp_path / "merged.log").read_text().splitlines()]
    assert [word[0] for word in words] == ["0", "0", "1", "1", "-", "-", "0", "1", "-"]
    assert (tmp_path / "launcher.log").read_bytes() == b"a\nb\nc\n"


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    rank = fed(tmp_path, [b"\xff\xfe\x00", b"caf\xc3", b"\xa9\n"])
    assert (tmp_path / "rank3.log").read_bytes() == b"\xff\xfe\x00caf\xc3\xa9\n"
    assert list(rank.tail) == [b"\xff\xfe\x00caf\xc3\xa9"]


def test_a_line_without_end_is_cut_and_never_fills_the_memory(tmp_path: Path) -> None:
    node = log_in(tmp_path, 1 << 20, ("0123456789",))
    rank = node.rank("0")
    for _ in range(100):
        rank.feed("o", b"y" * 60_000)
        assert len(rank._rest["o"]) <= LINE_BYTES + 60_000
    rank.end()
    rank.close()
    node.close()
    kept = b"".join((tmp_path / name).read_bytes() for name in ("rank0.log.1", "rank0.log"))
    assert kept.strip(b"y") == b"\n"
    assert len(kept) <= 1 << 20


def test_the_tail_has_the_last_lines(tmp_path: Path) -> None:
    rank = fed(tmp_path, [b"%d\n" % i for i in range(100)])
    assert list(rank.tail) == [b"%d" % i for i in range(100 - TAIL_LINES, 100)]


SECRET = "s3cr3t-of-the-user"


@given(st.lists(st.integers(1, 40), max_size=12))
def test_a_secret_is_masked_however_its_line_is_cut(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    text, pieces = f"start {SECRET}{SECRET} and\nKEY={SECRET}\n".encode(), []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    folder = tmp_path_factory.mktemp("log")
    rank = fed(folder, [*pieces, text], (SECRET,))
    assert (folder / "rank3.log").read_bytes() == b"start ****** and\nKEY=***\n"
    assert SECRET.encode() not in (folder / "merged.log").read_bytes()
    assert list(rank.tail) == [b"start ****** and", b"KEY=***"]


@pytest.mark.parametrize("before", range(LINE_BYTES - 25, LINE_BYTES + 25, 7))
def test_a_secret_is_masked_where_an_endless_line_is_cut(tmp_path: Path, before: int) -> None:
    text = b"y" * before + SECRET.encode() + b"y" * 1000
    fed(tmp_path, [text[i : i + 997] for i in range(0, len(text), 997)], (SECRET,))
    assert (tmp_path / "rank3.log").read_bytes() == b"y" * before + b"***" + b"y" * 1000 + b"\n"


def test_a_secret_of_several_lines_is_masked_line_by_line(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----"
    fed(tmp_path, [line.encode() + b"\n" for line in key.splitlines()], (key,))
    fed(tmp_path, [b"KEY=" + key.encode() + b"\n"], (key,))
    assert (tmp_path / "rank3.log").read_bytes() == b"***\n***\n***\n***\nKEY=***\n"


def test_the_longer_secret_is_masked_first_and_very_short_ones_not_at_all() -> None:
    mask = Masker(["abcd", "abcdefgh", "x", ""])
    assert mask(b"abcdefgh abcd x") == b"*** *** x"
    assert Masker([])(b"text") == b"text"


def test_a_line_that_is_written_over_is_kept_as_its_last_state(tmp_path: Path) -> None:
    node = log_in(tmp_path)
    rank = node.rank("0")
    assert rank.feed("e", b"\r  0%| 0/9") == []
    # What is shown is a state that is at its end; values are read in the one that has begun.
    assert rank.feed("e", b"\r 33%| 3/9") == [b" 33%| 3/9"]
    assert rank.feed("e", b"\r 66%| 6/9\r100%| 9/9") == [b"100%| 9/9"]
    assert rank.feed("e", b"\ndone\r\n") == [b"100%| 9/9", b"done"]
    rank.close()
    node.close()
    assert (tmp_path / "rank0.log").read_bytes() == b"100%| 9/9\ndone\n"
    kept = [line.split(b" ", 1)[1] for line in (tmp_path / "merged.log").read_bytes().splitlines()]
    assert kept == [b"0 p   0%| 0/9", b"0 p  66%| 6/9", b"0 e 100%| 9/9", b"0 e done"]


def test_states_come_once_a_second(tmp_path: Path) -> None:
    clock = [0.0]
    node = NodeLog(str(tmp_path), 1 << 20, Masker(()), lambda: clock[0])
    rank = node.rank("0")
    shown = []
    for clock[0] in (1.0, 1.1, 1.2, 1.3, 2.2):
        shown.append(bool(rank.feed("o", b"\r at %.1f" % clock[0])))
    assert shown == [False, True, False, False, True]
    rank.close()
    node.close()


@pytest.mark.parametrize("secret", ["hunter2hunter2", "two\rlines\rof a key"])
@given(cuts=st.lists(st.integers(0, 120), max_size=8))
def test_no_part_of_a_secret_is_in_a_state(
    tmp_path_factory: pytest.TempPathFactory, secret: str, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    data = f"\r 10%\r 20% {secret} \r 30% {secret}\r 40%\r 50%\n".encode()
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    fed(folder, [data[first:last] for first, last in itertools.pairwise(places)], (secret,))
    written = (folder / "merged.log").read_text() + (folder / "rank3.log").read_text()
    for part in secret.split("\r"):
        assert part not in written
