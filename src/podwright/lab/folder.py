"""The folder that holds all of a lab: worked on by one command at a time, and removed whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from podwright.files.locks import wait_for
from podwright.spec.problems import refuse

Made = TypeVar("Made")
_FILE = "lab.json"


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file that at no moment has more rights than it shall have."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)


def holds_lab(folder: Path) -> bool:
    """Return whether there is a lab in a folder, running or not."""
    return (folder / _FILE).is_file()


def keep(folder: Path, kind: str, **parts: Any) -> None:
    """Write down what a lab was started as."""
    (folder / _FILE).write_text(json.dumps({"kind": kind, **parts}, indent=2) + "\n")


def kept(folder: Path, kind: str, make: Callable[[dict[str, Any]], Made]) -> Made | None:
    """Return what `make` reads from the words kept of a lab; None where there is no lab of this kind."""
    try:
        lab: dict[str, Any] = json.loads((folder / _FILE).read_text())
        if lab["kind"] != kind:
            return None
        return make(lab)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise refuse(
            f"{folder / _FILE} cannot be read: {error}",
            hint=f"kill the processes that {folder / 'pids'} names, then remove {folder}",
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one command at a time work on a lab; whoever waited while it was taken down finds none."""
    if not folder.is_dir():
        raise _no_lab(folder)
    with wait_for(folder / "lock") as lock:
        if not os.fstat(lock).st_nlink:
            raise _no_lab(folder)
        yield


def _no_lab(folder: Path) -> Exception:
    return refuse(f"there is no lab in {folder}", hint="`podwright lab up` makes one")


def remove(folder: Path) -> None:
    """Remove the lab's folder; a process that is ending may still write into it."""
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    shutil.rmtree(folder)
