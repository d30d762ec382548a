"""How much a line holds: ternaries, comprehensions within comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from scripts.tree.sources import Finding, Source, children, python_in, walk

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def ternaries(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find the conditional expressions of src."""
    for source in python_in(sources, "src"):
        for node in source.nodes(ast.IfExp):
            yield source.finding(node.lineno)


def per_100_lines(sources: Sequence[Source], findings: Sequence[Finding]) -> float:
    """Count findings per 100 lines of code of src: physical lines that are not blank."""
    lines = sum(source.code_lines for source in python_in(sources, "src"))
    return 100 * len(findings) / max(lines, 1)


def dense_comprehensions(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find comprehensions of src inside another one's element, condition or iterable, and those with two `for`."""
    for source in python_in(sources, "src"):
        inner = set(_inside_another(source))
        for node in _comprehensions(source):
            if node in inner:
                yield source.finding(node.lineno, f"a comprehension in a comprehension: {_line(source, node)}")
            if len(node.generators) > 1:
                yield source.finding(node.lineno, f"a comprehension with two `for`: {_line(source, node)}")


def _comprehensions(source: Source) -> Iterator[Comprehension]:
    yield from source.nodes(ast.ListComp)
    yield from source.nodes(ast.SetComp)
    yield from source.nodes(ast.DictComp)
    yield from source.nodes(ast.GeneratorExp)


def _inside_another(source: Source) -> Iterator[ast.AST]:
    for outer in _comprehensions(source):
        for child in children(outer):
            yield from (node for node in walk(child) if isinstance(node, COMPREHENSIONS))


def _line(source: Source, node: ast.expr) -> str:
    return source.lines[node.lineno - 1].strip()
