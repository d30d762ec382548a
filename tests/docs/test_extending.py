"""The worked recipes of docs/extending.md, followed word by word in a copy of the tree: what they make works."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.mutants import Copy
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(New file|In) `([^`]+)`(?:, under the line `([^`\n]+)`)?:\n\n```(?:python|text)\n((?:.*\n)*?)```", re.M
)
MAX_LINES = 60


@dataclass(frozen=True)
class Edit:
    """A code block: a new file, or lines under a line of one that is there."""

    path: str
    under: str
    text: str

    def apply(self, root: Path) -> None:
        path = root / self.path
        if not self.under:
            assert not path.exists(), f"{self.path} is there already"
            path.write_text(self.text)
            return
        before = path.read_text()
        assert before.count(f"{self.under}\n") == 1, f"{self.path} has this line not just once: {self.under}"
        path.write_text(before.replace(f"{self.under}\n", f"{self.under}\n{self.text}"))


def recipe(title: str) -> list[Edit]:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [Edit(path, under, text) for _, path, under, text in BLOCK.findall(section)]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("tree"))


@pytest.mark.parametrize("title", ["A bring-up stage", "A metric"])
def test_a_recipe_followed_word_by_word(title: str, copy: Copy) -> None:
    edits = recipe(title)
    tests = [edit.path for edit in edits if edit.path.startswith("tests/")]
    assert tests
    assert sum(len(edit.text.splitlines()) for edit in edits) <= MAX_LINES
    for edit in edits:
        edit.apply(copy.folder)
    changed = [edit.path for edit in edits]
    for verb in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *verb, *changed]
        done = subprocess.run(ruff, cwd=copy.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert copy.passes(tests)


def test_every_file_and_name_of_the_other_recipes_is_there() -> None:
    """A name in backticks that looks like a path of the tree is one, whichever folder the sentence is about."""
    prose = BLOCK.sub("", PAGE)
    for name in re.findall(r"`([\w/-]+/[\w./-]+)`", prose):
        if "NAME" in name or "NOUN" in name:
            name = name.partition("/NAME")[0].partition("/NOUN")[0]
        assert [root for root in ("", "src/podwright") if (ROOT / root / name).exists()], name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("engines/__init__.py", "ENGINES"),
        ("engines/__init__.py", "SCHEDULERS"),
        ("design/exports/files.py", "def design_files"),
        ("data/tree/layouts.py", "def layouts"),
        ("data/policies/actions.py", "ACTIONS = "),
        ("bringup/apply/vault.py", "_MAKERS"),
        ("cli/table.py", "_ROWS"),
    ],
)
def test_every_table_is_where_the_page_says(path: str, name: str) -> None:
    assert name in (ROOT / "src" / "podwright" / path).read_text(encoding="utf-8")
    assert f"`{name.removeprefix('def ').removesuffix(' = ')}" in PAGE
