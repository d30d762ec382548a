"""How far runs are, by the words of their pilots: what is believed, of whom, and what is made of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.pilot.life import word as pilot_word
from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter import words
from podwright.telemetry.exporter.jobs import user_name
from podwright.telemetry.exporter.words import RunWords, word_of

ME = user_name(os.getuid())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = words_of(tmp_path)
    made.open()
    return tmp_path


def words_of(root: Path, **holders: list[str]) -> RunWords:
    return RunWords(Scope(root=str(root), environ={}), lambda run: holders.get(run.replace("-", "_"), []))


def say(root: Path, name: str, age_s: float = 0.0, **word: Any) -> Path:
    file = Path(f"{root}{words.WORDS}") / f"{name}.json"
    file.write_text(json.dumps({"run": name, **word}))
    at = time.time() - age_s
    os.utime(file, (at, at))
    return file


def told(made: RunWords) -> dict[str, float]:
    return {sample.name.removeprefix("podwright_run_"): sample.value for sample in made.read(0.0)}


def test_a_pilot_and_the_exporter_mean_the_same_folder() -> None:
    assert pilot_word.WORDS == words.WORDS


def test_the_folder_is_for_everybody_and_nobody_removes_anothers_file(root: Path) -> None:
    assert (Path(f"{root}{words.WORDS}").stat().st_mode & 0o7777) == 0o1777


def test_steps_and_checkpoints_say_how_often_they_come(root: Path) -> None:
    made = words_of(root)
    began = time.time()
    for number in range(4):
        file = say(root, "digits-7f3k", steps={"0": 50 * number, "1": None}, checkpoint_at=1000.0 + 300 * (number // 2))
        os.utime(file, (began + number, began + number))
        last = told(made)
    assert last["step"] == 150
    assert last["report_interval_seconds"] == pytest.approx(1, abs=0.001)
    assert last["step_seconds"] == pytest.approx(0.02, abs=0.0001)
    assert last["step_timestamp_seconds"] == pytest.approx(began + 3, abs=0.001)
    assert (last["checkpoint_timestamp_seconds"], last["checkpoint_interval_seconds"]) == (1300.0, 300.0)


def test_what_a_program_says_of_its_time_is_passed_on_under_known_names(root: Path) -> None:
    made = words_of(root)
    time_told = {"spent.productive": 12.5, "spent.data_wait": 1.0, "spent.<b>": 1, "spent.compile": -1, "work_s": "1"}
    say(root, "digits-7f3k", steps={"0": 7}, time={**time_told, "work_slowest_s": 1.5, "work_slowest_rank": 3})
    samples = made.read(0.0)
    spent = {dict(sample.labels)["class"]: sample.value for sample in samples if "spent" in sample.name}
    assert spent == {"productive": 12.5, "data_wait": 1.0}
    last = told(made)
    assert (last["work_slowest_seconds"], last["work_slowest_rank"]) == (1.5, 3)
    assert "work_seconds" not in last
    say(root, "digits-7f3k", steps={"0": 8}, time=["no object"])
    assert told(made)["step"] == 8


def test_a_step_that_does_not_change_keeps_its_time(root: Path) -> None:
    made = words_of(root)
    say(root, "digits-7f3k", 5, steps={"0": 7})
    first = told(made)["step_timestamp_seconds"]
    say(root, "digits-7f3k", 0, steps={"0": 7})
    assert told(made)["step_timestamp_seconds"] == first


def test_a_run_that_somebody_else_holds_gpus_of_is_not_believed(root: Path) -> None:
    say(root, "digits-7f3k", steps={"0": 7})
    assert told(words_of(root, digits_7f3k=["somebody"])) == {}
    for holders in ([ME], ["somebody", ME]):
        (sample, *_) = words_of(root, digits_7f3k=holders).read(0.0)
        assert dict(sample.labels) == {"run": "digits-7f3k", "user": ME}, "who forges a name silences nobody"


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{", '{"run": "../x", "steps": {"0": 1}}', '{"run": 7}', "[" * 60000, '{"steps": {"0": 1}}'],
)
def test_what_is_no_word_is_passed_over(root: Path, text: str) -> None:
    file = Path(f"{root}{words.WORDS}") / "x.json"
    file.write_text(text)
    if text == '{"run": 7}':
        assert word_of(str(file), time.time()) == words.Said(ME, "7", None, None, file.stat().st_mtime)
    else:
        assert word_of(str(file), time.time()) is None


def test_neither_a_link_nor_a_pipe_nor_an_old_word_is_read(root: Path) -> None:
    folder = Path(f"{root}{words.WORDS}")
    elsewhere = root / "elsewhere.json"
    elsewhere.write_text('{"run": "a", "steps": {"0": 1}}')
    (folder / "link.json").symlink_to(elsewhere)
    os.mkfifo(folder / "pipe.json")
    say(root, "old", 3600, steps={"0": 1})
    assert told(words_of(root)) == {}


def test_numbers_beyond_sense_are_no_steps(root: Path) -> None:
    say(root, "a", steps={"0": 1e300, "1": True, "2": "3", "3": float("nan")}, checkpoint_at=[])
    assert told(words_of(root)) == {}


def test_a_pilot_says_the_steps_of_its_ranks_and_takes_its_word_back(tmp_path: Path) -> None:
    rank = SimpleNamespace(number=3, code=None, step=12.0, time={"spent.productive": 9.5})
    ended = SimpleNamespace(number=4, code=0, step=99.0, time={})
    ranks: Any = SimpleNamespace(ranks={3: rank, 4: ended})
    clock = iter((100.0, 104.9, 105.0))
    word = pilot_word.RunWord("digits-7f3k", 1, ranks, str(tmp_path), lambda: next(clock))
    word.checkpoint_at = 5.0
    word.beat()
    file = tmp_path / "digits-7f3k.1.json"
    said = {"run": "digits-7f3k", "steps": {"3": 12.0}, "checkpoint_at": 5.0, "time": {"spent.productive": 9.5}}
    assert json.loads(file.read_text()) == said
    rank.step = 13.0
    word.beat()
    assert json.loads(file.read_text())["steps"] == {"3": 12.0}, "it is written once in a while"
    word.beat()
    assert json.loads(file.read_text())["steps"] == {"3": 13.0}
    word.close()
    assert list(tmp_path.iterdir()) == []


def test_without_an_exporter_a_pilot_says_nothing(tmp_path: Path) -> None:
    word = pilot_word.RunWord("digits-7f3k", 0, SimpleNamespace(ranks={}), str(tmp_path / "none"))  # type: ignore[arg-type]
    word.beat()
    word.close()
    assert list(tmp_path.iterdir()) == []
