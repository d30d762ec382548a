"""Holds the tree to its rules that no other tool checks: words, sizes, where data comes from, what the CLI imports.

Each check takes a file's path and text and yields problems; `git ls-files` says which files there are.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from podwright.engines.payload import pilot_zip

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_BYTES = 1_000_000
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_PILOT_BYTES = 150_000

# Written in two halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
VAGUE = re.compile(r"\bfor" + r" now\b|\bin a real (?:system|implementation)\b", re.IGNORECASE)
# A committed file that names a package index or an image registry works only where that one is reachable.
REGISTRIES = re.compile(
    r"\b(pypi\."
    + r"org|pythonhosted\."
    + r"org|registry\.npmjs\."
    + r"org|docker\."
    + r"io|quay\."
    + r"io|nvcr\."
    + r"io|"
    r"ghcr\." + r"io|download\.pytorch\." + r"org)\b"
)
VAGUE_NAMES = {"utils", "helpers", "common", "manager"}
CLI_LIBRARIES = {"typer", "click"}

Problem = tuple[int, str]


def check_words(path: PurePosixPath, text: str) -> Iterator[Problem]:
    """Finds what was left unfinished and names of package registries."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := UNFINISHED.search(line) or VAGUE.search(line):
            yield number, f"`{found[0]}`: finish it or leave it out"
        if found := REGISTRIES.search(line):
            yield number, f"`{found[0]}`: the machine's own settings say where packages come from"
    if path.stem in VAGUE_NAMES:
        yield 1, f"`{path.stem}` says nothing: name the noun"


def check_sizes(path: PurePosixPath, text: str) -> Iterator[Problem]:
    """Finds files and functions too long to be read in one go; tests are tables and may be longer."""
    if path.parts[0] == "tests":
        return
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield 1, f"{lines} lines, at most {MAX_FILE_LINES}: a noun is hiding in it"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {length} lines, at most {MAX_FUNCTION_LINES}"


def check_cli_imports(path: PurePosixPath, text: str) -> Iterator[Problem]:
    """Holds the CLI's first imports to typer and the standard library, on which the time of `--help` depends."""
    if path.parts[:3] != ("src", "podwright", "cli"):
        return
    for node in ast.parse(text).body:
        for name in _imported(node):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names or top in CLI_LIBRARIES or name.startswith("podwright.cli"):
                continue
            yield node.lineno, f"imports {name} at the top: import it in the function that needs it"


def _imported(node: ast.stmt) -> list[str]:
    """Names the modules a statement imports; inside the package a relative import stays in the CLI."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        module = node.module or ""
        return [f"{module}.{alias.name}" for alias in node.names] if module == "podwright" else [module]
    return []


def check_asserts(path: PurePosixPath, text: str) -> Iterator[Problem]:
    """Finds tests that cannot fail: they assert nothing, expect no error and call nothing of ours that might."""
    if path.parts[0] != "tests":
        return
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in functions:
        if node.name.startswith("test") and not any(_may_fail(inner) for inner in ast.walk(node)):
            yield node.lineno, f"{node.name} asserts nothing"


def _may_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id not in dir(builtins)
    if isinstance(node, ast.keyword):
        return node.arg == "check"
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Attribute) and node.attr in ("raises", "fail"))


def check_pilot_size() -> Iterator[str]:
    """Weighs the pilot's zip, which travels to every node of every run."""
    size = len(pilot_zip())
    if size > MAX_PILOT_BYTES:
        yield f"src/podwright/pilot: its zip has {size} bytes, at most {MAX_PILOT_BYTES}"


def tracked_files() -> list[PurePosixPath]:
    """Lists what git tracks or would add, less what was deleted and not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [PurePosixPath(name) for name in names if (ROOT / name).is_file()]


def check_file(path: PurePosixPath) -> Iterator[str]:
    """Runs every check that fits one file."""
    size = (ROOT / path).stat().st_size
    if size > MAX_FILE_BYTES:
        yield f"{path}: {size} bytes, at most {MAX_FILE_BYTES}"
        return
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    checks = [check_words]
    if path.suffix == ".py":
        checks += [check_sizes, check_cli_imports, check_asserts]
    for check in checks:
        yield from (f"{path}:{line}: {message}" for line, message in check(path, text))


def main() -> int:
    """Prints every problem and gives 1 when there is one."""
    problems = [problem for path in tracked_files() for problem in check_file(path)]
    problems += check_pilot_size()
    for problem in problems:
        print(problem)
    print(f"tree: {len(problems)} problems" if problems else "tree: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
