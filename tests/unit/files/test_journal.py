"""Journals of JSON lines."""

from __future__ import annotations

from pathlib import Path

from podwright.files.journal import JournalFile, append, lines_of


def test_rows_are_read_as_they_were_added(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "journal.jsonl")
    assert journal.rows() == []
    journal.append({"k": "first"})
    assert journal.rows() == [{"k": "first"}]
    JournalFile(journal.path).append({"k": "of another"}, {"k": "again"})
    assert [row["k"] for row in journal.rows()] == ["first", "of another", "again"]


def test_a_line_that_is_not_whole_is_left_out_until_it_is(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "journal.jsonl")
    append(journal.path, lines_of({"k": 1}) + b'nothing\n{"k": ')
    assert journal.rows() == [{"k": 1}]
    append(journal.path, b"2}\n")
    assert journal.rows() == [{"k": 1}, {"k": 2}]


def test_a_journal_that_began_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "journal.jsonl")
    journal.append({"k": "old"}, {"k": "older"})
    assert len(journal.rows()) == 2
    journal.path.unlink()
    assert journal.rows() == []
    journal.append({"k": "new"})
    assert journal.rows() == [{"k": "new"}]
