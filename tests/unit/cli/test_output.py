"""Words in columns, colour where it is wanted, and questions only where a person can answer."""

from __future__ import annotations

import io
import json

import pytest

from podwright.cli.terminal import output


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_further_lines_stand_under_the_text() -> None:
    lines = output.aligned("failed", "rank 3 exited\nRuntimeError: ECC", io.StringIO())
    assert lines == ["failed    rank 3 exited", "          RuntimeError: ECC"]


def test_a_long_word_keeps_a_blank() -> None:
    assert output.aligned("succeededly", "x", io.StringIO()) == ["succeededly x"]


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.paint("failed", "failed", io.StringIO()) == "failed"
    assert output.paint("failed", "failed", Terminal()) == "\x1b[31mfailed\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "")
    assert output.paint("failed", "failed", Terminal()) == "failed"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert output.paint("failed", "failed", Terminal()) == "failed"


def test_plain_takes_escapes_out_and_keeps_lines() -> None:
    assert output.plain("a\x1b[31mb\x1b[0m\rc\x07\n\td") == "abc\n\td"


def test_json_is_one_document_without_nan(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"loss": float("nan"), "rows": [float("inf"), 1.5], "name": "ä"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"loss": None, "rows": [None, 1.5], "name": "ä"}
    assert "ä" in printed


def test_table_cuts_only_the_last_column() -> None:
    lines = output.table(("run", "outcome"), [("a-1", "x" * 30), ("long-name-2", "")], 20)
    assert lines == ["RUN          OUTCOME", "a-1          xxxx...", "long-name-2"]


@pytest.mark.parametrize(
    ("answer", "meant"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_a_person_is_asked(answer: str, meant: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert output.confirm("Remove a-1?", yes=False, answers=Terminal(answer)) is meant
    assert capsys.readouterr() == ("", "Remove a-1? [y/N] ")


def test_nobody_is_asked_without_a_terminal_or_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.confirm("Remove a-1?", yes=True, answers=Terminal(""))
    assert output.confirm("Remove a-1?", yes=False, answers=io.StringIO(""))
    assert capsys.readouterr() == ("", "")
