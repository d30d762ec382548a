"""Agents: programs and workloads that look at files; what they print becomes tags.

An agent is given a line of JSON for each file, `{"path": below the root, "file": whole path}`, and prints a line for
each that it has something to say of: `{"path": ..., "tags": {"weather": "rain"}}`. Other lines are its own affair.
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
from podwright.spec import load_workload
from podwright.spec.problems import Refusal, refuse

INPUT = "batch"
"""The name of the input under which a workload finds its files: `{data.batch}` in its command."""
_LONGEST_LINE = 1 << 20
Tags = dict[bytes, dict[str, str]]


def batch_lines(root: bytes, files: Iterable[Match]) -> str:
    """Return what an agent is given."""
    lines = []
    for match in files:
        path = os.fsdecode(root + b"/" + match.path_bytes)
        lines.append(json.dumps({"path": os.fsdecode(match.path_bytes), "file": path}))
    return "".join(f"{line}\n" for line in lines)


def run_program(command: Sequence[str], lines: str) -> Iterator[str]:
    """Yield what a program prints that is given these lines on stdin; a refusal says how it ended badly."""
    try:
        done = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=False)
    except OSError as error:
        raise refuse(f"{command[0]} cannot be started: {error.strerror}", exit_code=1) from None
    yield from done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode:
        raise refuse(f"{command[0]} ended with {done.returncode}", exit_code=1)


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


def tags_of(lines: Iterable[str], batch: Iterable[Match]) -> Tags:
    """Return the tags that an agent gave to files of its batch; a tag that is none is refused."""
    paths = {match.path_bytes for match in batch}
    tags: Tags = {}
    for line in lines:
        row = _row(line)
        if row is None:
            continue
        path = os.fsencode(row["path"])
        if path in paths:
            tags.setdefault(path, {}).update(_checked(row["tags"]))
    return tags


def _row(line: str) -> dict[str, Any] | None:
    if not line.startswith("{") or len(line) > _LONGEST_LINE:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and isinstance(document.get("path"), str) and isinstance(document.get("tags"), dict):
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
