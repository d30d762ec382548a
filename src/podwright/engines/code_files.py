"""Which files of a code folder travel with a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podwright.pilot.protocol import fits
from podwright.spec.problems import refuse

IGNORED = (".git", "__pycache__", ".podwrightignore")
NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""A repository may name programs for git to run; looking at it runs none."""
NO_REPOSITORY = "not a git repository (or any"
ENVIRONMENT = "pyvenv.cfg"
"""What a Python environment has in its folder. One never travels: it only works where it was made."""


@dataclass(frozen=True)
class AlsoTravels:
    """What travels beside what git knows: data folders inside the code folder, patterns of `include:`, made files.

    Our own `home` never does, which may lie in the code folder: each run would carry all before it.
    """

    data: tuple[Path, ...] = ()
    patterns: tuple[str, ...] = ()
    made: Mapping[str, bytes] = field(default_factory=dict)
    home: Path | None = None


NO_MORE = AlsoTravels()


def files_that_travel(folder: Path, root: Path, wanted: AlsoTravels) -> tuple[list[str], int]:
    """Return the files that travel, and how large they are; refuse a folder that cannot be read, or has no end."""
    if root.is_relative_to("/proc") or root.is_relative_to("/sys"):
        message = f"{folder} holds no files: the kernel makes them up as they are read"
        raise refuse(message, field="code", hint="name the folder of your program")
    if wanted.home == root:
        raise refuse(f"{folder} is the home of Podwright itself", field="code", hint="name the folder of your program")
    try:
        beside = {*_data_files(root, wanted.data), *_included(root, wanted.patterns)}
        names = sorted({*_code_files(root, wanted.home), *beside})
        return names, sum((root / name).lstat().st_size for name in names)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"{error.filename or folder} cannot be read: {reason}"
        raise refuse(message, field="code", hint="is it being changed just now? put it in .podwrightignore") from None


def _code_files(root: Path, home: Path | None) -> Iterator[str]:
    listed = _git_files(root)
    patterns = [*IGNORED, *_ignore_patterns(root)]
    # A folder that its repository ignores as a whole is taken as one without git.
    names = _without_environments(listed) if listed else _walk(root, root)
    for name in names:
        path = root / name
        if home and home.is_relative_to(root) and path.is_relative_to(home):
            continue
        if fits(name, patterns):
            continue
        if path.is_symlink():
            yield from _link_or_content(root, name)
        elif path.is_file():
            yield name


def _link_or_content(root: Path, name: str) -> Iterator[str]:
    """Yield a link; of one to a folder elsewhere in the same repository the files that it leads to, as they travel."""
    end = Path(os.path.realpath(root / name))
    inside: list[str] = []
    if end.is_dir() and not end.is_relative_to(root) and not root.is_relative_to(end) and _is_beside(root, end):
        inside = [path for path in _git_files(end) or () if not fits(path, IGNORED) and (end / path).is_file()]
    yield from [f"{name}/{path}" for path in inside] or [name]


def _is_beside(root: Path, end: Path) -> bool:
    """Return whether two folders are in one repository."""
    command = ["git", *NO_PROGRAMS, "-C", str(root), "rev-parse", "--show-toplevel"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0 and end.is_relative_to(os.fsdecode(done.stdout.rstrip(b"\n")))


def _git_files(root: Path) -> list[str] | None:
    """Return what git tracks or would add; None where there is no repository, or no git."""
    command = ["git", *NO_PROGRAMS, "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        return None
    if done.returncode:
        _check_no_repository(done.stderr.decode(errors="replace"))
        return None
    return done.stdout.decode(errors="surrogateescape").split("\0")[:-1]


def _check_no_repository(text: str) -> None:
    """Refuse a repository that git refuses: what it ignores, such as `.env`, would travel with the rest."""
    if NO_REPOSITORY in text:
        return
    lines = [line.strip() for line in text.splitlines()]
    reason = next((line for line in lines if line.startswith("fatal: ")), "fatal: it says no reason")
    command = next((line for line in lines if line.startswith("git config ")), None)
    hint = "mend the repository; without git nobody knows which files must stay behind"
    if command:
        hint = f"if you trust it: `{command}`"
    raise refuse(f"git refuses the code folder: {reason.removeprefix('fatal: ')}", field="code", hint=hint)


def _ignore_patterns(root: Path) -> list[str]:
    try:
        lines = (root / ".podwrightignore").read_text().splitlines()
    except OSError:
        return []
    return [line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#")]


def _without_environments(names: list[str]) -> list[str]:
    """Return what lies in no Python environment; the code folder itself may be one."""
    homes = tuple(name.removesuffix(ENVIRONMENT) for name in names if name.endswith(f"/{ENVIRONMENT}"))
    return [name for name in names if not name.startswith(homes)]


def _walk(root: Path, folder: Path) -> Iterator[str]:
    """Yield the files and links below a folder, by their paths from the root; no Python environment inside it."""
    for place, folders, files in os.walk(folder, onerror=_raise):
        if ENVIRONMENT in files and Path(place) != folder:
            folders.clear()
            continue
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in files + links:
            path = Path(place, name)
            if path.is_symlink() or path.is_file():
                yield path.relative_to(root).as_posix()


def _raise(error: OSError) -> None:
    raise error


def _data_files(root: Path, folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        if folder.is_file():
            yield folder.relative_to(root).as_posix()
        else:
            yield from _walk(root, folder)


def _included(root: Path, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                yield from _walk(root, path)
            elif path.is_file():
                yield path.relative_to(root).as_posix()
