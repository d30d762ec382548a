"""What keeps the front doors: commands only ask them, start nothing by themselves, and load late what is slow."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Sequence

from scripts.tree.imports import PACKAGE, Import, imports_of, module_name
from scripts.tree.sources import Finding, Function, Source, python_in, walk

CLI = ("src", PACKAGE, "cli")
COMMANDS = (*CLI, "commands")
FACES = (f"{PACKAGE}.cli", f"{PACKAGE}.console")
"""What people and programs meet: they know bands by their doors alone."""
MAX_PARAMETERS = 6
COMMAND_ENDING = "_command"
"""What the names of functions end with whose parameters are the options of a command: they build one request."""

EFFECTS = (
    "threading",
    "subprocess",
    "multiprocessing",
    "concurrent",
    "socket",
    "socketserver",
    "http.server",
    "asyncio",
    f"{PACKAGE}.clients.ssh",
)
"""What no command imports: whatever needs them is done behind a door, where others than the terminal can use it."""

_BANDS = "bringup console costs data design drafts images lab launch mlperf prove report telemetry usage watch"
DOORS = frozenset(f"{PACKAGE}.{band}" for band in _BANDS.split())
"""The front doors: packages that load what is behind them when it is first used."""
SIDE_DOORS = frozenset(f"{PACKAGE}.{name}" for name in ("bringup.kubernetes", "bringup.mirror", "launch.pods"))
"""Smaller ones, each for a noun of its own: what a namespace needs, an archive, the pods that are known."""
OPEN = ("analysis", "cli", "files", "pilot", "runs", "spec", "theme")
"""Rooms of words, files and data: all of their modules may be imported."""


QUICK = DOORS | {
    PACKAGE,
    *(f"{PACKAGE}.{name}" for name in ("pilot.metrics", "pilot.protocol", "runs", "theme.words")),
    *(f"{PACKAGE}.spec{name}" for name in ("", ".hostlist", ".problems", ".quantity")),
}
"""What the CLI may import at its top: a test holds the doors to loading nothing, and these words to loading little."""
CLI_LIBRARIES = {"typer", "click"}


def cli_sources(sources: Sequence[Source], folder: tuple[str, ...] = CLI) -> Iterator[Source]:
    """Yield the files of the CLI, or of one of its folders."""
    for source in python_in(sources, "src"):
        if source.path.parts[: len(folder)] == folder:
            yield source


def lazy_imports(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find imports inside functions of the CLI: each hides from a reader what a file needs."""
    for source in cli_sources(sources):
        for node in _imports_in_functions(source):
            yield source.finding(node.lineno)


def _imports_in_functions(source: Source) -> set[ast.Import | ast.ImportFrom]:
    found: set[ast.Import | ast.ImportFrom] = set()
    for function in source.functions:
        found |= {node for node in walk(function) if isinstance(node, (ast.Import, ast.ImportFrom))}
    return found


def many_parameters(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find functions of src with more parameters than a reader holds; a command's are its options."""
    for source in python_in(sources, "src"):
        for function in source.functions:
            count = parameter_count(function)
            if count > MAX_PARAMETERS and not function.name.endswith(COMMAND_ENDING):
                yield source.finding(function.lineno, f"{function.name} has {count} parameters: a noun holds them")


def parameter_count(function: Function) -> int:
    """Count the parameters that a caller gives, `*args` and `**kwargs` as one each."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    return len(names) + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)


def command_effects(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find commands that start a thread, a process, a server or ssh by themselves."""
    for source in cli_sources(sources, COMMANDS):
        nodes: list[ast.Import | ast.ImportFrom] = [*source.nodes(ast.Import), *source.nodes(ast.ImportFrom)]
        for node in nodes:
            for name in _full_names(node):
                if any(f"{name}.".startswith(f"{effect}.") for effect in EFFECTS):
                    yield source.finding(node.lineno, f"imports {name}: what needs it belongs behind a door")


def _full_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names]


def cli_doors(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find imports of a face that go past the front door of a band; words and data, and its own rooms, lie open."""
    for edge in imports_of(sources):
        face = next((face for face in FACES if f"{edge.importer}.".startswith(f"{face}.")), None)
        if face and not f"{edge.imported}.".startswith(f"{face}.") and not _is_by_a_door(edge):
            yield edge.finding(f"imports {edge.imported}, past the door of its band")


def _is_by_a_door(edge: Import) -> bool:
    _, _, inside = edge.imported.partition(".")
    return not inside or edge.imported in DOORS | SIDE_DOORS or inside.split(".")[0] in OPEN


def cli_top_imports(sources: Sequence[Source]) -> Iterator[Finding]:
    """Hold the CLI's first imports to what is quick, on which the time of `--help` depends."""
    for source in cli_sources(sources):
        for node in source.tree.body:
            for name in _slow_names(node):
                yield source.finding(node.lineno, f"imports {name} at the top: import it in the function that needs it")


def _slow_names(node: ast.stmt) -> Iterator[str]:
    """Yield what a statement imports that is slow to load; a relative import stays in the CLI."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [node.module or ""]
        if names[0] in (PACKAGE, f"{PACKAGE}.theme"):
            names = [f"{names[0]}.{alias.name}" for alias in node.names if alias.name != "__version__"]
    for name in names:
        top = name.split(".")[0]
        is_quick = top in sys.stdlib_module_names or top in CLI_LIBRARIES or name in QUICK
        if not is_quick and not name.startswith(f"{PACKAGE}.cli"):
            yield name


def door_names(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find names asked of a door that has none of them: it loads its names late, so that no type checker sees it."""
    modules = {module_name(source.path) for source in python_in(sources, "src")}
    doors = {name: names | _rooms(name, modules) for name, names in _late_doors(sources)}
    for source in python_in(sources, "src", "scripts", "benchmarks"):
        for line, door, name in _asked_names(source, doors.keys()):
            if name not in doors[door]:
                yield source.finding(line, f"{door} has no {name}")


def _late_doors(sources: Sequence[Source]) -> Iterator[tuple[str, set[str]]]:
    """Yield the packages that load names late, each with all names that its `__init__` has."""
    for source in python_in(sources, "src"):
        if source.path.name != "__init__.py" or "late_names(" not in source.text:
            continue
        names = {alias.asname or alias.name for node in source.nodes(ast.ImportFrom) for alias in node.names}
        names |= {name.id for name in source.nodes(ast.Name)}
        names |= {node.name for node in (*source.functions, *source.nodes(ast.ClassDef))}
        yield module_name(source.path), names


def _rooms(package: str, modules: set[str]) -> set[str]:
    """Return the modules directly below a package."""
    return {name.rpartition(".")[2] for name in modules if name.rpartition(".")[0] == package}


def _asked_names(source: Source, doors: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield what a file takes from doors, with the line: by import, or as an attribute of an imported door."""
    local: dict[str, str] = {}
    for node in source.nodes(ast.ImportFrom):
        for alias in node.names:
            if node.module in doors:
                yield node.lineno, node.module or "", alias.name
            if f"{node.module}.{alias.name}" in doors:
                local[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for attribute in source.nodes(ast.Attribute):
        base = attribute.value
        if isinstance(base, ast.Name) and base.id in local and not attribute.attr.startswith("__"):
            yield attribute.lineno, local[base.id], attribute.attr
