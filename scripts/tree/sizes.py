"""How long files and functions are, and how much of it is prose."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from scripts.tree.sources import Finding, Source, length_of, python_in

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
MAX_CLASS_LINES = 250
MAX_PILOT_BYTES = 150_000
LONG_FILES = {
    "src/podwright/pilot/life/leader.py": "one state machine, as its class says below",
    "src/podwright/runs/events.py": "every kind of event, a class each: parts of a table are harder to compare",
    "src/podwright/pilot/protocol.py": "all that others may import of the pilot's record; its readers are a part of it",
}
"""Files that may be longer, each with the reason why no part of it would stand better alone."""
LONG_CLASSES: dict[str, str] = {
    "src/podwright/data/front_door.py:Catalog": "a front door: a method, mostly of a line, for each thing one may ask",
    "src/podwright/pilot/life/leader.py:Leader": "one state machine: gathering, judging and ending share every field",
    "src/podwright/pilot/life/node.py:Node": "the life of a node, in its order, over what it has",
}
"""Classes that may be longer, each with the reason why no noun hides in them."""
SIZED = ("src", "scripts", "programs", "benchmarks")
COUNTED = ("src", "scripts", "programs")
MANIFESTS = (".yaml", ".yml", ".json")
FIRST_COMMIT, CODE_LINES_BEFORE = "775c405f7", 63_053
"""The commit that code lines are held against, and how many it has."""


def long_files(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find files too long to be read in one go; tests are tables and may be longer."""
    for source in python_in(sources, *SIZED):
        if len(source.lines) > MAX_FILE_LINES and str(source.path) not in LONG_FILES:
            yield source.finding(1, f"{len(source.lines)} lines, at most {MAX_FILE_LINES}: a noun is hiding in it")


def long_functions(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find functions too long to be read in one go; tests are tables and may be longer."""
    for source in python_in(sources, *SIZED):
        for function in source.functions:
            length = length_of(function)
            if length > MAX_FUNCTION_LINES:
                yield source.finding(
                    function.lineno, f"{function.name} has {length} lines, at most {MAX_FUNCTION_LINES}"
                )


def long_classes(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find classes too long to be one noun."""
    for source in python_in(sources, *SIZED):
        for node in source.nodes(ast.ClassDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_CLASS_LINES and f"{source.path}:{node.name}" not in LONG_CLASSES:
                yield source.finding(node.lineno, f"{node.name} has {length} lines, at most {MAX_CLASS_LINES}")


def code_lines(sources: Sequence[Source]) -> int:
    """Count what programs are made of, wherever it lies: no blank lines, no comments, no docstrings; manifests too."""
    total = 0
    for source in sources:
        if source.path.parts[0] not in COUNTED:
            continue
        if source.path.suffix == ".py":
            total += source.code_lines - comment_lines(source) - docstring_lines(source, blank=False)
        elif source.path.suffix in MANIFESTS:
            total += sum(1 for line in source.lines if line.strip() and not line.lstrip().startswith("#"))
    return total


def code_lines_shown(sources: Sequence[Source]) -> str:
    """Say in a line how much code there is, against the first commit of the work that is to make it less."""
    now = code_lines(sources)
    return f"code lines of {', '.join(COUNTED)}: {now}, {now - CODE_LINES_BEFORE:+d} against {FIRST_COMMIT}"


def comment_lines(source: Source) -> int:
    """Count the lines that hold a comment and nothing else."""
    in_strings: set[int] = set()
    for kind in (ast.Constant, ast.JoinedStr):
        for node in source.nodes(kind):
            if node.end_lineno is not None and node.end_lineno > node.lineno:
                in_strings.update(range(node.lineno, node.end_lineno + 1))
    numbered = enumerate(source.lines, 1)
    return sum(1 for number, line in numbered if line.lstrip().startswith("#") and number not in in_strings)


def docstring_lines(source: Source, blank: bool = True) -> int:
    """Count the lines of docstrings, those beneath fields and constants too; `blank` lines among them or not."""
    total = 0
    for node in source.nodes(ast.Expr):
        if _is_text(node.value):
            lines = source.lines[node.lineno - 1 : node.end_lineno]
            total += sum(1 for line in lines if blank or line.strip())
    return total


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def percentile(values: Sequence[int], share: float) -> int:
    """Return the smallest value that at least this share of the values does not exceed; 0 where there are none."""
    if not values:
        return 0
    ordered = sorted(values)
    # Rounded before it is rounded up: 0.9 * 10 is a little more than 9 in binary.
    rank = -int(-round(share * len(ordered), 6) // 1)
    return ordered[max(rank, 1) - 1]
