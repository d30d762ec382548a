"""Rules for the tests: each can fail, and few of them patch what they test."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from scripts.tree.sources import Finding, Function, Source, python_in, walk

BUILTINS = frozenset(dir(builtins))
# The ways of unittest.mock and pytest-mock to replace an attribute; `patch.dict` sets variables, like `setenv`.
PATCHES = {"patch", "patch.object", "patch.multiple"}
MOCKS = {"mock.", "unittest.mock.", "mocker."}


def tests_without_asserts(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find tests that cannot fail: they assert nothing, expect no error and call nothing of ours that might."""
    for source in python_in(sources, "tests"):
        for function in source.functions:
            if function.name.startswith("test") and not any(_may_fail(node) for node in walk(function)):
                yield source.finding(function.lineno, f"{function.name} asserts nothing")


def _may_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id not in BUILTINS
    if isinstance(node, ast.keyword):
        return node.arg == "check"
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Attribute) and node.attr in ("raises", "fail"))


def patches(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find the calls in tests that replace an attribute: setattr in any form, unittest.mock's patch."""
    for source in python_in(sources, "tests"):
        imports_patch = any(_imports_patch(node) for node in source.nodes(ast.ImportFrom))
        for call in source.nodes(ast.Call):
            if is_patch(call.func, imports_patch):
                yield source.finding(call.lineno)


def _imports_patch(node: ast.ImportFrom) -> bool:
    return node.module in ("mock", "unittest.mock") and any(alias.name == "patch" for alias in node.names)


def is_patch(called: ast.expr, imports_patch: bool) -> bool:
    """Tell whether a called expression replaces an attribute; a bare `patch` is one only where mock's is imported."""
    if isinstance(called, ast.Attribute) and called.attr == "setattr":
        return True
    name = _dotted(called)
    if name == "setattr" or (imports_patch and name in PATCHES):
        return True
    return any(name.startswith(mock) and name.removeprefix(mock) in PATCHES for mock in MOCKS)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def tests_of(source: Source) -> list[Function]:
    """List the test functions that pytest collects from a file; a parametrised one counts once."""
    if not source.path.name.startswith("test_"):
        return []
    return [function for function in source.functions if function.name.startswith("test")]


def per_100_tests(sources: Sequence[Source], findings: Sequence[Finding]) -> float:
    """Count findings per 100 test functions."""
    tests = sum(len(tests_of(source)) for source in python_in(sources, "tests"))
    return 100 * len(findings) / max(tests, 1)
