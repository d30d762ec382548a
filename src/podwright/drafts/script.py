"""What a Python script tells of itself when its text is read: imports, options, and how it uses PyTorch."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

DISTRIBUTED = {"init_process_group", "DistributedDataParallel", "DistributedSampler", "fully_shard", "torchelastic"}
FRAMEWORKS = {"accelerate", "deepspeed", "lightning", "pytorch_lightning"}
"""They take ranks from torchrun's variables."""
MPI = {"mpi4py", "horovod"}


@dataclass(frozen=True)
class Option:
    """One option or argument of the script's own command line."""

    flag: str
    """As it is written, `--data-dir`; a positional argument has no dashes."""
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def word(self) -> str:
        """Return the bare name, with one kind of dash."""
        return self.flag.lstrip("-").replace("_", "-").lower()


@dataclass
class ScriptContents:
    """All that was found in a script and the modules beside it."""

    packages: set[str] = field(default_factory=set)
    """Top names of imported packages that are neither Python's own nor beside the script."""
    options: list[Option] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Every name and attribute used: what a program does with PyTorch shows in them."""
    texts: set[str] = field(default_factory=set)
    """Short literal texts, such as the name of a device or of a backend."""
    variables: set[str] = field(default_factory=set)
    """Environment variables without which it fails."""
    trainer: dict[str, int] = field(default_factory=dict)
    """What it gives Lightning's Trainer as `devices` and `num_nodes`, where that is a number."""

    @property
    def uses_mpi(self) -> bool:
        """Tell whether MPI starts its ranks."""
        return bool(self.packages & MPI)

    @property
    def is_distributed(self) -> bool:
        """Tell whether it takes its ranks from torchrun."""
        return bool(self.names & DISTRIBUTED or self.packages & FRAMEWORKS)

    @property
    def uses_cuda(self) -> bool:
        """Tell whether it would use a GPU."""
        asked_of_trainer = bool(self.packages & FRAMEWORKS) and "gpu" in self.texts
        return asked_of_trainer or "cuda" in self.names or any(text.startswith("cuda") for text in self.texts)

    @property
    def needs_cuda(self) -> bool:
        """Tell whether it fails without a GPU: it never asks for one first, or its ranks only talk through one."""
        only_nccl = "nccl" in self.texts and "gloo" not in self.texts
        return self.uses_cuda and (only_nccl or "is_available" not in self.names)


def look(text: str, beside: Mapping[str, str]) -> ScriptContents:
    """Read a script and, of the modules beside it, those it imports.

    Raises SyntaxError where one is no Python; its `filename` is the module's name, and empty for the script itself.
    """
    script = ScriptContents()
    trees = [ast.parse(text, filename="")]
    known: set[str] = set()
    while trees:
        tree = trees.pop()
        for name in sorted(_read(tree, script, set(beside)) - known):
            known.add(name)
            trees.append(ast.parse(beside[name], filename=name))
    return script


def _read(tree: ast.Module, script: ScriptContents, beside: set[str]) -> set[str]:
    """Note what one file holds; return the modules beside it that it imports."""
    optional = _optional(tree)
    local: set[str] = set()
    for node in ast.walk(tree):
        for name in _imported(node):
            top = name.split(".")[0]
            if top in beside:
                local.add(top)
            elif top not in sys.stdlib_module_names and node not in optional:
                script.packages.add(top)
        _note(node, script)
    return local


def _optional(tree: ast.Module) -> set[ast.AST]:
    """Return all that stands under a `try` which bears a failed import: what is imported there is not needed."""
    nodes: set[ast.AST] = set()
    for node in ast.walk(tree):
        handled = {getattr(handler.type, "id", "") for handler in getattr(node, "handlers", ())}
        if isinstance(node, ast.Try) and handled & {"ImportError", "ModuleNotFoundError"}:
            nodes.update(ast.walk(node))
    return nodes


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0:
            yield node.module or ""
        elif node.module:
            yield node.module
        else:
            yield from (alias.name for alias in node.names)


def _note(node: ast.AST, script: ScriptContents) -> None:
    if isinstance(node, ast.Attribute):
        script.names.add(node.attr)
    elif isinstance(node, ast.Name):
        script.names.add(node.id)
    elif isinstance(node, ast.alias):
        script.names.update(node.name.split("."))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 20:
        script.texts.add(node.value)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
        script.options += _option(node)
    elif isinstance(node, ast.Call) and _called(node) == "Trainer":
        script.trainer.update(_sizes(node))
    elif isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "environ":
        name = _value(node.slice)
        if isinstance(node.ctx, ast.Load) and isinstance(name, str):
            script.variables.add(name)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _sizes(node: ast.Call) -> Iterator[tuple[str, int]]:
    for keyword in node.keywords:
        value = _value(keyword.value)
        if keyword.arg in ("devices", "num_nodes") and type(value) is int and value > 0:
            yield keyword.arg, value


def _option(node: ast.Call) -> Iterator[Option]:
    """Yield an option by its longest spelling; one whose name is worked out while it runs is passed over."""
    flags = [str(value) for value in map(_value, node.args) if isinstance(value, str)]
    keywords = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
    if not flags or "action" in keywords:
        return
    flag = max(flags, key=len)
    is_argument = not flag.startswith("-") and keywords.get("nargs") not in ("?", "*")
    choices = keywords.get("choices")
    if not isinstance(choices, (list, tuple)):
        choices = ()
    yield Option(flag, keywords.get("default"), keywords.get("required") is True or is_argument, tuple(choices))


def _value(node: ast.expr) -> Any:
    """Return what a literal says; None for all that is worked out while the script runs."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
