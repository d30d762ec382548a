"""A release is made in a copy of the tree, or refused with words and nothing changed."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from scripts.mutants import Copy
from scripts.release import main

NEXT = "99.0.0"


def git(root: Path, *words: str) -> str:
    names = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *names, *words], cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, something to tell of, and an identity that commits are made by."""
    folder = tmp_path / "tree"
    folder.mkdir()
    Copy(folder)
    head, _, changes = (folder / "CHANGELOG.md").read_text().partition("## [Unreleased]\n")
    released = changes[changes.index("\n## [") :]
    (folder / "CHANGELOG.md").write_text(f"{head}## [Unreleased]\n\n- Something.\n{released}")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "n")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "e@example.org")
    return folder


def test_a_release_is_built_checked_committed_and_tagged(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tree, NEXT) == 0, capsys.readouterr().err
    assert git(tree, "tag").split() == [f"v{NEXT}"]
    assert git(tree, "log", "-1", "--format=%s").strip() == f"Release {NEXT}"
    assert git(tree, "status", "--porcelain") == ""
    assert sorted(path.name for path in (tree / "dist").iterdir()) == [
        f"podwright-{NEXT}-py3-none-any.whl",
        f"podwright-{NEXT}.tar.gz",
    ]
    changelog = (tree / "CHANGELOG.md").read_text()
    unreleased, _, section = changelog.partition(f"\n## [{NEXT}] - ")
    assert unreleased.endswith("## [Unreleased]\n")
    assert section.partition("\n## [")[0].endswith("\n\n- Something.\n")
    with tarfile.open(tree / "dist" / f"podwright-{NEXT}.tar.gz") as sdist:
        assert f"podwright-{NEXT}/CHANGELOG.md" in sdist.getnames()
    assert "Nothing was published" in capsys.readouterr().out
    assert main(tree, NEXT) == 2
    assert "there is a tag v99.0.0 already" in capsys.readouterr().err


def test_what_is_not_ready_is_refused_and_left_as_it_is(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(version: str) -> str:
        before = git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")
        assert main(tree, version) == 2
        assert (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")) == before
        return capsys.readouterr().err.strip()

    assert refused("next") == 'no release: "next" is no version like 0.3.0: make release VERSION=0.3.0'
    (tree / "README.md").write_text("other\n")
    assert refused(NEXT) == "no release: 1 files are not committed, the first: README.md"
    git(tree, "checkout", "--quiet", "README.md")
    git(tree, "tag", "v100.0.0")
    assert refused(NEXT) == "no release: 99.0.0 is not newer than 100.0.0"
    git(tree, "tag", "--delete", "v100.0.0")
    changelog = tree / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("- Something.\n", "", 1).split("## [0.2.0]")[0])
    git(tree, "commit", "--quiet", "--all", "--message", "empty")
    assert refused(NEXT) == "no release: CHANGELOG.md has nothing under [Unreleased]: say what changed for users"
    git(tree, "revert", "--no-edit", "HEAD")
    (tree / "hatch_build.py").write_text("broken(\n")
    git(tree, "commit", "--quiet", "--all", "--message", "broken")
    assert "hatchling build` failed: " in refused(NEXT)
