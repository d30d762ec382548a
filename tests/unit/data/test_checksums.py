"""Checksums on demand, and what happens where the extra is not installed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.extra import need_packages
from podwright.data.policies.checksums import add_checksums
from podwright.spec.problems import Refusal
from tests.unit.data.conftest import Say


def test_each_file_is_read_once(ask: Say, tree: Path) -> None:
    first = ask("scan", tree, "--name", "a2d2", "--checksums")
    assert (first["summed"], first["generation"]) == (36, 2)
    assert ask("scan", tree, "--name", "a2d2", "--checksums")["summed"] == 0
    changed = next(tree.rglob("*.json"))
    changed.write_text("other")
    again = ask("scan", tree, "--name", "a2d2", "--checksums")
    assert (again["changed"], again["summed"]) == (1, 1)
    digest = hashlib.sha256(b"other").hexdigest()
    assert ask("find", "a2d2", f"sha256={digest}")["files"][0]["path"] == str(changed.relative_to(tree))


def test_twins_are_a_query(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2", "--checksums")
    query = "select count(*) from (select sha256 from files where ext = 'json' group by all having count(*) > 1)"
    assert ask("sql", "a2d2", query)["rows"] == [[1]]


def test_checksums_are_part_of_a_selections_digest(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    without = ask("select", "a2d2", "--name", "without")
    ask("scan", tree, "--name", "a2d2", "--checksums")
    assert ask("select", "a2d2", "--name", "with")["digest"] != without["digest"]


def test_a_file_that_is_not_what_the_scan_saw_gets_none(store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    next(tree.rglob("*.json")).write_text("other and longer")
    sorted(tree.rglob("*.png"))[0].unlink()
    assert add_checksums(store, "a2d2") == (2, 34)


def test_a_missing_package_is_named_with_the_extra_that_has_it() -> None:
    with pytest.raises(Refusal) as caught:
        need_packages(("duckdb", "no_such_package"))
    assert str(caught.value).splitlines() == [
        "`podwright data` needs packages that are not installed: no_such_package",
        "",
        "hint: pip install 'podwright[data]'",
    ]


def test_a_file_of_the_same_size_that_was_written_since_the_scan_gets_none(store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    changed = next(tree.rglob("*.json"))
    changed.write_bytes(changed.read_bytes()[::-1])
    assert add_checksums(store, "a2d2") == (2, 35)
