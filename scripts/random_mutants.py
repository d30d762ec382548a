"""Draws changes of source lines at random: comparisons turned, constants moved, conditions negated, calls dropped."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TURNED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
}  # fmt: skip
NOT_RUN = ("TYPE_CHECKING", "__name__")


class Drawn(NamedTuple):
    """A file of src with one change, and the tests that ought to notice it."""

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]


def draw(root: Path, count: int, seed: int) -> list[Drawn]:
    """Return so many changes of src, the same for the same tree and seed."""
    chance = random.Random(seed)
    paths = sorted(path for path in (root / "src").rglob("*.py") if path.name != "__init__.py")
    tests = {path: path.read_text() for path in sorted((root / "tests" / "unit").rglob("test_*.py"))}
    drawn: list[Drawn] = []
    while len(drawn) < count:
        path = chance.choice(paths)
        source = path.read_text()
        changes = list(changes_of(source))
        if not changes:
            continue
        number, what, after = chance.choice(changes)
        name = path.relative_to(root).as_posix()
        drawn.append(Drawn(f"{name}:{number}: {what}", name, source, after, tests_for(root, path, tests)))
    return drawn


def tests_for(root: Path, path: Path, tests: dict[Path, str]) -> tuple[str, ...]:
    """Return the unit tests that import a module, or else all those of its band."""
    parts = path.relative_to(root / "src").with_suffix("").parts
    package, module = ".".join(parts[:-1]), parts[-1]
    imports = (f"{package}.{module} import", f"import {package}.{module}", f"from {package} import {module}")
    named = [test for test, text in tests.items() if any(line in text for line in imports)]
    folder = root / "tests" / "unit" / parts[1]
    if not named:
        named = [folder if folder.is_dir() else root / "tests" / "unit" / "cli"]
    return tuple(test.relative_to(root).as_posix() for test in named)


def changes_of(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield every change of a module: its line, what it is, and the module's text with it."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()
    for node in _run_nodes(tree):
        for what, old, new in _of_node(node):
            first, last = starts[old.lineno - 1] + old.col_offset, starts[(old.end_lineno or 1) - 1] + _end(old)
            yield old.lineno, what, (data[:first] + new.encode() + data[last:]).decode()


def _end(node: ast.expr | ast.stmt) -> int:
    return node.end_col_offset or 0


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes that are run: no annotations, no format of a string, nothing that only a type checker reads."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "format_spec"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr | ast.match_case):
                continue
            if isinstance(node, ast.If) and any(word in ast.unparse(node.test) for word in NOT_RUN):
                continue
            yield node
            yield from _run_nodes(node)


def _of_node(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(left, [operator], [right]):
            turned = ast.unparse(ast.Compare(left, [TURNED[type(operator)]], [right]))
            yield f"{ast.unparse(node)} turned", node, f"({turned})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield f"{ast.unparse(test)} negated", test, f"(not ({ast.unparse(test)}))"
        case ast.Constant(value=bool(value)):
            yield f"{value} turned", node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} moved by one", node, f"({value} + 1)"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield f"{ast.unparse(node)} dropped", node, "pass"
