"""Every command that README and docs show is run, and prints what they show."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs.console import NEEDS, Page, mismatch, read_page
from tests.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def environment(home: Path) -> dict[str, str]:
    """A user's shell after `source .venv/bin/activate`, with a home of its own."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PODWRIGHT_", "PYTEST_", "MAKE", "MFLAGS"))
    }
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return kept | {"PODWRIGHT_HOME": str(home), "PATH": path, "NO_COLOR": "1", "COLUMNS": "80"}


def run_page(page: Page, folder: Path, home: Path) -> None:
    """Runs a page's commands in their order, one shell each, and fails at the first that does not do as shown."""
    for name, text in page.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for step in page.steps:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.command],
            cwd=ROOT if page.in_repository else folder,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        where = f"{page.path.relative_to(ROOT)}:{step.line}: {step.command}\n{done.stdout}"
        assert done.returncode == step.exit_code, where
        if step.output:
            assert mismatch(step.output, done.stdout.splitlines()) is None, where


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_does_what_it_shows(path: Path, tmp_path: Path) -> None:
    page = read_page(path)
    assert not (page.files and page.in_repository), "a page that makes files does so in a folder of its own"
    if page.in_repository:
        # The page shows what is printed once set-up is done; a lock that changed meanwhile would print more.
        subprocess.run(["make", "-s", "ready"], cwd=ROOT, env=environment(tmp_path), check=True)
    folder = tmp_path / "work"
    folder.mkdir()
    run_page(page, folder, tmp_path / "home")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_needs_is_a_known_need(path: Path) -> None:
    assert set(read_page(path).needs) <= NEEDS
