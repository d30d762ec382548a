"""Where a run's code came from: the commit it stood on, what was changed since, the folder; and what stayed behind."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.engines.code_files import NO_PROGRAMS
from podwright.files.untrusted import open_untrusted
from podwright.pilot.protocol import whole_number

DIFF = "spec/code.diff"
MAX_DIFF_BYTES = 1 << 20
MISSING = re.compile(r"No such file or directory: '([^']{1,4096})'")
"""How Python names a file that is not there."""
MAX_COMMITS = 50
STARTED_IN = re.compile(r"/code-[0-9a-f]+/")
"""Of the folder that ranks start in, the last part."""


@dataclass(frozen=True)
class CodeOrigin:
    """A code folder's place in its history."""

    folder: str
    commit: str | None = None
    changed: bool = False
    diff: bytes = b""
    """What was changed since the commit, in files that git tracks; the run's copy of the code has all."""

    def as_json(self) -> dict[str, Any]:
        """Return what run.json holds of it."""
        return {"folder": self.folder, "commit": self.commit, "changed": self.changed}


def origin_of(folder: Path) -> CodeOrigin:
    """Ask git where a code folder stands; without git, or without a commit, there is only the folder."""
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no", "--", ".")
    if status is None:
        return CodeOrigin(str(folder))
    lines = status.decode(errors="replace").splitlines()
    oid = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if oid == "(initial)":
        return CodeOrigin(str(folder))
    changed = any(not line.startswith("#") for line in lines)
    diff = b""
    if changed:
        diff = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "HEAD", "--", ".") or b""
    return CodeOrigin(str(folder), oid, changed, diff[:MAX_DIFF_BYTES])


def commits_between(folder: Path, good: str, bad: str) -> list[str]:
    """Return the commits that one has and the other has not, newest first, each with its first line."""
    if not all(re.fullmatch(r"[0-9a-f]{7,64}", commit) for commit in (good, bad)) or not folder.is_dir():
        return []
    text = _git(folder, "log", "--no-color", "--format=%h %s", f"--max-count={MAX_COMMITS}", f"{good}..{bad}", "--")
    return (text or b"").decode(errors="replace").splitlines()


def _git(folder: Path, *command: str) -> bytes | None:
    return _ask_git(folder, command, _no_filters(folder))


def _ask_git(folder: Path, command: Sequence[str], settings: Mapping[str, str]) -> bytes | None:
    first = whole_number(os.environ.get("GIT_CONFIG_COUNT", "")) or 0
    env = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    line = ["git", *NO_PROGRAMS, "-C", str(folder), *command]
    try:
        done = subprocess.run(line, capture_output=True, check=False, env=env)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _no_filters(folder: Path) -> dict[str, str]:
    """Return settings without the programs that the repository itself names to filter files with; the user's stay."""
    listing = ("config", "--null", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
    texts = os.fsdecode(_ask_git(folder, listing, {}) or b"").split("\0")
    own = [name for scope, name in zip(texts[::2], texts[1::2], strict=False) if scope in ("local", "worktree")]
    settings: dict[str, str] = {}
    for filter_name in {name.rpartition(".")[0] for name in own}:
        settings |= {f"{filter_name}.{what}": "" for what in ("clean", "smudge", "process")}
        settings[f"{filter_name}.required"] = "false"
    return settings


def left_behind(code: Mapping[str, Any] | None, run: Path, lines: Iterable[str]) -> str | None:
    """Say that a file which a rank missed lies in the code folder here and did not travel; None: no such file."""
    folder = (code or {}).get("folder")
    if not isinstance(folder, str):
        return None
    for name in _missed(lines):
        if Path(folder, name).exists() and not _travelled(run, name):
            return f"{name} is ignored by git and did not travel: name it under `data:` or `include:`"
    return None


def _missed(lines: Iterable[str]) -> Iterator[str]:
    """Yield the files that ranks looked for in the folder they started in; one may be named by its whole path there."""
    for line in lines:
        for named in MISSING.findall(line):
            name = os.path.normpath(STARTED_IN.split(named)[-1])
            if not name.startswith(("/", "..")):
                yield name


def _travelled(run: Path, name: str) -> bool:
    try:
        with open_untrusted(run, "job/code.tar") as tar, tarfile.open(fileobj=tar) as archive:
            return any(member == name or member.startswith(f"{name}/") for member in archive.getnames())
    except (OSError, tarfile.TarError):
        return True
