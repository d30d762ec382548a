"""Has bandit and detect-secrets look at the tree; each thing that they name is mended, or has its reason here.

python -m scripts.suspicions            bandit looks at the code, detect-secrets at all files of the repository
python -m scripts.suspicions FOLDER     detect-secrets looks at the homes below: tests leave /tmp/pytest-of-USER
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from scripts.checks import checker

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src", "scripts", "programs", "examples")
HOME = "HOME/"
"""How the paths of files begin that lie in a home."""
READ_BYTES, AT_ONCE = 8 << 20, 200
EVERYWHERE = {
    "B101": "an assertion tells types and readers what holds; none checks what comes from outside",
    "B105": "names of settings and messages, no passwords",
    "B106": "the same",
    "B107": "the same",
    "B311": "jitter, seeds and samples: chance that hides nothing; keys and tokens come from `secrets`",
    "B403": "its use is what matters: B301 and B302",
    "B404": "Podwright starts programs; B602 and B605 would name a shell",
    "B405": "its use is what matters: B314",
    "B406": "what is made here is escaped; nothing is read",
    "B603": "lists of words, no shell between",
    "B606": "the same",
    "B607": "programs are found by PATH, as a user's shell would",
    "B608": "names in SQL are ours or quoted, values are parameters: tests/unit/data/test_hostile_catalog.py",
}
"""By what is suspected: why it is let be in all files."""
IN_FILES = {
    ("B102", "src/podwright/pilot/__main__.py"): "the pilot's own bytecode, out of its own zip",
    ("B102", "src/podwright/telemetry/carried.py"): "our own program, which travels in one file",
    ("B104", "src/podwright/engines/*"): "the nodes of a run join here; whoever does not know its token is put out",
    ("B108", "*"): "the /tmp of a node or a container of the run's own; what we write here has tempfile's names",
    (
        "B202",
        "src/podwright/pilot/ranks/setup.py",
    ): "each member is looked at just above: files, folders and links inside of the folder",
    ("B301", "src/podwright/launch/call_rank.py"): "a function, in the run that it was sent to",
    ("B301", "src/podwright/launch/call_values.py"): "where the target is trusted; all else is read as plain types",
    ("B302", "src/podwright/data/tree/walk_folders.py"): "between this process and the walkers that it started",
    ("B302", "src/podwright/pilot/__main__.py"): "the pilot's own bytecode, out of its own zip",
    (
        "B310",
        "src/podwright/telemetry/exporter/jobs.py",
    ): "https to the cluster's API, where Kubernetes says it is",
    ("B314", "scripts/second_slurm.py"): "what pytest wrote just before",
    ("B506", "src/podwright/*"): "a loader made from SafeLoader: no object is made of a tag",
    ("AWS Access Key", "tests/unit/pilot/test_sources.py"): "that of Amazon's own examples",
    ("Base64 High Entropy String", "benchmarks/results/gpu_step_*.json"): "names of kernels of CUDA's libraries",
    ("Base64 High Entropy String", "src/podwright/runs/store.py"): "the letters that ids of runs are made of",
    ("Base64 High Entropy String", "tests/unit/engines/kubernetes/test_shared_maps.py"): "a path",
    ("Base64 High Entropy String", "tests/unit/pilot/test_sources.py"): "that of Amazon's own examples",
    ("Base64 High Entropy String", "tests/unit/telemetry/*"): "names of runs",
    ("Basic Auth Credentials", "tests/*"): "made up: `me:secret`, which must be refused",
    ("Hex High Entropy String", "tests/*"): "digests of files and images, and tokens of runs that are over",
    ("Hex High Entropy String", f"{HOME}runs/*/run.json"): "the digest of the code that was sent, and its commit",
    ("Hex High Entropy String", f"{HOME}runs/*/job/order.json"): "the same",
    ("Private Key", "tests/unit/clients/test_ssh.py"): "no key between its first line and its last",
    ("Secret Keyword", "docs/architecture.md"): "what a file holds, in words",
    ("Secret Keyword", "src/podwright/bringup/plan/*"): "names in the vault and paths on hosts, not what is there",
    ("Secret Keyword", "src/podwright/clients/*"): "names of fields and of a kind of Kubernetes",
    ("Secret Keyword", "src/podwright/watch/kubernetes.py"): "the same",
    ("Secret Keyword", "tests/*"): "made up to be hidden, or names of fields and of objects of Kubernetes",
}
"""By what is suspected and where: why it is let be."""


@dataclass(frozen=True)
class Suspicion:
    """Something that a checker names."""

    kind: str
    file: str
    line: int
    text: str


def of_bandit(report: Mapping[str, Any]) -> Iterator[Suspicion]:
    """Yield what bandit named."""
    for row in report["results"]:
        yield Suspicion(row["test_id"], row["filename"].removeprefix("./"), row["line_number"], row["issue_text"])


def of_secrets(report: Mapping[str, Any]) -> Iterator[Suspicion]:
    """Yield what detect-secrets named; what it found is not printed."""
    for file, rows in report["results"].items():
        for row in rows:
            yield Suspicion(row["type"], file, row["line_number"], "may be a secret")


def without_reason(found: Iterable[Suspicion]) -> list[Suspicion]:
    """Return what nobody has given a reason for."""
    return [one for one in found if one.kind not in EVERYWHERE and not any(_is_of(one, *key) for key in IN_FILES)]


def unused(found: Iterable[Suspicion]) -> list[str]:
    """Return the reasons that are for nothing any more."""
    seen = list(found)
    kinds = {one.kind for one in seen}
    left = [kind for kind in EVERYWHERE if kind not in kinds]
    return left + [" ".join(key) for key in IN_FILES if not any(_is_of(one, *key) for one in seen)]


def _is_of(one: Suspicion, kind: str, pattern: str) -> bool:
    return one.kind == kind and fnmatch(one.file, pattern)


def homes(folder: Path) -> Iterator[Path]:
    """Yield the homes of Podwright below a folder, as tests leave them."""
    for path, folders, files in os.walk(folder):
        if "version" in files and "runs" in folders:
            folders.clear()
            yield Path(path)


def suspected_code(root: Path) -> Iterator[Suspicion]:
    """Yield what bandit suspects."""
    bandit = str(checker(root, "bandit"))
    yield from of_bandit(_report(root, bandit, "-q", "-r", "-f", "json", *CODE))


def suspected_secrets(root: Path, folder: Path | None = None) -> Iterator[Suspicion]:
    """Yield what detect-secrets suspects in the repository's files, or in those of a home."""
    secrets = [str(checker(root, "detect-secrets")), "scan", "--no-verify"]
    if folder is None:
        yield from of_secrets(_report(root, *secrets))
        return
    names = _plain_files(folder)
    for first in range(0, len(names), AT_ONCE):
        for one in of_secrets(_report(folder, *secrets, "--all-files", *names[first : first + AT_ONCE])):
            yield replace(one, file=HOME + one.file)


def _plain_files(folder: Path) -> list[str]:
    """Return the files that can be read to their end: tests leave pipes, and a terabyte of nothing, too."""
    names = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size < READ_BYTES:
            names.append(str(path.relative_to(folder)))
    return names


def _report(place: Path, *command: str) -> dict[str, Any]:
    done = subprocess.run(command, cwd=place, capture_output=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main(root: Path, folder: str = "") -> int:
    """Look, and return 0 only where nothing is left without a reason, and no reason without its use."""
    looked_at = list(homes(Path(folder))) if folder else []
    if folder:
        found = [one for home in looked_at for one in suspected_secrets(root, home)]
    else:
        found = [*suspected_code(root), *suspected_secrets(root)]
    left = without_reason(found)
    for one in left:
        print(f"suspicion {one.file}:{one.line}: {one.kind} {one.text}")
    idle = [] if folder else [reason for reason in unused(found) if HOME not in reason]
    for reason in idle:
        print(f"suspicion the reason for {reason} is for nothing any more")
    where = f"in {len(looked_at)} homes by detect-secrets" if folder else "by bandit and detect-secrets"
    print(f"suspected {len(found)} places {where}, {len(left)} without a reason")
    return int(bool(left or idle) or bool(folder and not looked_at))


if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:2]))
