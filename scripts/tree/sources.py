"""The files that the rules read, each parsed and walked once, and what a rule has to say of one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TypeVar, cast

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Finding:
    """A place that breaks a rule; places with the same `subject` (a class name, a cycle) count as one."""

    path: PurePosixPath
    line: int
    text: str
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Source:
    """A file of the tree; `text` is empty where a file is binary or too large to be read by rules."""

    path: PurePosixPath
    text: str
    size_bytes: int = 0

    @cached_property
    def lines(self) -> list[str]:
        """Return the physical lines without their ends."""
        return self.text.splitlines()

    @cached_property
    def code_lines(self) -> int:
        """Count the lines of code: physical lines that are not blank, comments and docstrings among them."""
        return sum(1 for line in self.lines if line.strip())

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree of a Python file."""
        return ast.parse(self.text, str(self.path))

    @cached_property
    def _nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        # One walk for all rules: they ask for the few kinds of node they know, and walking costs more than parsing.
        nodes: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in walk(self.tree):
            nodes[type(node)].append(node)
        return nodes

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of exactly this type, in no order."""
        return cast("list[Node]", self._nodes.get(kind, []))

    @cached_property
    def functions(self) -> list[Function]:
        """Return all functions: methods, nested and asynchronous ones too."""
        return [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]

    def finding(self, line: int, text: str = "", subject: str = "") -> Finding:
        """Make a finding at a line; without words of its own it quotes the line."""
        return Finding(self.path, line, text or self.lines[line - 1].strip(), subject)


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all beneath it but the contexts (Load, Store), which are three of ten nodes."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def children(node: ast.AST) -> list[ast.AST]:
    """List the nodes directly beneath this one."""
    beneath: list[ast.AST] = []
    # A node's own dictionary is quicker than its fields by name, and this runs for every node of the tree.
    for value in node.__dict__.values():
        if type(value) is list:
            beneath += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            beneath.append(value)
    return beneath


def python_in(sources: Sequence[Source], *folders: str) -> Iterator[Source]:
    """Yield the Python files whose first folder is one of these."""
    for source in sources:
        if source.path.suffix == ".py" and source.path.parts[0] in folders:
            yield source


def is_below(path: PurePosixPath, folders: Sequence[PurePosixPath]) -> bool:
    """Tell whether a file is one of these or lies in one of them."""
    return any(path.is_relative_to(folder) for folder in folders)


def length_of(function: Function) -> int:
    """Count the lines of a function from its `def` on, without its decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def docstring_of(node: Function | ast.ClassDef | ast.Module) -> ast.Expr | None:
    """Return the statement that is a node's docstring."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first
    return None
