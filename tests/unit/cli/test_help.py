"""The help of every command, compared whole, so that a change of wording is seen in the diff."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.cli.table import EVERY
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "cli" / "help"


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_overview(flag: str, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    golden(CASES / "podwright.txt", captured.out)


@pytest.mark.parametrize("name", EVERY)
def test_command(name: str, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    golden(CASES / f"{name.replace(' ', '-')}.txt", capsys.readouterr().out)


def test_no_line_is_wider_than_80_columns() -> None:
    wide = [
        f"{path.name}: {line}" for path in CASES.iterdir() for line in path.read_text().splitlines() if len(line) > 80
    ]
    assert wide == []


def test_no_arguments_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (CASES / "podwright.txt").read_text()


@pytest.mark.parametrize("name", EVERY)
def test_example_is_a_call_of_the_command_itself(name: str) -> None:
    assert f"{EVERY[name].example} ".startswith(f"podwright {name} ")
