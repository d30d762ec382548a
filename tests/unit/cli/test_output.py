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


def test_plain_takes_c1_and_marks_of_direction_out() -> None:
    assert output.plain("a\x9b2Jb\x7fc\u202ed\u2066e\u200ff ä") == "a2Jbcdef ä"


HOSTILE = {
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x1b\\": r"\x1b]52;c;aGk=\x1b" + "\\",
    "\x1b[2J\x1b[1;1H": r"\x1b[2J\x1b[1;1H",
    "\x9b2J\x85": r"\x9b2J\x85",
    "seen\rhidden\x08\x00": r"seen\rhidden\x08\x00",
    "\u202egnp.exe\u2069": r"\u202egnp.exe\u2069",
    "a\tb ä \r": "a\tb ä ",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_on_a_terminal_what_a_rank_wrote_steers_nothing(text: str) -> None:
    assert output.foreign_line(text, Terminal()) == HOSTILE[text]
    assert output.foreign_line(text, io.StringIO()) == text


def test_on_a_terminal_the_colours_of_a_rank_go_through_and_end_with_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.foreign_line("\x1b[1;31mred\x1b[38:5:4mblue", Terminal()) == "\x1b[1;31mred\x1b[38:5:4mblue\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.foreign_line("\x1b[1;31mred\x1b[K", Terminal()) == r"red\x1b[K"


def test_json_steers_no_terminal_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"text": "\x1b[2J\x9b2J\x7f\u202e ä"}
    output.print_json(document)
    printed = capsys.readouterr().out
    assert json.loads(printed) == document
    assert printed == '{\n  "text": "\\u001b[2J\\u009b2J\\u007f\\u202e ä"\n}\n'


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
