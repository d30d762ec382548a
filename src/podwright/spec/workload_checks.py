"""What must hold between the fields of a workload.

These look at the values as written and not at the model, so that they speak even when some other field is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from podwright.pilot.protocol import RANK_NAMES
from podwright.spec.findings import Finding
from podwright.spec.inputs import is_named, resolve_input
from podwright.spec.nearest import near
from podwright.spec.placeholders import names_in
from podwright.spec.problems import short

MAX_POINTS = 10_000
PATH_BYTES, NAME_BYTES = 4095, 255
"""What Linux takes at most."""
OF_THE_NODE = ("HOME", "PATH", "TMPDIR")
"""What a node's programs live by: the value of another machine would break them, and would be masked in every log."""

_RELATIVE = "paths are relative to this file's folder"

Tree = dict[str, Any]
Found = Iterator[Finding]


def goal(tree: Tree) -> Found:
    """Check that a goal has one bound."""
    given = [name for name in ("at_least", "at_most") if name in mapping_of(tree, "goal")]
    if isinstance(tree.get("goal"), dict) and len(given) != 1:
        message = "give at_least or at_most, not both" if given else "needs at_least or at_most"
        yield Finding(("goal", *given[1:]), message, "write it like `goal: {metric: mean_iou, at_least: 0.65}`")


def image(tree: Tree) -> Found:
    """Check that there is one image, and that a container has one."""
    if "image" in tree and "build" in tree:
        yield Finding(("build",), "image and build exclude each other", "keep one of the two", on_key=True)
    if tree.get("runtime") == "container" and "image" not in tree and "build" not in tree:
        yield Finding(("runtime",), "a container needs an image", "add `image:` or `build:`, or write `runtime: bare`")


def spares(tree: Tree) -> Found:
    """Check that a spare can take the place of another node: never that of the first, which leads, nor under mpirun."""
    wanted, nodes = tree.get("spares"), tree.get("nodes", 1)
    if not isinstance(wanted, int) or wanted < 1:
        return
    if tree.get("launcher") == "mpi":
        message = "an MPI program keeps the nodes that mpirun began with"
        yield Finding(("spares",), message, "set `launcher: ranks` or `torchrun`, or take `spares` out")
    if nodes == 1:
        message = "a run of one node has no other whose place a spare could take: the first one leads"
        yield Finding(("spares",), message, "take it out; a node that is lost is replaced by the engine")


def replace_slow(tree: Tree) -> Found:
    """Check that a node that is to be replaced has a spare to take its place."""
    if "replace_slow" in tree and not tree.get("spares"):
        message = "there is no spare that could take the place of a slow node"
        hint = "add `spares: 1`, or take it out; `podwright show` names a slow rank in any case"
        yield Finding(("replace_slow",), message, hint)


def mig(tree: Tree) -> Found:
    """Check that GPU slices are counted by `gpus`."""
    resources = mapping_of(tree, "resources")
    if "mig" in resources and resources.get("gpus", 0) == 0:
        yield Finding(("resources", "mig"), "needs gpus", "say how many slices each node gets: `gpus: 1`")


def placeholders(tree: Tree) -> Found:
    """Check that every name in braces is one that the file gives."""
    for path, text in texts_of(tree):
        for full in names_in(text):
            kind, _, name = full.partition(".")
            known = mapping_of(tree, kind)
            if name and name not in known:
                close = near(name, known)
                hint = f"did you mean `{{{kind}.{close}}}`?" if close else f"add it under `{kind}:`"
                yield Finding(path, f"`{{{kind}.{short(name)}}}` names no {kind}", hint)


def bare_names(tree: Tree) -> Found:
    """Check that no point of a matrix is given `{lr}` itself, where `{matrix.lr}` was meant.

    Braces that are the program's own stay: an axis that is used anywhere by its full name is not looked for.
    """
    texts = list(texts_of(tree))
    used = names_in(" ".join(text for _, text in texts))
    unused = [name for name in mapping_of(tree, "matrix") if f"matrix.{name}" not in used]
    for path, text in texts:
        for name in unused:
            if f"{{{name}}}" in text:
                message = f"`{{{short(name)}}}` is not replaced, and no point would differ by it"
                yield Finding(path, message, f"write `{{matrix.{short(name)}}}`")


def environment(tree: Tree) -> Found:
    """Check that no variable is one that we set ourselves, and that a secret is named once."""
    env, secrets = mapping_of(tree, "env"), _list(tree, "secrets")
    for name in env:
        if _reserved(name):
            yield Finding(("env", name), "is set by Podwright", "take it out; ranks see it anyway", on_key=True)
    for index, name in enumerate(secrets):
        path = ("secrets", index)
        if isinstance(name, str) and _reserved(name):
            yield Finding(path, f'"{name}" is set by Podwright', "take it out; ranks see it anyway")
        elif name in OF_THE_NODE:
            hint = "give the secret a name that only your program reads"
            yield Finding(path, f'"{name}" is each node\'s own, and no secret', hint)
        elif isinstance(name, str) and name in env:
            yield Finding(path, f'"{short(name)}" is in env too', "a secret is never written down: take it out of env")
        elif name in secrets[:index]:
            yield Finding(path, f'"{short(str(name))}" is named twice', "name it once")


def checkpoint(tree: Tree) -> Found:
    """Check that a relative checkpoint folder stays inside the run's own."""
    value = tree.get("checkpoint")
    if isinstance(value, str) and _escapes(value):
        yield Finding(("checkpoint",), "leads out of the run's folder", "write a path inside it, or an absolute one")
    elif isinstance(value, str) and (*PurePosixPath(value).parts, ".")[0] in (".", "job", "spec"):
        message = "is where the run's own files lie, which ranks do not write"
        yield Finding(("checkpoint",), message, "write another path, like `checkpoints`")


def matrix(tree: Tree) -> Found:
    """Check that every axis has values, each once, and that there are not too many combinations."""
    axes = {name: values for name, values in mapping_of(tree, "matrix").items() if isinstance(values, list)}
    for name, values in axes.items():
        if not values:
            yield Finding(("matrix", name), "has no values", "write them like `[0.1, 0.01]`")
        for index, value in enumerate(values):
            if any(value == other and type(value) is type(other) for other in values[:index]):
                yield Finding(("matrix", name, index), f"{short(str(value))} is there twice", "name each value once")
    if math.prod(len(values) or 1 for values in axes.values()) > MAX_POINTS:
        yield Finding(("matrix",), f"has more than {MAX_POINTS:,} combinations", "split it into several workloads")


def slurm_options(tree: Tree) -> Found:
    """Check that a verbatim option is one, and not a comment or a command."""
    for index, option in enumerate(_list(mapping_of(tree, "slurm"), "options")):
        if isinstance(option, str) and option.strip() and not option.startswith("-"):
            yield Finding(("slurm", "options", index), "is not an option", "write it like `--constraint=a100`")


def build_files(tree: Tree) -> Found:
    """Check that files of an image come from beside the workload and have a place in the image."""
    for source, target in mapping_of(mapping_of(tree, "build"), "files").items():
        if source.startswith("/") or _escapes(source):
            path = ("build", "files", source)
            yield Finding(path, "leads out of the workload's folder", "copy the file beside the workload", on_key=True)
        if isinstance(target, str) and target and not target.startswith("/"):
            yield Finding(("build", "files", source), "must be an absolute path", f"write `/{target}`")


def stdin(tree: Tree) -> Found:
    """Check that what ranks read as their input can travel with the code."""
    value = tree.get("stdin")
    if not isinstance(value, str):
        return
    if "code" not in tree:
        yield Finding(("stdin",), "needs code", "it is a file of the folder that travels: add `code: .`")
    elif is_named(value) or value.startswith("/"):
        yield Finding(("stdin",), "is no path inside the code folder", _RELATIVE)


def keep(tree: Tree) -> Found:
    """Check that patterns are paths of the folder that ranks start in."""
    for index, pattern in enumerate(_list(tree, "keep")):
        if isinstance(pattern, str) and (pattern.startswith("/") or _escapes(pattern)):
            message = "leads out of the folder that ranks start in"
            yield Finding(("keep", index), message, "write it like `out/**` or `*.pt`")


def lengths(tree: Tree) -> Found:
    """Check that no path is longer than any disk can hold."""
    paths: dict[tuple[str, ...], Any] = {(name,): tree.get(name) for name in ("code", "checkpoint", "stdin")}
    paths |= {("data", name): value for name, value in mapping_of(tree, "data").items()}
    for field, value in paths.items():
        if isinstance(value, str) and not is_named(value) and _too_long(value):
            message = f"is longer than a path can be: {PATH_BYTES} bytes in all, {NAME_BYTES} for each name in it"
            yield Finding(field, message)


CHECKS = (
    goal,
    spares,
    replace_slow,
    image,
    mig,
    placeholders,
    bare_names,
    environment,
    checkpoint,
    matrix,
    slurm_options,
    build_files,
    stdin,
    keep,
    lengths,
)


def on_disk(tree: Tree, folder: Path, comment: Callable[[tuple[str, ...]], str]) -> Found:
    """Check that what the file names beside itself is there; looks at the disk.

    Of data that is missing the file itself may say where it comes from, by a comment on its line.
    """
    code, files = tree.get("code"), mapping_of(mapping_of(tree, "build"), "files")
    if isinstance(code, str) and _usable(code) and not _is_folder(folder / code):
        what = "is a file, not a folder" if _is_there(folder / code) else "there is no such folder"
        yield Finding(("code",), what, _RELATIVE)
    for name, value in mapping_of(tree, "data").items():
        if not _usable(value) or is_named(value) or value.startswith("/") or _is_there(folder / value):
            continue
        message = f'"{short(value)}" is neither a path nor a selection'
        if "/" in value:
            message = "there is no such path"
        said = comment(("data", name))
        yield Finding(("data", name), message, f"its line says: {said}" if said else _RELATIVE)
    yield from _stdin_on_disk(tree, folder)
    for source in files:
        inside = not source.startswith("/") and not _escapes(source)
        if inside and _usable(source) and not _is_there(folder / source):
            path = ("build", "files", source)
            yield Finding(path, "there is no such file", _RELATIVE, on_key=True)


def _stdin_on_disk(tree: Tree, folder: Path) -> Found:
    """Check that the ranks' input is a file of the code folder, by where it leads."""
    value, code = str(tree.get("stdin", "")), str(tree.get("code", ""))
    if not (_usable(value) and _usable(code)) or is_named(value) or value.startswith("/"):
        return
    if not _is_there(folder / value):
        yield Finding(("stdin",), "there is no such file", _RELATIVE)
    elif _is_folder(folder / value):
        yield Finding(("stdin",), "is a folder, not a file")
    elif resolve_input(value, folder, (folder / code).resolve()).kind != "code":
        yield Finding(("stdin",), "is not inside the code folder", "copy it there, or name a `code:` that holds it")


def _usable(value: Any) -> bool:
    """Return whether the disk can be asked about this text at all."""
    return isinstance(value, str) and bool(value) and "\0" not in value and not _too_long(value)


def _is_there(path: Path) -> bool:
    """Return whether there is such a path; one that is too long from here on is not."""
    try:
        return path.exists()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    return _is_there(path) and path.is_dir()


def _too_long(path: str) -> bool:
    names = [name.encode("utf-8", "replace") for name in path.split("/")]
    return sum(map(len, names)) + len(names) > PATH_BYTES or max(map(len, names)) > NAME_BYTES


def mapping_of(tree: Tree, name: str) -> Tree:
    """Return a field that is a mapping; an empty one where it is something else."""
    value = tree.get(name)
    if isinstance(value, dict):
        return value
    return {}


def _list(tree: Tree, name: str) -> list[Any]:
    value = tree.get(name)
    if isinstance(value, list):
        return value
    return []


def texts_of(tree: Tree) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts in which placeholders are replaced, each with its place."""
    command = tree.get("command")
    if isinstance(command, str):
        yield ("command",), command
    for index, item in enumerate(_list(tree, "command")):
        if isinstance(item, str):
            yield ("command", index), item
    for name, value in mapping_of(tree, "env").items():
        if isinstance(value, str):
            yield ("env", name), value


def _reserved(name: str) -> bool:
    return name in RANK_NAMES or name.startswith("PODWRIGHT_")


def _escapes(value: str) -> bool:
    depth = 0
    for part in PurePosixPath(value).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
