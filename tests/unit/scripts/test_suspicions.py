"""What checkers suspect: a reason for each, and no reason for nothing."""

from __future__ import annotations

from scripts.suspicions import EVERYWHERE, IN_FILES, Suspicion, of_bandit, of_secrets, unused, without_reason
from tests.paths import ROOT

ROW = {"test_id": "B602", "filename": "./src/x.py", "line_number": 3, "issue_text": "a shell"}
SECRET = {"type": "Private Key", "filename": "src/y.py", "line_number": 7, "hashed_secret": "0"}


def test_what_has_no_reason_is_named_with_its_place() -> None:
    found = [*of_bandit({"results": [ROW]}), *of_secrets({"results": {"src/y.py": [SECRET]}})]
    assert without_reason(found) == [
        Suspicion("B602", "src/x.py", 3, "a shell"),
        Suspicion("Private Key", "src/y.py", 7, "may be a secret"),
    ]


def test_a_reason_is_for_its_kind_and_its_files_alone() -> None:
    (kind, pattern) = next((kind, file) for kind, file in IN_FILES if "*" not in file)
    here, there = (Suspicion(kind, file, 1, "") for file in (pattern, "src/other.py"))
    assert without_reason([here, there, Suspicion("B101", "src/z.py", 1, "")]) == [there]
    assert f"{kind} {pattern}" not in unused([here])
    assert f"{kind} {pattern}" in unused([there])


def test_reasons_are_for_files_that_there_are() -> None:
    assert [file for _, file in IN_FILES if "*" not in file and not (ROOT / file).is_file()] == []
    assert all(EVERYWHERE.values())
