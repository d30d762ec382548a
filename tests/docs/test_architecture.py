"""docs/architecture.md is true: its floors are those that import-linter holds, its folders those of the tree."""

from __future__ import annotations

import re
import tomllib

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SRC = ROOT / "src" / "podwright"
BELOW_ALL = "pilot.protocol"


def block_with(text: str) -> str:
    """Return the code block of the page that has this in it."""
    (block,) = [block for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S) if text in block]
    return str(block)


def drawn_floors() -> list[set[str]]:
    """Return the floors of the drawing, each a set of packages: what stands left of its explanation."""
    floors = []
    for line in block_with(BELOW_ALL).splitlines():
        names = set(re.findall(r"[a-z.]+", re.split(r" {6,}(?=\S+ \S| *\S+/)", line.strip())[0]))
        if names and BELOW_ALL not in names:
            floors.append(names)
    return floors


def held_floors() -> list[set[str]]:
    """Return the layers that import-linter holds, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [row["layers"] for row in project["tool"]["importlinter"]["contracts"] if row["type"] == "layers"]
    return [{name.strip().removeprefix("podwright.") for name in layer.split("|")} for layer in layers]


def test_the_floors_are_those_that_are_held() -> None:
    assert drawn_floors() == held_floors()


def test_every_package_stands_on_a_floor() -> None:
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert packages - {"pilot"} == set().union(*held_floors())


def test_the_folders_are_those_of_the_tree() -> None:
    listed = re.findall(r"^  (\w+)/ ", block_with("src/podwright/\n"), re.M)
    there = sorted(path.parent.name for path in SRC.glob("*/__init__.py"))
    assert sorted(listed) == there


def test_the_rooms_of_a_folder_are_there() -> None:
    """Words such as `plan/` within the explanation of a folder are folders in it, and no room of it is left out."""
    entries = re.split(r"^  (\w+)/ ", block_with("src/podwright/\n"), flags=re.M)[1:]
    for folder, text in zip(entries[::2], entries[1::2], strict=True):
        own = text.partition("\nprograms/")[0]
        rooms = set(re.findall(r"\b(\w+)/", own))
        there = {path.parent.name for path in (SRC / folder).glob("*/__init__.py")}
        assert rooms - there == set(), folder
        assert not rooms or there - rooms <= {"exports"}, f"{folder}: {there - rooms}"


def test_every_file_that_is_named_is_there() -> None:
    there = {f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("*/**/*.py")}
    named = set(re.findall(r"`?\b((?:[a-z_]+/)*[a-z_]+\.py)\b", PAGE))
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)] == []
