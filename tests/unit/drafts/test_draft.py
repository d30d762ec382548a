"""What `init` writes for scripts that are unlike each other: whole files, which the workload's own reader takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright import spec
from podwright.drafts.draft import ScriptFacts, guess, name_of
from podwright.drafts.script import ScriptContents, look
from tests.paths import CASES

FOLDER = CASES / "init"
CASES = {path.name: sorted(path.glob("folder/*.py")) for path in sorted(FOLDER.iterdir())}
SCRIPTS = {"plain": "fit_line.py", "ddp": "train.py", "biggan": "train.py", "mpi": "all_reduce.py", "cuda": "main.py"}
SCRIPTS |= {"lightning": "train.py", "cpu": "train.py"}

ARGV = {
    "cpu": ("python3", "train.py", "--device=cpu", "--compile=False"),
    "plain": ("python3", "fit_line.py", "--save-dir", "{checkpoint}", "--data_dir", "{data.data_dir}"),
    "ddp": ("python3", "train.py"),
    "biggan": ("python3", "train.py", "--model", "small", "--weights_root", "{checkpoint}"),
    "mpi": ("python3", "all_reduce.py", "7", "a b"),
    "cuda": ("python3", "main.py"),
    "lightning": ("python3", "train.py", "--output_dir", "{checkpoint}"),
}


def seen_in(name: str) -> ScriptContents:
    script = SCRIPTS[name]
    beside = {path.stem: path.read_text() for path in CASES[name] if path.name != script}
    return look((FOLDER / name / "folder" / script).read_text(), beside)


def facts_of(name: str, seen: ScriptContents) -> ScriptFacts:
    folder, given = FOLDER / name / "folder", FOLDER / name / "facts.json"
    named = [option.default for option in seen.options if isinstance(option.default, str)]
    known = json.loads(given.read_text()) if given.is_file() else {}
    return ScriptFacts(
        script=SCRIPTS[name],
        folder=name,
        base="python:3.11-slim",
        requirements="requirements.txt" if (folder / "requirements.txt").is_file() else None,
        there=frozenset(path for path in named if (folder / path).exists()),
        gpus=known.get("gpus", 0),
        arguments=tuple(known.get("arguments", ())),
    )


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None]) -> None:
    seen = seen_in(name)
    found = guess(seen, facts_of(name, seen))
    golden(FOLDER / name / "expected.yaml", found.text)
    golden(FOLDER / name / "notes.txt", "".join(f"{line}\n" for line in (*found.notes, f"missing {found.missing}")))


@pytest.mark.parametrize("name", CASES)
def test_every_guess_is_a_workload(name: str, tmp_path: Path) -> None:
    seen = seen_in(name)
    for path in (FOLDER / name / "folder").iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "workload.yaml").write_text(guess(seen, facts_of(name, seen)).text)
    workload = spec.load_workload(tmp_path / "workload.yaml")
    assert workload.argv == ARGV[name]
    assert workload.runtime == "bare"
    assert workload.build is not None


def test_an_import_that_may_fail_is_not_needed() -> None:
    assert "tensorboard" not in seen_in("ddp").packages
    assert seen_in("biggan").packages == {"numpy", "yaml"}


def test_a_relative_import_is_beside_the_script() -> None:
    seen = look(
        "from .model import Net\nfrom . import other\nimport model.deep", {"model": "import numpy", "other": ""}
    )
    assert seen.packages == {"numpy"}


def test_what_is_no_python_is_told_by_its_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        look("import os\nprint 'hello'\n", {})
    assert caught.value.lineno == 2


@pytest.mark.parametrize(
    ("script", "folder", "name"),
    [
        ("train.py", "BigGAN-PyTorch", "biggan-pytorch"),
        ("train.py", "123", "train"),
        ("3d_unet.py", "x", "d-unet"),
        ("sub/Fit_Line.py", "x", "fit-line"),
        ("__.py", "x", "workload"),
        ("a" * 60 + ".py", "x", "a" * 40),
    ],
)
def test_the_name_is_one(script: str, folder: str, name: str) -> None:
    assert name_of(script, folder) == name


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_arguments_come_back_as_they_were_given(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """Whatever a user types after `--` is what the script gets."""
    if any(set(word) & set("{}\u2028\u2029\x85") for word in words):
        return
    folder = tmp_path_factory.mktemp("words")
    text = guess(ScriptContents(), ScriptFacts("a.py", "x", "base", arguments=tuple(words))).text
    (folder / "workload.yaml").write_text(text, encoding="utf-8")
    assert spec.load_workload(folder / "workload.yaml").argv == ("python3", "a.py", *words)
