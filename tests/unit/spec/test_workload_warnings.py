"""What is allowed and most often a slip: each with its place and what was meant; a right workload has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import spec
from podwright.spec.loader import restore_workload

LIST = 'write `command: [bash, -c, "..."]`, or put lines that prepare under `setup:`'


def warnings(tmp_path: Path, command: str, more: str = "") -> list[tuple[str, str | None]]:
    (tmp_path / "code").mkdir(exist_ok=True)
    (tmp_path / "code" / "train.py").touch()
    path = tmp_path / "workload.yaml"
    path.write_text(f"name: toy\ncode: code\ncommand: {command}\n{more}")
    return [(str(each).replace(f"{tmp_path}/", ""), each.hint) for each in spec.load_workload(path).warnings()]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("python train.py | tee log", "|"),
        ("python train.py && echo done", "&&"),
        ("python train.py > log", ">"),
        ("python train.py 2>&1", "2>&1"),
        ("python train.py; echo", ";"),
        ("cd src && python train.py", "&&"),
        ("cd src", "cd"),
        ("python train.py --out $HOME/x", "$HOME"),
        ('python train.py --out "$HOME/x"', "$HOME"),
        ("python train.py --n $(nproc)", "$("),
    ],
)
def test_words_of_a_shell(tmp_path: Path, command: str, word: str) -> None:
    found = warnings(tmp_path, command)
    expected = f"`{word}` is no shell's here: the command is split into words and run as it is"
    assert found == [(f"workload.yaml:3:10: command: {expected}", LIST)]


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --lr 0.1 --text 'a | b; $HOME > x'",
        '[bash, -c, "python train.py | tee log"]',
        'bash -c "python train.py > $HOME/log"',
        '\'python train.py --where "a;b" --json {"check":1} --at {rank} {checkpoint}\'',
    ],
)
def test_what_is_right_is_not_warned_of(tmp_path: Path, command: str) -> None:
    assert warnings(tmp_path, command) == []


@pytest.mark.parametrize(
    ("braces", "meant"),
    [("{chekpoint}", "{checkpoint}"), ("{dat.frames}", "{data.frames}"), ("{matrx.lr}", "{matrix.lr}")],
)
def test_braces_that_are_nearly_a_placeholder(tmp_path: Path, braces: str, meant: str) -> None:
    found = warnings(tmp_path, f"python train.py {braces}", f"env: {{A: '{braces}'}}\n")
    where = ("workload.yaml:3:10: command", "workload.yaml:4:10: env.A")
    assert found == [(f"{place}: `{braces}` is not replaced", f"did you mean `{meant}`?") for place in where]


@pytest.mark.parametrize("command", ["python3 trian.py --lr 1", "[python, -u, trian.py]"])
def test_a_program_that_is_not_there(tmp_path: Path, command: str) -> None:
    ((words, hint),) = warnings(tmp_path, command)
    assert words.endswith("command: trian.py is not in the code folder")
    assert hint == "did you mean `train.py`?"


def test_nothing_is_looked_up_outside_the_code(tmp_path: Path) -> None:
    assert warnings(tmp_path, "python /opt/trian.py") == []
    assert warnings(tmp_path, "python ../trian.py")[0][1] == (
        "paths in a command are relative to `code:`, where ranks start"
    )


def test_a_workload_of_a_record_has_none(tmp_path: Path) -> None:
    workload = restore_workload({"name": "toy", "command": "a | b"}, tmp_path / "workload.yaml", b"")
    assert workload.warnings() == []
