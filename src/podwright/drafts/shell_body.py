"""What the shell lines of a job script do: what prepares, what starts the ranks, and which command each rank runs.

Only the text is read; nothing of it is run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

PREPARING = {
    ".",
    "conda",
    "eval",
    "export",
    "mamba",
    "ml",
    "module",
    "pip",
    "set",
    "source",
    "spack",
    "ulimit",
    "umask",
    "unset",
}
"""First words of lines that set up the environment: they stay shell lines, before the ranks."""
TALKING = {":", "date", "echo", "env", "hostname", "nvidia-smi", "printenv", "pwd", "wait"}
"""First words of lines that only print: a run's record has what they would say."""
COMPOUND = {
    "case",
    "do",
    "done",
    "elif",
    "else",
    "esac",
    "fi",
    "for",
    "function",
    "if",
    "select",
    "then",
    "until",
    "while",
    "{",
    "(",
}
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(\$\(.*\)|\"[^\"]*\"|'[^']*'|[^\s\"'$(]*)")
FOLDER = re.compile(r"cd\s+[\w./~-]+")
SHELL = re.compile(r"[|&;<>$`*?\\]|^cd\b|<<")
"""What only a shell understands: a workload's command is not run by one."""
LAUNCHERS = {
    ("srun",): "ranks",
    ("torchrun",): "torchrun",
    ("python", "-m", "torch.distributed.run"): "torchrun",
    ("python", "-m", "torch.distributed.launch"): "torchrun",
    ("accelerate", "launch"): "torchrun",
    ("deepspeed",): "torchrun",
    ("mpirun",): "mpi",
    ("mpiexec",): "mpi",
}
FLAGS = {
    "ranks": "exact exclusive kill-on-bad-exit label l no-kill k overlap O pty quiet Q unbuffered u verbose v",
    "torchrun": "standalone m module no-python no_python multi_gpu multi-gpu use_env run-path cpu",
    "mpi": "allow-run-as-root oversubscribe bind-to-core report-bindings v tag-output",
}
"""Options of a launcher that take no value; all others take the next word where no `=` joins it."""
RANKS = ("ntasks-per-node", "nproc-per-node", "nproc_per_node")
RUNS_MODULE = {"m", "module"}
PYTHONS = re.compile(r"python[\d.]*")


@dataclass
class ShellBody:
    """What was found in the lines of a script."""

    setup: list[str] = field(default_factory=list)
    launcher: str = ""
    options: dict[str, str] = field(default_factory=dict)
    """Of what starts the ranks: srun's, torchrun's or mpirun's own."""
    argv: list[str] = field(default_factory=list)
    """What each rank runs; empty where that could not be told."""
    steps: list[str] = field(default_factory=list)
    """The lines that do the work, as they are written."""
    is_plain: bool = True
    """False where the lines are more than a list of commands."""


def read_body(text: str) -> ShellBody:
    """Read the lines of a script; those that prepare come before the one that works."""
    body = ShellBody()
    assigned: list[str] = []
    folder = ""
    for line in _logical_lines(text):
        words = words_of(line)
        first = words[0] if words else ""
        if (
            first in COMPOUND
            or "<<" in line
            or first.endswith("()")
            or (line.endswith((")", "&")) and "$(" not in line)
        ):
            body.is_plain = False
        if first in TALKING:
            continue
        if first in PREPARING and not body.steps:
            body.setup.append(line)
        elif ASSIGNMENT.fullmatch(line) and not body.steps:
            assigned.append(line)
        elif FOLDER.fullmatch(line) and not body.steps:
            folder = line
        else:
            body.steps.append(line)
    if body.is_plain and len(body.steps) == 1:
        _read_step(body, folder)
    # A variable of the script is needed where what is left of it is read: not one that only told ranks of each other.
    for line in reversed(assigned):
        name = line.partition("=")[0]
        if any(re.search(rf"\$\{{?{name}\b", text) for text in (*body.argv, *body.setup)):
            body.setup.insert(0, f"export {line}")
    return body


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blanks; one that ends with a backslash goes on in the next."""
    joined = re.sub(r"\\\n\s*", "", text)
    for line in joined.splitlines():
        bare = re.sub(r"(^|\s)#.*", "", line) if not re.search("['\"]", line) else line
        if bare.strip() and not bare.lstrip().startswith("#"):
            yield bare.strip()


def words_of(line: str) -> list[str]:
    """Return the words of a line; where its quotes do not close, what spaces part."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _read_step(body: ShellBody, folder: str) -> None:
    """Take off what starts the ranks: srun may start torchrun, which starts the program."""
    (line,) = body.steps
    rest = line.removeprefix("exec ")
    while True:
        launcher, words, begin = _launched(rest)
        if not launcher:
            break
        options, is_module, rest = _after_options(rest, words[begin:], FLAGS[launcher].split())
        body.launcher = launcher
        body.options |= options
        if launcher == "torchrun":
            rest = f"python -m {rest}" if is_module else _with_python(rest)
            break
    if folder:
        rest = f"{folder} && exec {rest}"
    body.argv = ["bash", "-c", rest] if SHELL.search(rest) else words_of(rest)


def _launched(text: str) -> tuple[str, list[str], int]:
    words = words_of(text)
    for names, launcher in LAUNCHERS.items():
        head = [PYTHONS.sub("python", words[0]), *words[1 : len(names)]] if words else []
        if tuple(head) == names:
            return launcher, words, len(names)
    return "", words, 0


def _after_options(text: str, words: list[str], flags: list[str]) -> tuple[dict[str, str], bool, str]:
    """Return a launcher's options, whether a module follows, and the text behind them as it is written."""
    options: dict[str, str] = {}
    is_module = False
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, joined, value = words[at].lstrip("-").partition("=")
        at += 1
        is_module = is_module or name in RUNS_MODULE
        if not joined and name not in flags:
            # A short option may have its value at once: -n8.
            if not words[at - 1].startswith("--") and name[1:].isdigit():
                name, value = name[0], name[1:]
            elif at < len(words):
                value = words[at]
                at += 1
        options[name] = value
    return options, is_module, _tail(text, len(words) - at)


def _tail(text: str, count: int) -> str:
    """Return the last words of a text with the quotes that they have there."""
    for start in [match.start() for match in re.finditer(r"\S+", text)]:
        try:
            if len(shlex.split(text[start:])) == count:
                return text[start:]
        except ValueError:
            continue
    return ""


def _with_python(text: str) -> str:
    if text.split(" ")[0].endswith(".py"):
        return f"python {text}"
    return text
