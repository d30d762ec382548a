"""What a workload may say, and what is most often a slip: it is said before the run, and stops nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from podwright.spec.findings import Finding
from podwright.spec.nearest import near
from podwright.spec.problems import short
from podwright.spec.workload_checks import Tree, mapping_of, texts_of

OPERATORS = re.compile(r"(?:(?<=\s)(?:\|\|?|&&?|[12&]?>{1,2}|<|2>&1)|;)(?=\s|$)")
A_SHELL = re.compile(r"\s*\S*\b(ba|da|k|z)?sh\s+-\w*c\b")
BUILT_IN = re.compile(r"\s*(cd|source|export|module|\.|ulimit)\s")
VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*|\$\(")
BRACES = re.compile(r"\{([A-Za-z_]+)(\.[\w-]+)?\}", re.ASCII)
REPLACED = ("checkpoint", "data", "matrix")
PYTHON = re.compile(r"\s*python[\d.]*\s+(?:-[uOBI]+\s+)*([\w./-]+\.py)(?:\s|$)")
MAX_FILES = 2000
"""How many files of a folder are looked at for the one that was meant."""


def shell_words(tree: Tree, folder: Path) -> Iterator[Finding]:
    """Find what only a shell does, in a command that none runs: its words are arguments of the program."""
    command = tree.get("command")
    if not isinstance(command, str) or A_SHELL.match(command):
        return
    bare = re.sub(r"'[^']*'", " ", command)
    hint = 'write `command: [bash, -c, "..."]`, or put lines that prepare under `setup:`'
    found = OPERATORS.search(re.sub(r'"[^"]*"', " ", bare)) or BUILT_IN.match(bare) or VARIABLE.search(bare)
    if found:
        message = f"`{found[0].strip()}` is no shell's here: the command is split into words and run as it is"
        yield Finding(("command",), message, hint)


def near_placeholders(tree: Tree, folder: Path) -> Iterator[Finding]:
    """Find braces that look like a placeholder and are none: they stay as they are."""
    for path, text in texts_of(tree):
        for match in BRACES.finditer(text):
            whole, name, rest = match[0], match[1], match[2] or ""
            meant = near(name, REPLACED)
            if meant and name not in REPLACED and bool(rest) == (meant != "checkpoint"):
                message = f"`{short(whole)}` is not replaced"
                yield Finding(path, message, f"did you mean `{{{meant}{rest}}}`?")


def missing_program(tree: Tree, folder: Path) -> Iterator[Finding]:
    """Find a Python program that is not in the folder that travels, where ranks start."""
    command, code = tree.get("command"), tree.get("code")
    if isinstance(command, list):
        command = " ".join(word for word in command if isinstance(word, str))
    match = PYTHON.match(command) if isinstance(command, str) else None
    if not match or not isinstance(code, str) or match[1].startswith("/") or mapping_of(tree, "build").get("files"):
        return
    place = folder / code
    if not (place / match[1]).exists():
        there = list(_programs((place / match[1]).parent, place))
        close = near(match[1], there)
        hint = f"did you mean `{close}`?" if close else "paths in a command are relative to `code:`, where ranks start"
        yield Finding(("command",), f"{short(match[1])} is not in the code folder", hint)


def _programs(folder: Path, code: Path) -> Iterator[str]:
    """Yield the Python programs of a folder as the command would name them."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(MAX_FILES), entries, strict=False):
                if entry.name.endswith(".py"):
                    yield Path(entry.path).relative_to(code).as_posix()
    except (OSError, ValueError):
        return


LOOKS = (shell_words, near_placeholders, missing_program)
