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
        """The bare name, with one kind of dash."""
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

    @property
    def uses_mpi(self) -> bool:
        return bool(self.packages & MPI)

    @property
    def is_distributed(self) -> bool:
        return bool(self.names & DISTRIBUTED or self.packages & FRAMEWORKS)

    @property
    def uses_cuda(self) -> bool:
        return "cuda" in self.names or any(text.startswith("cuda") for text in self.texts)

    @property
    def needs_cuda(self) -> bool:
        """It never asks whether there is a GPU, or its ranks can only talk through one."""
        only_nccl = "nccl" in self.texts and "gloo" not in self.texts
        return self.uses_cuda and (only_nccl or "is_available" not in self.names)


def look(text: str, beside: Mapping[str, str]) -> ScriptContents:
    """Reads a script and, of the modules beside it, those it imports.

    Raises SyntaxError where one is no Python; its `filename` is the module's name, and empty for the script itself.
    """
    seen, wanted, known = ScriptContents(), [ast.parse(text, filename="")], set[str]()
    while wanted:
        tree = wanted.pop()
        for name in sorted(_read(tree, seen, set(beside)) - known):
            known.add(name)
            wanted.append(ast.parse(beside[name], filename=name))
    return seen


def _read(tree: ast.Module, seen: ScriptContents, beside: set[str]) -> set[str]:
    """Notes what one file holds; gives the modules beside it that it imports."""
    optional = {id(inner) for node in ast.walk(tree) if _is_guarded(node) for inner in ast.walk(node)}
    local: set[str] = set()
    for node in ast.walk(tree):
        for name in _imported(node):
            top = name.split(".")[0]
            if top in beside:
                local.add(top)
            elif top not in sys.stdlib_module_names and id(node) not in optional:
                seen.packages.add(top)
        _note(node, seen)
    return local


def _is_guarded(node: ast.AST) -> bool:
    """An import that may fail is not needed."""
    handled = [handler.type for handler in node.handlers] if isinstance(node, ast.Try) else []
    names = {getattr(kind, "id", "") for kind in handled}
    return bool(names & {"ImportError", "ModuleNotFoundError"})


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0:
            yield node.module or ""
        else:
            yield from [node.module] if node.module else (alias.name for alias in node.names)


def _note(node: ast.AST, seen: ScriptContents) -> None:
    if isinstance(node, ast.Attribute):
        seen.names.add(node.attr)
    elif isinstance(node, ast.Name):
        seen.names.add(node.id)
    elif isinstance(node, ast.alias):
        seen.names.update(node.name.split("."))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 20:
        seen.texts.add(node.value)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
        seen.options += _option(node)
    elif isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "environ":
        name = _value(node.slice) if isinstance(node.ctx, ast.Load) else None
        seen.variables |= {name} if isinstance(name, str) else set()


def _option(node: ast.Call) -> Iterator[Option]:
    """The longest spelling of an option; one whose name is worked out while it runs is passed over."""
    flags = [str(value) for value in map(_value, node.args) if isinstance(value, str)]
    given = {word.arg: _value(word.value) for word in node.keywords}
    if not flags or "action" in given:
        return
    flag = max(flags, key=len)
    required = given.get("required") is True or (not flag.startswith("-") and given.get("nargs") not in ("?", "*"))
    choices = given.get("choices")
    yield Option(flag, given.get("default"), required, tuple(choices) if isinstance(choices, (list, tuple)) else ())


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
