"""Who imports whom in src, imports in functions and for types only included: no cycle, no reach into an engine."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from scripts.tree.sources import Finding, Source, python_in

PACKAGE = "podwright"
ENGINES = f"{PACKAGE}.engines"


@dataclass(frozen=True)
class Import:
    """A module imports another at a line of its source."""

    source: Source
    importer: str
    imported: str
    line: int

    def finding(self, text: str, subject: str = "") -> Finding:
        """Make a finding at the line of the import."""
        return self.source.finding(self.line, text, subject)


def module_name(path: PurePosixPath) -> str:
    """Return the module that a file of src is."""
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(sources: Sequence[Source]) -> list[Import]:
    """List the imports of our own modules wherever they stand.

    A name in quotes counts too in a module that calls `import_module`: our tables of lazy imports are made of them.
    """
    modules = {module_name(source.path): source for source in python_in(sources, "src")}
    imports: list[Import] = []
    for importer, source in modules.items():
        # Several names may be taken from one module in one line: that is one import.
        places = {(line, _nearest(name, modules)) for name, line in _names(importer, source)}
        for line, imported in sorted(places):
            if imported and imported != importer:
                imports.append(Import(source, importer, imported, line))
    return imports


def _names(importer: str, source: Source) -> Iterator[tuple[str, int]]:
    for plain in source.nodes(ast.Import):
        for alias in plain.names:
            yield alias.name, plain.lineno
    for node in source.nodes(ast.ImportFrom):
        base = base_of(importer, source, node)
        for alias in node.names:
            yield f"{base}.{alias.name}", node.lineno
    if "import_module(" in source.text:
        for text in source.nodes(ast.Constant):
            if isinstance(text.value, str) and text.value.startswith(f"{PACKAGE}."):
                yield text.value, text.lineno


def base_of(importer: str, source: Source, node: ast.ImportFrom) -> str:
    """Return the module that a `from` names; a relative one is counted from the importer's package."""
    if node.level == 0:
        return node.module or ""
    package = importer.split(".")
    if source.path.name != "__init__.py":
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, node.module] if node.module else package)


def _nearest(name: str, modules: Mapping[str, Source]) -> str:
    """Return the module that has a dotted name: the name itself, or the module in which it is defined."""
    if name in modules:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in modules else ""


def import_cycles(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find the imports that lead back to their own module; modules that reach each other are one cycle."""
    imports = imports_of(sources)
    graph: dict[str, list[str]] = {}
    for edge in imports:
        graph.setdefault(edge.importer, []).append(edge.imported)
    for edge in imports:
        way = way_between(graph, edge.imported, edge.importer)
        if way:
            knot = _knot(graph, edge.importer)
            yield edge.finding(f"imports {' -> '.join(way)}; {len(knot)} modules in this cycle", knot[0])


def way_between(graph: Mapping[str, Sequence[str]], start: str, goal: str) -> list[str]:
    """Return the shortest way from one module to another, both included; empty where there is none."""
    before: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        module = waiting.popleft()
        if module == goal:
            return _way_back(before, goal)
        for other in graph.get(module, ()):
            if other not in before:
                before[other] = module
                waiting.append(other)
    return []


def _way_back(before: Mapping[str, str], goal: str) -> list[str]:
    way: list[str] = []
    while goal:
        way.insert(0, goal)
        goal = before[goal]
    return way


def _knot(graph: Mapping[str, Sequence[str]], module: str) -> list[str]:
    """List the modules that this one reaches and that reach it, in order."""
    return sorted(other for other in _reached(graph, module) if module in _reached(graph, other))


def _reached(graph: Mapping[str, Sequence[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def cli_engine_imports(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find imports of a folder of engines in the CLI, which knows engines by their interface only."""
    folders = _engine_folders(sources)
    for edge in imports_of(sources):
        folder = _folder(edge.imported, folders)
        if folder and f"{edge.importer}.".startswith(f"{PACKAGE}.cli."):
            yield edge.finding(f"the CLI imports {edge.imported}")


def engine_imports(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find imports of one engine in another folder of engines; a folder with an `engine.py` is an engine."""
    folders = _engine_folders(sources)
    modules = {module_name(source.path) for source in python_in(sources, "src")}
    engines = {folder for folder in folders if f"{folder}.engine" in modules}
    for edge in imports_of(sources):
        importing, imported = _folder(edge.importer, folders), _folder(edge.imported, engines)
        if importing and imported and importing != imported:
            yield edge.finding(f"{importing} imports {edge.imported}")


def _engine_folders(sources: Sequence[Source]) -> set[str]:
    names = [module_name(source.path).split(".") for source in python_in(sources, "src")]
    packages = {module_name(source.path) for source in python_in(sources, "src") if source.path.name == "__init__.py"}
    folders = {".".join(parts[:3]) for parts in names if len(parts) > 2 and ".".join(parts[:2]) == ENGINES}
    return folders & packages


def _folder(module: str, folders: set[str]) -> str:
    """Return the folder of engines that a module lies in."""
    folder = ".".join(module.split(".")[:3])
    return folder if folder in folders else ""
