"""Every dependency has its reason written down, and only those there are."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
OURS = "## Written by ourselves, and what it was weighed against"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SECTIONS = {"Always": PROJECT["dependencies"]} | {
    f"`podwright[{extra}]`": packages for extra, packages in PROJECT["optional-dependencies"].items()
}


def reasons() -> dict[str, dict[str, str]]:
    """Reads the page: section -> package -> reason."""
    parts = re.split(r"^## (.+)$", PAGE.partition(OURS)[0], flags=re.M)[1:]
    row = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.M)
    return {title: dict(row.findall(body)) for title, body in zip(parts[::2], parts[1::2], strict=True)}


def test_the_sections_are_the_extras() -> None:
    assert list(reasons()) == list(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_package_has_one_reason(section: str) -> None:
    names = [re.split(r"[<>=!~;\[ ]", package)[0] for package in SECTIONS[section]]
    assert list(reasons()[section]) == names


@pytest.mark.parametrize(
    "name", ["lock", "bootstrap", "strangers", "strangers-nightly", "trackers-nightly", "clickhouse-nightly"]
)
def test_every_package_is_pinned_by_hash_and_no_place_is_named(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_what_is_written_by_ourselves_is_there_and_was_weighed() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \| (.+) \|$", PAGE.partition(OURS)[2], re.M)[2:]
    assert len(rows) > 10
    for name, where, instead, reason in rows:
        (first, *_) = re.findall(r"`([^`]+)`", where)
        assert any((root / first).exists() for root in (ROOT, ROOT / "src" / "podwright")), f"{name}: {first}"
        assert instead
        assert len(reason.split()) > 5, name
