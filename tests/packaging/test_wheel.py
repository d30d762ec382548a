"""The package as others get it: its metadata, its README without the files beside it, and a first run with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from scripts.release import bare_environment
from tests.paths import ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_the_metadata_says_what_it_is_and_makes_up_nobody(metadata: Message) -> None:
    assert metadata["Summary"] == "Takes a GPU pod from drawing board to trained model."
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [metadata[name] for name in ("Author", "Author-email", "Home-page", "Project-URL")] == [None] * 4
    classifiers = metadata.get_all("Classifier", [])
    assert [text for text in classifiers if text.startswith("Programming Language :: Python :: 3.")]
    readme = (ROOT / "README.md").read_text("utf-8")
    for extra in metadata.get_all("Provides-Extra", []):
        assert re.search(rf"\.\[{extra}\]|`{extra}`", readme), f"README says what the extra {extra} is for"


def test_the_readme_is_whole_without_the_files_beside_it(metadata: Message) -> None:
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(metadata.get_payload())
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "Getting started does the same with a script of your own" in page
    # An index takes HTML out, and shows the rest as text.
    assert (
        re.findall(r"<(?!!--|/?(?:h[1-6]|p|pre|code|table|t[hdr]|thead|tbody|ul|ol|li|a|img|em|strong)\b)\w+", page)
        == []
    )


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel, and with what it needs always, nothing else; nothing is fetched."""
    return bare_environment(wheel, tmp_path_factory.mktemp("bare") / "venv")


def said(bare: Path, folder: Path, *words: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "PODWRIGHT_HOME": str(folder / "home"), "HOME": str(folder)}
    done = subprocess.run(
        [str(bare / words[0]), *words[1:]], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_alone_checks_runs_and_reports_without_torch(bare: Path, tmp_path: Path) -> None:
    missing = (
        "import importlib.util as u; print([n for n in ('torch', 'numpy', 'duckdb', 'ansible') if u.find_spec(n)])"
    )
    assert said(bare, tmp_path, "python", "-c", missing) == "[]\n"
    assert "Usage: podwright COMMAND" in said(bare, tmp_path, "podwright", "--help")
    (tmp_path / "workload.yaml").write_text("name: hello\ncommand: echo loss=0.5 in step 1\n")
    said(bare, tmp_path, "podwright", "check", "workload.yaml")
    run = json.loads(said(bare, tmp_path, "podwright", "run", "workload.yaml", "--json"))
    assert (run["state"], run["results"]) == ("succeeded", {"loss": 0.5, "step": 1})
    assert (
        Path(said(bare, tmp_path, "podwright", "report", "last").split()[0]).read_text().startswith("<!doctype html>")
    )
