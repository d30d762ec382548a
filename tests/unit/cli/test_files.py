"""Places that a user names for files, and that cannot take them: words, never a fault of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.runs import Home
from tests.unit.runs.made import asked

FILES = {"workload.yaml": "name: w\ncommand: echo hi\n", "pod.yaml": "name: p\nnodes: [{hosts: n1, model: dgx-a100}]\n"}
COMMANDS = ("render workload.yaml --out", "design pod.yaml --out", "pull w-7f3k --to")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    Home.open(tmp_path / "home").create(asked("w-7f3k"), {"job/order.json": b"{}\n"}, {})
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_the_place_of_a_folder_stays(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("mine")
    assert main([*command.split(), "taken"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("taken")
    assert "cannot be written: " in said
    assert said.endswith("hint: name another place\n")
    assert Path("taken").read_text() == "mine"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_is_not_there_is_made(command: str) -> None:
    assert main([*command.split(), "new/place"]) == 0
    assert Path("new/place").is_dir()
