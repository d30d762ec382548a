"""Counts label images as a run over nodes: each counts its share, and what all of them counted comes back."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.labels.rank import RESULTS
from podwright.data.launcher import Start, StartedRun
from podwright.data.policies.agents import succeeded
from podwright.data.tree.roots import Roots
from podwright.files.untrusted import open_untrusted
from podwright.spec.loader import workload_of
from podwright.spec.problems import refuse

JOB = "labels.jsonl"
_TRAVELS = ("rank.py", "counting.py", "pixels.py", "images.py")
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class LabelRun:
    """Where labels are counted: on so many nodes of a target; `sets` change the workload, as in `podwright run`."""

    start: Start
    target: str
    nodes: int = 1
    sets: Sequence[str] = ()
    say: Callable[[str], None] = lambda run_id: None
    """Told the run's id once it is submitted."""

    def count(self, roots: Roots, files: Sequence[LabelFile], classes: Sequence[LabelClass]) -> Iterator[Counted]:
        """Yield the counts of all files, as soon as the run has ended well; else nothing."""
        with tempfile.TemporaryDirectory(prefix="podwright-labels-") as name:
            folder = Path(name)
            _write_code(folder / "code", roots, files, classes)
            python = sys.executable if self.target == "local" else "python3"
            command = [python, "-m", "podwright.data.labels.rank", JOB]
            values = {"name": "labels", "code": "code", "nodes": self.nodes, "command": command}
            run = self.start(workload_of(values, folder, self.sets), self.target)
        self.say(run.id)
        ranks = succeeded(run, "that counts labels").world_size
        with tempfile.TemporaryDirectory(prefix="podwright-labels-") as name:
            run.pull([RESULTS], Path(name))
            yield from _checked(run, Path(name) / run.id, ranks, files, len(classes))


def _write_code(code: Path, roots: Roots, files: Sequence[LabelFile], classes: Sequence[LabelClass]) -> None:
    """Write what travels: the modules in a package of the same name, and the job."""
    inner = code / "podwright" / "data" / "labels"
    inner.mkdir(parents=True)
    for package in (inner, *inner.parents[:2]):
        (package / "__init__.py").touch()
    for module in _TRAVELS:
        (inner / module).write_bytes(package_files("podwright.data.labels").joinpath(module).read_bytes())
    places = [(file, *roots.below(file.path)) for file in files]
    asked = sorted({root for _, root, _ in places})
    head = {
        "roots": list(map(os.fsdecode, asked)),
        "classes": [[label.name, label.colours] for label in classes],
    }
    with (code / JOB).open("w", encoding="utf-8") as out:
        out.write(json.dumps(head) + "\n")
        for file, root, path in places:
            out.write(json.dumps([file.id, asked.index(root), os.fsdecode(path)]) + "\n")


def _checked(run: StartedRun, folder: Path, ranks: int, files: Sequence[LabelFile], classes: int) -> Iterator[Counted]:
    """Yield what the ranks left, which must be one row for each label that was asked for."""
    missing = {file.id for file in files}
    for rank in range(ranks):
        try:
            for row in _rows(folder, f"{RESULTS}/{rank}.jsonl", classes):
                missing.remove(row.file)
                yield row
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            message = f"what rank {rank} of {run.id} counted cannot be read"
            raise refuse(message, hint=f"podwright logs {run.id}", exit_code=1) from None
    if missing:
        message = f"{run.id} did not count {len(missing)} of {len(files)} labels"
        raise refuse(message, hint=f"podwright logs {run.id}", exit_code=1)


def _rows(folder: Path, name: str, classes: int) -> Iterator[Counted]:
    with open_untrusted(folder, name) as lines:
        while line := lines.readline(_LONGEST_LINE):
            number, counts, unknown, why, is_read = json.loads(line)
            if counts is not None and len(counts) != classes:
                raise ValueError(name)
            pixels = None if counts is None else list(map(int, counts))
            yield Counted(int(number), pixels, int(unknown), str(why), bool(is_read))
