"""The audit of what is locked: what is not checked is never called clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import audit
from tests.paths import ROOT

LOCK = """\
jinja2==3.1.2 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
old==1.0 ; python_full_version < '3.8'
rich==15.0.0 \\
    --hash=sha256:cc
"""
RECORD = {
    "id": "PYSEC-1",
    "summary": "escapes",
    "affected": [
        {
            "package": {"name": "Jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}, {"fixed": "3.1.3"}]}],
        }
    ],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "lock.txt").write_text(LOCK)
    return tmp_path


def service(root: Path, rows: object, code: int = 0) -> Path:
    """A program in place of pip-audit, which prints what that prints."""
    program = root / "pip-audit"
    text = json.dumps(rows) if not isinstance(rows, str) else rows
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return program


def answers(**faults: list[str]) -> dict[str, Any]:
    """What pip-audit prints of packages that its service knows."""
    versions = {"jinja2": "3.1.2", "rich": "15.0.0"}
    rows = [
        {"name": name, "version": versions[name], "vulns": [{"id": fault} for fault in found]}
        for name, found in faults.items()
    ]
    return {"dependencies": rows, "fixes": []}


AWAY = "requests.exceptions.ConnectionError: Failed to resolve 'api.osv.dev'"
SKIPPED = {
    # What it prints, with exit code 0 and "No known vulnerabilities found", where the index has no such service.
    "dependencies": [
        {"name": "jinja2", "skip_reason": "Dependency not found on PyPI and could not be audited: jinja2 (3.1.2)"},
        {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"},
    ]
}


@pytest.mark.parametrize(("said", "code"), [(AWAY, 1), (SKIPPED, 0), ("", 0), ({"dependencies": []}, 0), ([], 0)])
def test_a_service_that_does_not_answer_is_never_a_clean_audit(
    root: Path, capsys: pytest.CaptureFixture[str], said: object, code: int
) -> None:
    assert audit.main(root, service(root, said, code)) == audit.NOT_CHECKED
    out = capsys.readouterr().out
    assert "faults    not checked: 2 of 2 packages; no OSV records are kept" in out


def test_what_the_service_answers_counts_and_what_it_leaves_out_does_not(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(root, service(root, answers(jinja2=[], rich=[]))) == audit.CLEAN
    assert "faults    0 known in 2 packages, by pip-audit" in capsys.readouterr().out
    assert audit.main(root, service(root, answers(jinja2=["PYSEC-1"], rich=[]), 1)) == audit.FOUND
    assert "fault     jinja2 3.1.2: PYSEC-1" in capsys.readouterr().out
    assert audit.main(root, service(root, answers(rich=[]))) == audit.NOT_CHECKED
    assert "not checked: 1 of 2 packages; pip-audit and no OSV records are kept" in capsys.readouterr().out
    keep(root, {"jinja2": [RECORD]})
    assert audit.main(root, service(root, answers(rich=[]))) == audit.FOUND


def keep(root: Path, packages: dict[str, Any]) -> None:
    (root / "requirements" / "osv.json").write_text(json.dumps({"date": "2026-11-18", "packages": packages}))


def test_without_records_nothing_is_checked_and_that_is_no_success(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(root, root / "none") == 3
    assert "not checked: 2 of 2 packages; no OSV records are kept" in capsys.readouterr().out


def test_a_package_that_the_records_do_not_name_is_not_checked(root: Path) -> None:
    keep(root, {"rich": []})
    assert audit.main(root, root / "none") == 3
    keep(root, {"rich": [], "jinja2": []})
    assert audit.main(root, root / "none") == 0


def test_a_fault_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(root, {"rich": [], "jinja2": [RECORD]})
    assert audit.main(root, root / "none") == 1
    out = capsys.readouterr().out
    assert "fault     jinja2 3.1.2: PYSEC-1 escapes" in out
    assert "1 known in 2 packages, by OSV records of 2026-11-18" in out


@pytest.mark.parametrize(
    ("version", "affected"), [("1.9", False), ("2.0", True), ("3.1.2", True), ("3.1.3", False), ("4", False)]
)
def test_a_range_ends_before_what_mends_it(version: str, affected: bool) -> None:
    assert audit.is_affected(audit.Locked("jinja2", version, ()), RECORD) is affected
    assert not audit.is_affected(audit.Locked("jinja2", version, ()), {**RECORD, "withdrawn": "2026-01-01"})


def test_the_list_names_every_package_of_the_real_lock() -> None:
    packages = audit.locked((ROOT / audit.LOCK).read_text())
    bill = audit.bill_of(packages, "1.0")
    assert (bill["bomFormat"], bill["specVersion"], len(bill["components"])) == ("CycloneDX", "1.6", len(packages))
    assert len({row["bom-ref"] for row in bill["components"]}) == len(packages) > 50
    [rich] = [row for row in bill["components"] if row["name"] == "rich"]
    assert rich["licenses"] == [{"license": {"name": "MIT License"}}]
    assert all(row["properties"] for row in bill["components"])
