"""What is imported when: the reason why `podwright --help` is quick."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import podwright.cli
from scripts.tree import doors

HEAVY = (
    *("typer", "rich", "pydantic", "yaml"),
    *("podwright.launch.session", "podwright.runs.store", "podwright.runs.record", "podwright.report.write"),
)
BENEATH_ALL = {"podwright.pilot", "podwright.spec", "podwright.spec.late"}
PROBE = "import sys; from podwright.cli.main import main; main({args!r}); print(*sorted(sys.modules), file=sys.stderr)"


def imported_by(*args: str, home: Path | None = None) -> set[str]:
    code = PROBE.format(args=list(args))
    env = os.environ | ({"PODWRIGHT_HOME": str(home)} if home else {})
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return set(ended.stderr.split())


def test_overview_and_version_import_nothing_heavy() -> None:
    for args in (["--help"], ["--version"]):
        assert imported_by(*args).isdisjoint(HEAVY)


def test_help_of_a_command_imports_only_the_command_line_library() -> None:
    assert imported_by("run", "--help").intersection(HEAVY) == {"typer"}


def test_top_of_each_file_imports_only_the_standard_library_typer_and_what_is_quick() -> None:
    allowed = {*sys.stdlib_module_names, "typer", "podwright.__version__", *doors.QUICK} - {"podwright"}
    found = {
        f"{path.name}: {name}"
        for path in Path(podwright.cli.__file__).parent.glob("*.py")
        for node in ast.parse(path.read_text()).body
        for name in _names(node)
        if not {name, name.split(".")[0]} & allowed and not name.startswith("podwright.cli")
    }
    assert found == set()


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.module == "podwright":
        return [f"podwright.{alias.name}" for alias in node.names]
    return [node.module or ""]


def loaded_by(*modules: str) -> set[str]:
    """What an interpreter has that imported these modules, beyond what it had before."""
    code = f"import sys; before = set(sys.modules); import {', '.join(modules)}"
    code += "; print(*(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


@pytest.mark.parametrize("door", sorted({*doors.DOORS, "podwright.runs", "podwright.spec"}))
def test_a_door_loads_nothing_that_is_behind_it(door: str) -> None:
    assert {name for name in loaded_by(door) if name.startswith("podwright.")} <= {door, *BENEATH_ALL}


@pytest.mark.parametrize("door", sorted({*doors.DOORS, "podwright.runs", "podwright.spec"}))
def test_a_door_gives_all_that_it_names(door: str) -> None:
    package = importlib.import_module(door)
    names = getattr(package, "__all__", ())
    given = [getattr(package, name) for name in names]
    # A module of the same name would take the place of what it gives once it is imported.
    assert [getattr(package, name) for name in names] == given
    with pytest.raises(AttributeError):
        _ = package.no_such_name


def test_what_commands_import_at_their_top_loads_no_library() -> None:
    loaded = {name.split(".")[0] for name in loaded_by(*sorted(doors.QUICK))} - {"podwright", "_distutils_hack"}
    assert loaded <= set(sys.stdlib_module_names)
    assert loaded.isdisjoint({"sqlite3", "asyncio", "socket", "ssl", "http", "subprocess", "hashlib"})


def test_ps_reads_no_yaml_and_draws_nothing(tmp_path: Path) -> None:
    modules = imported_by("ps", home=tmp_path / "home")
    assert modules.isdisjoint({"yaml", "pydantic", "rich", "pyarrow", "podwright.report"})


def test_ps_alone_needs_no_command_line_library_and_says_what_it_says_with_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert imported_by("ps", home=home).isdisjoint({"typer", "podwright.launch.follow", "hashlib"})
    env = os.environ | {"PODWRIGHT_HOME": str(home)}
    words = ["-c", "from podwright.cli.main import main; main()", "ps"]
    alone, parsed = (
        subprocess.run([sys.executable, *words, *more], capture_output=True, text=True, check=True, env=env)
        for more in ([], ["--all"])
    )
    assert (alone.stdout, alone.stderr) == (parsed.stdout, parsed.stderr)
