"""The mirror: what the pilots wrote on the cluster comes here byte for byte, and nothing else does."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.mirror import STATE, TOO_LARGE, Mirror, Piece, Trees, read_piece
from podwright.pilot.carry import mirror as far
from podwright.pilot.protocol import GROWING_BYTES, SERIES_BYTES, field_lines
from podwright.runs import RunFolder
from podwright.runs.copies import LeftOut
from tests.fixtures.hostile import NO_PLAIN_FILES
from tests.unit.runs.made import asked

EVENTS = "record/n0.r0/events.jsonl"
LOG = "record/n0.r0/merged.log"
SERIES = "record/n0.r0/rank3.series.jsonl"


class Sides:
    """A run on the cluster and its folder here."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "far"
        self.there = self.root / "toy-2222"
        self.here = tmp_path / "near" / "toy-2222"
        (self.there / "record" / "n0.r0").mkdir(parents=True)
        self.here.mkdir(parents=True)
        self.answers = 0
        self.bounds: dict[str, int] = {}
        """How large a piece and an answer may be, where not as large as the pilot has it."""

    def write(self, name: str, text: str) -> None:
        path = self.there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)

    def exchange(self, **asked: Any) -> dict[str, list[str]]:
        with Mirror([RunFolder(self.here)]) as mirror:
            return mirror.bring(self.answer, str(self.root), Trees(**asked))

    def answer(self, request: dict[str, Any]) -> bytes:
        self.answers += 1
        out = io.BytesIO()
        far.answer(json.loads(json.dumps(request)), out, **self.bounds)
        return out.getvalue()


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


def test_only_what_is_new_comes(sides: Sides) -> None:
    sides.write(EVENTS, "one\n")
    sides.exchange()
    sides.write(EVENTS, "two\n")
    request = {"folder": str(sides.root), "runs": {"toy-2222": json.loads((sides.here / STATE).read_text())}}
    assert b"one" not in sides.answer(request)
    sides.exchange()
    assert (sides.here / EVENTS).read_text() == "one\ntwo\n"


def test_a_log_that_was_turned_over_loses_nothing(sides: Sides) -> None:
    sides.write(LOG, "a\n")
    sides.exchange()
    sides.write(LOG, "b\n")
    (sides.there / LOG).rename(sides.there / f"{LOG}.1")
    sides.write(LOG, "c\n")
    sides.exchange()
    assert (sides.here / f"{LOG}.1").read_text() == "a\nb\n"
    assert (sides.here / LOG).read_text() == "c\n"


def test_a_cut_answer_is_taken_as_far_as_it_goes_and_made_good_later(sides: Sides) -> None:
    sides.write(EVENTS, "x" * 5000 + "\n")
    sides.write(LOG, "y" * 5000 + "\n")
    with Mirror([RunFolder(sides.here)]) as mirror:
        whole = sides.answer(mirror.question(str(sides.root)))
        mirror.take(whole[: len(whole) // 2 + 1000])
    assert (sides.here / EVENTS).exists() != (sides.here / LOG).exists()
    sides.exchange()
    for name in (EVENTS, LOG):
        assert (sides.here / name).read_bytes() == (sides.there / name).read_bytes()


def test_a_file_that_was_lost_here_comes_again(sides: Sides) -> None:
    sides.write(EVENTS, "one\n")
    sides.exchange()
    (sides.here / EVENTS).unlink()
    sides.exchange()
    assert (sides.here / EVENTS).read_text() == "one\n"


def test_trees_come_alone_where_the_record_is_not_wanted(sides: Sides) -> None:
    sides.write(EVENTS, "one\n")
    sides.write("results/call/0.value", "1")
    assert sides.exchange(names=["results/call/0.value", "results/call/1.value"], alone=True) == {"toy-2222": []}
    found = sorted(path.relative_to(sides.here).as_posix() for path in sides.here.rglob("*") if path.is_file())
    assert found == ["mirror.lock", "results/call/0.value"]
    sides.exchange()
    assert (sides.here / EVENTS).read_text() == "one\n"


def test_trees_come_whole_and_what_is_too_much_is_named(sides: Sides) -> None:
    sides.write("results/a.json", "{}")
    sides.write("results/deep/empty", "")
    sides.write("results/large.bin", "z" * 4000)
    (sides.there / "results" / "link").symlink_to("/etc/passwd")
    large, link = LeftOut("results/large.bin", TOO_LARGE), LeftOut("results/link", "a link, no plain file")
    assert sides.exchange(names=["results"], limit_bytes=1000) == {"toy-2222": [large, link]}
    found = sorted(path.relative_to(sides.here).as_posix() for path in sides.here.rglob("*") if path.is_file())
    assert found == ["mirror.lock", "results/a.json", "results/deep/empty"]
    sides.write("results/a.json", "[]")
    assert sides.exchange(names=["results"]) == {"toy-2222": [link]}
    assert (sides.here / "results" / "a.json").read_text() == "{}[]"
    assert (sides.here / "results" / "large.bin").stat().st_size == 4000


def test_a_part_that_is_not_wanted_neither_comes_nor_counts(sides: Sides) -> None:
    sides.write("results/a.json", "{}")
    sides.write("results/workdir/out/ckpt.pt", "z" * 4000)
    sides.write("results/workdirs", "another name")
    (sides.there / "results" / "workdir" / "link").symlink_to("out")
    without = sides.exchange(names=["results"], limit_bytes=1000, but=["results/workdir"])
    assert without == {"toy-2222": []}
    assert sorted(path.name for path in (sides.here / "results").iterdir()) == ["a.json", "workdirs"]
    whole = sides.exchange(names=["results"])
    assert whole == {"toy-2222": [LeftOut("results/workdir/link", "a link, no plain file")]}
    assert (sides.here / "results" / "workdir" / "out" / "ckpt.pt").stat().st_size == 4000


def test_a_folder_that_leads_out_of_the_run_and_a_pipe_do_not_come(sides: Sides, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("private")
    sides.write("checkpoints/a", "1")
    os.mkfifo(sides.there / "checkpoints" / "pipe")
    (sides.there / "results").symlink_to(tmp_path / "private")
    brought = sides.exchange(names=["results", "checkpoints", "../../private"])
    assert [gap.path for gap in brought["toy-2222"]] == ["results", "checkpoints/pipe"]
    found = sorted(path.relative_to(sides.here).as_posix() for path in sides.here.rglob("*") if path.is_file())
    assert found == ["checkpoints/a", "mirror.lock"]


def test_much_comes_in_answers_of_bounded_size(sides: Sides) -> None:
    sides.bounds = {"piece_bytes": 100, "answer_bytes": 350}
    sides.write(EVENTS, "e" * 800)
    for name in ("results/a/one", "results/b/two", "results/zero"):
        sides.write(name, name[-3:] * 150)
    sides.write("results/none", "")
    assert sides.exchange(names=["results"]) == {"toy-2222": []}
    assert sides.answers > 5
    for path in sides.there.rglob("*"):
        assert path.is_dir() or path.read_bytes() == (sides.here / path.relative_to(sides.there)).read_bytes()


def test_trees_that_change_under_way_are_not_taken_for_whole(sides: Sides) -> None:
    sides.bounds = {"piece_bytes": 100, "answer_bytes": 100}
    sides.write("results/one", "x" * 500)
    with Mirror([RunFolder(sides.here)]) as mirror:
        assert mirror.take(sides.answer(mirror.question(str(sides.root), Trees(["results"]))))
        (sides.there / "results" / "one").rename(sides.there / "results" / "two")
        assert mirror.bring(sides.answer, str(sides.root), Trees(["results"])) == {}
    assert sides.exchange(names=["results"]) == {"toy-2222": []}
    assert (sides.here / "results" / "two").read_text() == "x" * 500


@pytest.mark.parametrize("name", ["../token", "/etc/x", "job/batch.sh", "run.json", "record/../x", "record/n0.r0/a/b"])
def test_what_comes_from_elsewhere_decides_nothing_about_our_paths(sides: Sides, name: str) -> None:
    piece = json.dumps({"r": "toy-2222", "f": name, "o": 0, "n": 1}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.take(piece)
    assert [path.name for path in sides.here.parent.rglob("*") if path.is_file()] == ["mirror.lock"]


def test_another_client_that_is_at_it_is_left_to_it(sides: Sides) -> None:
    sides.write(EVENTS, "one\n")
    with Mirror([RunFolder(sides.here)]):
        sides.exchange()
        assert not (sides.here / EVENTS).exists()
    assert [path.name for path in sides.here.iterdir()] == ["mirror.lock"]


GOOD = {"r": "toy-2222", "f": EVENTS, "o": 0, "i": 7, "n": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"n": -25},
        {"n": "1"},
        {"n": None},
        {"n": 1 << 70},
        {"o": -1},
        {"o": "0"},
        {"o": 1 << 40},
        {"o": 1 << 70},
        {"f": 7},
        {"f": "record/n0.r0/\0"},
        {"f": "record/n0.r0/" + "x" * 5000},
        {"f": ["record"]},
        {"i": "x"},
        {"r": ["toy-2222"]},
    ],
)
def test_a_forged_piece_is_left_out_and_never_loops(sides: Sides, changes: dict[str, Any]) -> None:
    forged = json.dumps({**GOOD, **changes}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        assert mirror.bring(lambda question: forged + b'\n{"end": true, "more": true}\n', str(sides.root)) == {}
    sizes = {path.name: path.stat().st_size for path in sides.here.rglob("*") if path.is_file()}
    assert sizes.get("events.jsonl", 0) == 0
    sides.write(EVENTS, "one\n")
    sides.exchange()
    assert (sides.here / EVENTS).read_text() == "one\n"


@pytest.mark.parametrize(
    "name", ["report.html", "metrics.parquet", "series.parquet", "cancelled", "x.lock", "engine.jsonl", "lease/0"]
)
def test_only_the_record_and_what_was_asked_for_is_written(sides: Sides, name: str) -> None:
    piece = json.dumps({"r": "toy-2222", "f": name, "o": 0, "of": 1, "n": 1}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.question(str(sides.root), Trees(["results"]))
        mirror.take(piece)
    assert [path.name for path in sides.here.rglob("*") if path.is_file()] == ["mirror.lock"]


def test_a_series_grows_as_the_record_does(sides: Sides) -> None:
    (sides.here / "run.json").write_text(field_lines(asked("toy-2222").as_json()))
    sides.write(SERIES, "one\n")
    sides.exchange()
    sides.write(SERIES, "two\n")
    sides.exchange()
    assert (sides.here / SERIES).read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("record/n0.r0/rank4.series.jsonl", 0),
        ("record/n0.r0/rank².series.jsonl", 0),
        ("record/n0.r0/x/rank0.series.jsonl", 0),
        ("record/n0.r0/rank0.series.jsonl", SERIES_BYTES),
    ],
)
def test_a_series_of_no_rank_of_the_run_or_beyond_its_bound_is_not_written(
    sides: Sides, name: str, offset: int
) -> None:
    (sides.here / "run.json").write_text(field_lines(asked("toy-2222").as_json()))
    piece = json.dumps({"r": "toy-2222", "f": name, "i": 7, "o": offset, "n": 1}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.question(str(sides.root))
        mirror.take(piece)
    assert not list(sides.here.rglob("*.series.jsonl"))


def test_a_sparse_series_comes_up_to_its_hole(sides: Sides) -> None:
    (sides.here / "run.json").write_text(field_lines(asked("toy-2222").as_json()))
    sides.write(SERIES, "one\n")
    os.truncate(sides.there / SERIES, 1 << 40)
    sides.exchange()
    assert (sides.here / SERIES).stat().st_size <= 1 << 16


@pytest.mark.parametrize("name", ["events.jsonl", "metrics.jsonl", "merged.log"])
def test_a_file_made_out_of_nothing_comes_up_to_its_hole_and_that_is_said(sides: Sides, name: str) -> None:
    name = f"record/n0.r0/{name}"
    sides.write(name, "one\n" * 4096)
    os.truncate(sides.there / name, 1 << 40)
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.bring(sides.answer, str(sides.root))
        sentence = f"{name} did not come whole: it is larger than a pilot makes it, or has holes"
        assert mirror.gaps == {"toy-2222": [sentence]}
    came = (sides.here / name).read_bytes()
    assert came.rstrip(b"\0") == b"one\n" * 4096
    assert len(came) < 1 << 20


def test_nothing_is_written_beyond_the_bound_of_a_file(sides: Sides) -> None:
    path = sides.here / EVENTS
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, GROWING_BYTES)
    piece = json.dumps({"r": "toy-2222", "f": EVENTS, "i": 7, "o": GROWING_BYTES, "n": 1}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.question(str(sides.root))
        mirror.take(piece)
    assert path.stat().st_size == GROWING_BYTES


def test_the_other_side_keeps_to_the_limit_or_is_cut_off(sides: Sides) -> None:
    def flood(question: dict[str, Any]) -> bytes:
        _, offset = question["at"].get("toy-2222", ["", 0])
        head = {"r": "toy-2222", "f": "results/large", "o": offset, "of": 1, "n": 400}
        return json.dumps(head).encode() + b"\n" + b"z" * 400 + b'{"end": true, "more": true}\n'

    with Mirror([RunFolder(sides.here)]) as mirror:
        assert mirror.bring(flood, str(sides.root), Trees(["results"], 1000)) == {}
    assert (sides.here / "results" / "large").stat().st_size == 800


@pytest.mark.parametrize(
    "state", ["[]", '{"a": 1}', f'{{"{EVENTS}": ["x", -1]}}', "{" * 9, f'{{"{EVENTS}": [1, 1e9]}}']
)
def test_a_damaged_state_is_asked_for_again(sides: Sides, state: str) -> None:
    (sides.here / STATE).write_text(state)
    sides.write(EVENTS, "one\n")
    sides.exchange()
    assert (sides.here / EVENTS).read_text() == "one\n"


def test_what_lies_in_the_way_of_a_piece_stays(sides: Sides) -> None:
    (sides.here / EVENTS).mkdir(parents=True)
    sides.write(EVENTS, "one\n")
    sides.write(LOG, "two\n")
    sides.exchange()
    assert (sides.here / EVENTS).is_dir()
    assert (sides.here / LOG).read_text() == "two\n"


@pytest.mark.parametrize("name", [EVENTS, LOG, "record/n0.r0/merged.log.1"])
@pytest.mark.parametrize("kind", NO_PLAIN_FILES)
def test_a_record_that_is_no_plain_file_holds_nothing_up(sides: Sides, name: str, kind: str) -> None:
    sides.write("record/n0.r0/metrics.jsonl", "one\n")
    if name.endswith(".1"):
        sides.write(LOG, "one\n")
        sides.exchange()
        (sides.there / LOG).unlink()
        sides.write(LOG, "two\n")
    NO_PLAIN_FILES[kind](sides.there / name)
    sides.exchange()
    assert (sides.here / "record/n0.r0/metrics.jsonl").read_text() == "one\n"
    assert not (sides.here / name).is_file() or name.endswith(".1")


def test_what_is_no_plain_file_is_left_out_by_name(sides: Sides, tmp_path: Path) -> None:
    sides.write("results/good", "x")
    sides.write("results/inner/good", "x")
    (sides.there / "results" / "stolen").symlink_to("/etc/passwd")
    (sides.there / "results" / "whole").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(sides.there / "results" / "inner" / "pipe")
    (sides.there / "checkpoints").symlink_to("/etc", target_is_directory=True)
    brought = sides.exchange(names=("results", "checkpoints"))
    assert brought == {
        "toy-2222": [
            LeftOut("results/stolen", "a link, no plain file"),
            LeftOut("results/whole", "a link, no plain file"),
            LeftOut("results/inner/pipe", "a pipe, no plain file"),
            LeftOut("checkpoints", "a link, no plain file"),
        ]
    }
    files = {str(path.relative_to(sides.here)) for path in (sides.here / "results").rglob("*") if path.is_file()}
    assert files == {"results/good", "results/inner/good"}


def test_what_is_left_out_is_named_up_to_a_number(sides: Sides) -> None:
    (sides.there / "results").mkdir()
    for number in range(far.MAX_ODD + 5):
        (sides.there / "results" / f"{number:04d}").symlink_to("nowhere")
    assert len(sides.exchange(names=("results",))["toy-2222"]) == far.MAX_ODD


@pytest.mark.parametrize("odd", ["\x1b[2J", 5, None, ["a link"], {"a": 1}])
def test_a_forged_kind_is_not_believed(sides: Sides, odd: Any) -> None:
    """Words of the other side are not shown."""
    assert read_piece({"f": "results/a", "odd": odd}, ("results",)) == Piece(
        "results/a", left_out="something odd, no plain file"
    )


def test_that_a_record_is_closed_is_known_here(sides: Sides) -> None:
    sides.write(EVENTS, "{}\n")
    sides.write("record/n0.r0/closed", "closed\n")
    sides.exchange()
    assert (sides.here / "record" / "n0.r0" / "closed").exists()


@pytest.mark.parametrize("name", ["results/../../evil", "results/../token", "results/a/../../run.json"])
def test_a_tree_that_was_asked_for_gives_no_way_out_of_the_run(sides: Sides, name: str) -> None:
    piece = json.dumps({"r": "toy-2222", "f": name, "o": 0, "n": 1}).encode() + b"\nx"
    with Mirror([RunFolder(sides.here)]) as mirror:
        mirror.question(str(sides.root), Trees(["results"]))
        mirror.take(piece)
    assert [path.name for path in sides.here.parent.rglob("*") if path.is_file()] == ["mirror.lock"]
