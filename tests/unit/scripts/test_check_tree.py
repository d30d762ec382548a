"""The tree's own rules: each finds what it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from scripts import check_tree

Check = Callable[[PurePosixPath, str], Iterator[tuple[int, str]]]

CASES: list[tuple[Check, str, str, list[tuple[int, str]]]] = [
    (check_tree.check_words, "a.py", "x = 1\n", []),
    (check_tree.check_words, "a.py", "x = 1  # TO" + "DO\n", [(1, "`TO" + "DO`: finish it or leave it out")]),
    (check_tree.check_words, "a.md", "ok\nfor" + " now\n", [(2, "`for" + " now`: finish it or leave it out")]),
    (
        check_tree.check_words,
        "lock.txt",
        "pypi." + "org\n",
        [(1, "`pypi." + "org`: the machine's own settings say where packages come from")],
    ),
    (check_tree.check_words, "src/utils.py", "\n", [(1, "`utils` says nothing: name the noun")]),
    (check_tree.check_sizes, "src/a.py", "x = 1\n" * 450, []),
    (check_tree.check_sizes, "src/a.py", "x = 1\n" * 451, [(1, "451 lines, at most 450: a noun is hiding in it")]),
    (check_tree.check_sizes, "tests/a.py", "x = 1\n" * 451, []),
    (check_tree.check_sizes, "src/a.py", "def f():\n" + "    x = 1\n" * 60, [(1, "f has 61 lines, at most 60")]),
    (
        check_tree.check_cli_imports,
        "src/podwright/cli/a.py",
        "import os\nimport typer\nfrom podwright.cli import b\n",
        [],
    ),
    (
        check_tree.check_cli_imports,
        "src/podwright/cli/a.py",
        "from podwright import launch\n",
        [(1, "imports podwright.launch at the top: import it in the function that needs it")],
    ),
    (check_tree.check_cli_imports, "src/podwright/cli/a.py", "def f():\n    import rich\n", []),
    (check_tree.check_cli_imports, "src/podwright/spec/a.py", "import pydantic\n", []),
    (check_tree.check_asserts, "tests/test_a.py", "def test_x():\n    print(1)\n", [(1, "test_x asserts nothing")]),
    (check_tree.check_asserts, "tests/test_a.py", "def test_x():\n    assert f() == 1\n", []),
]


@pytest.mark.parametrize(("check", "path", "text", "problems"), CASES)
def test_a_rule_finds_what_it_is_for(check: Check, path: str, text: str, problems: list[tuple[int, str]]) -> None:
    assert list(check(PurePosixPath(path), text)) == problems
