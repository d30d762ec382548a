"""Case folders: a pod, and the whole text of what comes of it, files or a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import theme
from podwright.cli.main import main
from tests.paths import CASES

FOLDER = CASES / "design"
CASES = sorted(path.name for path in FOLDER.iterdir() if (path / "pod.yaml").is_file())
GOOD = ("small",)
TOKENS = theme.asset("tokens.css")
Golden = Callable[[Path, str], None]


def without_colours(text: str) -> str:
    """Leaves the design tokens out, which belong to all pages and not to these."""
    text = text.replace(TOKENS, "/* tokens */\n")
    return re.sub(r"(?<=<style>\n)text \{.*?(?=</style>)", "/* colours */\n", text, flags=re.S)


@pytest.mark.parametrize("name", [name for name in CASES if name not in GOOD])
def test_a_bad_pod_is_refused_with_what_would_work(
    name: str, golden: Golden, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER / name)
    assert main(["design", "pod.yaml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    golden(FOLDER / name / "expected" / "refusal.txt", captured.err)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_pod_becomes_files(
    name: str, golden: Golden, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(FOLDER / name)
    assert main(["design", "pod.yaml", "--out", str(tmp_path)]) == 0
    # The workbook is no text: test_workbook.py reads it.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".xlsx"]
    made = {str(path.relative_to(tmp_path)): path.read_text() for path in files}
    expected = FOLDER / name / "expected"
    golden(expected / "printed.txt", capsys.readouterr().out)
    for path, text in made.items():
        golden(expected / path, without_colours(text))
    there = {str(path.relative_to(expected)) for path in expected.rglob("*") if path.is_file()}
    assert there == {*made, "printed.txt"}
