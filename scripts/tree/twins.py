"""What is written twice: functions with the same body under whatever names, and classes with the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from scripts.tree.imports import base_of, module_name
from scripts.tree.sources import Finding, Function, Source, docstring_of, python_in, walk

# Below both, bodies are equal by chance: a call handed on, a field returned. Contexts (Load, Store) are no nodes here.
MIN_STATEMENTS = 4
MIN_NODES = 10
# What does not change what a body does: annotations and the contexts of names.
SILENT_FIELDS = {"annotation", "returns", "type_comment", "ctx", "kind", "type_params"}
# Nodes that bind the name they carry.
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)

Place = tuple[Source, Function]


def twin_functions(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find functions of src whose bodies are equal but for the names of arguments and locals."""
    places: dict[str, list[Place]] = defaultdict(list)
    for source in python_in(sources, "src"):
        imported = imported_names(source)
        for function in filter(is_worth_comparing, source.functions):
            places[normal_body(function, imported)].append((source, function))
    for twins in places.values():
        if len(twins) > 1:
            yield from _twin_findings(sorted(twins, key=_where))


def _where(place: Place) -> str:
    source, function = place
    return f"{source.path}:{function.lineno}"


def _twin_findings(twins: Sequence[Place]) -> Iterator[Finding]:
    for place in twins:
        source, function = place
        others = ", ".join(_where(other) for other in twins if other is not place)
        yield source.finding(function.lineno, f"{function.name} is also written at {others}", _where(twins[0]))


def is_worth_comparing(function: Function) -> bool:
    """Tell whether a body is long enough not to be equal by chance; stubs and overloads never are."""
    body = _body(function)
    nodes: list[ast.AST] = []
    for statement in body:
        nodes.extend(walk(statement))
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    return len(statements) >= MIN_STATEMENTS or len(nodes) >= MIN_NODES


def _body(function: Function) -> list[ast.stmt]:
    return function.body[1:] if docstring_of(function) else function.body


def imported_names(source: Source) -> dict[str, str]:
    """Return what each imported name of a file stands for: `shape` may be another module in the next file."""
    importer = module_name(source.path)
    names: dict[str, str] = {}
    for plain in source.nodes(ast.Import):
        for alias in plain.names:
            names[alias.asname or alias.name.split(".")[0]] = alias.name
    for node in source.nodes(ast.ImportFrom):
        base = base_of(importer, source, node)
        for alias in node.names:
            names[alias.asname or alias.name] = f"{base}.{alias.name}"
    return names


def normal_body(function: Function, imported: Mapping[str, str]) -> str:
    """Return a body as text: arguments and locals numbered in order of appearance, imported names in full."""
    numbers: dict[str, str] = {}
    for argument in _arguments(function.args):
        numbers[argument] = f"${len(numbers)}"
    body = _body(function)
    for statement in body:
        for name in _bound_names(statement):
            numbers.setdefault(name, "")
    normal = _Normal(numbers, imported)
    return ";".join(normal.text(statement) for statement in body)


def _arguments(arguments: ast.arguments) -> list[str]:
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    starred = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [argument.arg for argument in [*listed, *starred]]


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    for node in walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, NAMED) and node.name:
            yield node.name


class _Normal:
    """Writes nodes as text; a local gets its number where it is first met."""

    def __init__(self, numbers: dict[str, str], imported: Mapping[str, str]) -> None:
        self.numbers = numbers
        self.imported = imported

    def text(self, value: object) -> str:
        if isinstance(value, list):
            return "[" + ",".join(self.text(item) for item in value) + "]"
        if isinstance(value, ast.Constant):
            return repr(value.value)
        if isinstance(value, ast.AST):
            fields = [self._field(value, field) for field in value._fields if field not in SILENT_FIELDS]
            return f"{type(value).__name__}({','.join(fields)})"
        return repr(value)

    def _field(self, node: ast.AST, field: str) -> str:
        value = getattr(node, field, None)
        # `attr` and keyword names belong to others; `id`, `arg` and `name` are names of this function's own.
        is_name = (field, type(node)) != ("arg", ast.keyword) and field in ("id", "arg", "name")
        if is_name and value in self.numbers:
            if not self.numbers[value]:
                numbered = sum(1 for number in self.numbers.values() if number)
                self.numbers[value] = f"${numbered}"
            return self.numbers[value]
        if field == "id":
            return self.imported.get(str(value), str(value))
        return self.text(value)


def class_names(sources: Sequence[Source], same_idea: Mapping[str, str]) -> Iterator[Finding]:
    """Find public class names that src defines more than once, but for those listed with the reason."""
    places: dict[str, list[Finding]] = defaultdict(list)
    for source in python_in(sources, "src"):
        for node in source.nodes(ast.ClassDef):
            if not node.name.startswith("_") and node.name not in same_idea:
                places[node.name].append(source.finding(node.lineno, subject=node.name))
    for name, findings in places.items():
        for finding in findings:
            if len(findings) > 1:
                text = f"class {name} is defined {len(findings)} times: say what it is"
                yield Finding(finding.path, finding.line, text, name)
