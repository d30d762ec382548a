"""Makes Debian root file systems and keeps them by recipe.

Where packages come from is what this machine's own apt settings say.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from podwright.files.locks import wait_for
from podwright.files.whole import whole_path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "images"

# What of the machine's settings decides how packages are fetched; the rest is the machine's own business.
_FETCHING = re.compile(r"Acquire::(Check-Valid-Until|Retries|https?::(Proxy|Verify|CaInfo)\b.*) \"(.+)\";")
_LEFT_OUT = ("doc", "info", "locale", "man")


@dataclass(frozen=True)
class Recipe:
    """A root file system before it is made."""

    suite: str
    packages: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Lines as in sources.list."""
    settings: tuple[str, ...] = ()
    """Lines as in apt.conf."""

    @property
    def key(self) -> str:
        """Names what comes out; the same packages from another mirror are the same packages."""
        text = json.dumps([self.suite, self.packages, _LEFT_OUT])
        return f"{self.suite}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def command(self, target: Path) -> list[str]:
        """Gives the command that makes it."""
        return [
            "mmdebstrap",
            "--quiet",
            "--variant=essential",
            f"--include={','.join(self.packages)}",
            *(f"--aptopt={line}" for line in self.settings),
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT),
            self.suite,
            str(target),
            *self.sources,
        ]


def sources(index: str, codename: str, suite: str) -> tuple[str, ...]:
    """Gives source lines for a suite from the machine's own, told by apt as lines of origin, address, suite and part.

    Repositories of others than the distribution have no such suite.
    """
    rows = (line.split() for line in index.splitlines())
    kept = [row[1:] for row in rows if len(row) == 4 and row[0] in ("Debian", "Ubuntu")]
    renamed = ((uri, re.sub(rf"^{codename}\b", suite, release), part) for uri, release, part in kept)
    return tuple(dict.fromkeys(f"deb {uri} {release} {part}" for uri, release, part in renamed))


def settings(dump: str) -> tuple[str, ...]:
    """Gives those lines of `apt-config dump` without which this machine might fetch nothing."""
    return tuple(line for line in dump.splitlines() if _FETCHING.fullmatch(line))


def codename() -> str:
    """Gives the suite of this machine."""
    found = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("/etc/os-release does not name a suite: is this Debian?")
    return found[1]


def made(suite: str, *packages: str) -> Path:
    """Gives the folder of a root with these packages, which is made when there is none yet. Not to be written to."""
    recipe = Recipe(suite, tuple(sorted(packages)))
    CACHE.mkdir(parents=True, exist_ok=True)
    root = CACHE / recipe.key
    with wait_for(CACHE / f"{recipe.key}.lock"):
        if not root.exists():
            with whole_path(root) as part:
                _make(_from_this_machine(recipe), part)
    return root


def image(suite: str) -> Path:
    """Gives the root that tests start as a container: a Python, and next to nothing else."""
    return made(suite, "python3")


def _from_this_machine(recipe: Recipe) -> Recipe:
    rows = "--format=$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)"
    found = sources(_said("apt-get", "indextargets", rows, "Created-By: Packages"), codename(), recipe.suite)
    if not found:
        raise SystemExit("apt knows no archive of Debian: try `apt-get update`")
    return replace(recipe, sources=found, settings=settings(_said("apt-config", "dump")))


def _make(recipe: Recipe, target: Path) -> None:
    done = subprocess.run(["nice", *recipe.command(target)], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"mmdebstrap could not make {target.name}: exit code {done.returncode}")


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
