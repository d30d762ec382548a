"""`find --sort` and `--count`, and `data show`: the files in an order, how many they are, and all of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.a2d2 import write_scenes
from tests.unit.data.conftest import Say

Tell = Callable[..., tuple[str, str]]


@pytest.fixture
def counted(ask: Say, tmp_path: Path) -> Path:
    root = write_scenes(tmp_path / "a2d2", scenes=2, frames=3)
    for number, path in enumerate(sorted(path for path in root.rglob("*") if path.is_file())):
        os.utime(path, (1_700_000_000 + number * 7 % 5, 1_700_000_000 + number * 7 % 5))
    ask("scan", root, "--name", "a2d2")
    ask("stats", "a2d2")
    return root


def rows(ask: Say, *words: object) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = ask("find", "a2d2", *words)["files"]
    return files


def test_files_come_in_an_order_and_those_without_a_value_last(ask: Say, counted: Path) -> None:
    for frame, value in ((1, "9"), (2, "10"), (3, "heavy")):
        ask("tag", "a2d2", f"frame={frame}", f"load={value}")
    plain = rows(ask)
    for column in ("size", "path", "mtime", "frame", "Car", "load"):
        facts = {row["path"]: row.get(column) for row in rows(ask, "--sort", column)}
        having = [row["path"] for row in plain if facts[row["path"]] is not None]
        without = [row["path"] for row in plain if facts[row["path"]] is None]
        assert len(having) > 2
        least = [path for value in _values(facts) for path in having if facts[path] == value]
        assert [row["path"] for row in rows(ask, "--sort", column)] == least + without, column
        if column != "load":
            greatest = [path for value in reversed(_values(facts)) for path in having if facts[path] == value]
            assert [row["path"] for row in rows(ask, "--sort", f"-{column}", "--limit", 5)] == greatest[:5], column


def _values(facts: dict[str, Any]) -> list[Any]:
    """All values, the least first; of texts those that are numbers as such, before the others."""
    values = {value for value in facts.values() if value is not None}
    if values == {"9", "10", "heavy"}:
        return ["9", "10", "heavy"]
    return sorted(values)


def test_what_is_sorted_by_is_shown(ask: Say, tell: Tell, counted: Path) -> None:
    out, _ = tell("find", "a2d2", "kind=label", "--sort", "-Car", "--limit", 2)
    first = rows(ask, "kind=label", "--sort", "-Car")[0]
    assert out.splitlines()[0].split() == ["SIZE", "CAR", "PATH"]
    assert str(first["Car"]) in out.splitlines()[1].split()


def test_a_column_that_there_is_not_is_refused(tell: Tell, counted: Path) -> None:
    _, err = tell("find", "a2d2", "--sort", "siz", code=2)
    assert err == "--sort: siz: unknown column\n\nhint: did you mean `size`?\n"


def test_a_count_is_a_number_alone(ask: Say, tell: Tell, counted: Path) -> None:
    every = rows(ask, "kind=label")
    assert tell("find", "a2d2", "kind=label", "--count")[0] == f"{len(every)}\n"
    answer = ask("find", "a2d2", "kind=label", "--count")
    assert (answer["count"], answer["files"]) == (len(every), [])


def test_all_that_is_known_of_a_file(ask: Say, tell: Tell, counted: Path) -> None:
    ask("tag", "a2d2", "frame=1", "weather=rain")
    label = rows(ask, "kind=label and frame=1")[0]
    facts = ask("show", "a2d2", label["path"])
    assert {name: facts[name] for name in label} == label
    assert facts["tags"] == {"weather": "rain"}
    roles = [row["role"] for row in facts["sample"]]
    assert roles == ["image", "label", "json"]
    pixels = {row["path"]: row for row in ask("find", "a2d2", "Car>0", "--sort", "Car")["files"]}
    assert facts["classes"].get("Car", 0) == pixels.get(label["path"], {}).get("Car", 0)
    image = ask("show", "a2d2", facts["sample"][0]["path"])
    assert image["classes"] == facts["classes"], "those of its label"
    out, _ = tell("show", "a2d2", label["path"])
    assert "weather=rain" in out
    assert "image     " in out


def test_a_file_is_named_as_it_lies_and_as_it_is_shown(ask: Say, tell: Tell, counted: Path) -> None:
    (counted / "new\nline.txt").touch()
    ask("scan", counted, "--name", "a2d2")
    for name in ("new\nline.txt", r"new\nline.txt", counted / "new\nline.txt"):
        assert ask("show", "a2d2", name)["path"] == "new\nline.txt"
    _, err = tell("show", "a2d2", "old.txt", code=2)
    assert err.startswith('a2d2 has no file "old.txt"')
