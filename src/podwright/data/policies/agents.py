"""Agents: programs and workloads that look at files; what they print becomes tags.

An agent is given a line of JSON for each file, `{"path": below the root, "file": whole path}`, and prints a line for
each that it has something to say of: `{"path": ..., "tags": {"weather": "rain"}}`. What it writes below the root it
names, `{"path": ..., "wrote": [PATH]}`, and is not given. Other lines are its own affair.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from podwright.data.catalog.dataset import Match
from podwright.data.launcher import Start, StartedRun
from podwright.data.policies.tags import check_tag
from podwright.data.tree.roots import Roots
from podwright.spec import load_workload
from podwright.spec.problems import Refusal, refuse

INPUT = "batch"
"""The name of the input under which a workload finds its files: `{data.batch}` in its command."""
_LONGEST_LINE = 1 << 20
_TAIL_BYTES, _TAIL_LINES = 8192, 10
Tags = dict[bytes, dict[str, str]]


def batch_lines(roots: Roots, files: Iterable[Match]) -> str:
    """Return what an agent is given."""
    lines = []
    for match in files:
        path = os.fsdecode(roots.whole(match.path_bytes))
        lines.append(json.dumps({"path": os.fsdecode(match.path_bytes), "file": path}))
    return "".join(f"{line}\n" for line in lines)


def run_program(command: Sequence[str], lines: str, log: Path) -> Iterator[str]:
    """Yield what a program prints that is given these lines on stdin; a refusal says how it ended badly.

    What it says on stderr goes into the log: its last lines are what somebody wants to see of one that failed.
    """
    with log.open("wb") as said:
        try:
            done = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, stderr=said, check=False)
        except OSError as error:
            raise refuse(f"{command[0]} cannot be started: {error.strerror}", exit_code=1) from None
    yield from done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode:
        raise refuse(f"{command[0]} ended with {done.returncode}", hint=f"what it said: {log}", exit_code=1)


def last_lines(log: Path) -> tuple[str, ...]:
    """Return the last lines of a log; none where there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(lines[-_TAIL_LINES:])


def run_workload(start: Start, file: str, target: str, batch: Path) -> Iterator[str]:
    """Yield what the ranks of a workload print that is given the batch's file as an input."""
    code = load_workload(file, [f"data.{INPUT}={batch}"]).code_folder
    if code is None:
        run = start(load_workload(file, [f"data.{INPUT}={batch}"]), target)
    else:
        # What lies in the code travels with the run: this folder of ours need not exist where it runs.
        inside = Path(code) / f"podwright-{os.getpid()}.batch.jsonl"
        inside.write_bytes(batch.read_bytes())
        try:
            # By a path from the workload's folder: an absolute one would mean the target's own.
            below = os.path.relpath(inside, Path(file).resolve().parent)
            run = start(load_workload(file, [f"data.{INPUT}={below}"]), target)
        finally:
            inside.unlink()
    succeeded(run, "of the agent")
    for line in run.folder.log_lines():
        yield line.text


def succeeded(run: StartedRun, what: str) -> Any:
    """Wait for the end of a run and return its record; one that did not succeed is refused."""
    record = run.wait()
    if record.state != "succeeded":
        raise refuse(f"the run {run.id} {what} {record.state}", hint=f"podwright show {run.id}", exit_code=1)
    return record


def written_by(lines: Iterable[str]) -> set[bytes]:
    """Return the files below the root that an agent says it wrote: its own output is no news to it."""
    written = set()
    for line in lines:
        row = _row(line, "wrote")
        if row is not None and isinstance(row["wrote"], list):
            written |= {os.fsencode(path) for path in row["wrote"] if isinstance(path, str)}
    return written


def tags_of(lines: Iterable[str], batch: Iterable[Match]) -> Tags:
    """Return the tags that an agent gave to files of its batch; a tag that is none is refused."""
    paths = {match.path_bytes for match in batch}
    tags: Tags = {}
    for line in lines:
        row = _row(line, "tags")
        if row is None or not isinstance(row["tags"], dict):
            continue
        path = os.fsencode(row["path"])
        if path in paths:
            tags.setdefault(path, {}).update(_checked(row["tags"]))
    return tags


def _row(line: str, field: str) -> dict[str, Any] | None:
    if not line.startswith("{") or len(line) > _LONGEST_LINE:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and isinstance(document.get("path"), str) and field in document:
        return document
    return None


def _checked(tags: dict[str, Any]) -> dict[str, str]:
    checked = {}
    for name, value in tags.items():
        try:
            checked[name] = check_tag(name, str(value))
        except Refusal as refusal:
            raise refuse(f"the agent told a tag that is none: {refusal.problems[0].message}", exit_code=1) from None
    return checked
