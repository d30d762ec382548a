"""Arguments and options that several commands have, and how they are completed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import runs
from podwright.pilot.protocol import node_names
from podwright.spec.problems import Refusal, refuse
from podwright.spec.quantity import duration_s

if TYPE_CHECKING:
    from podwright.runs import Record


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """Return the run ids that begin like this, newest first, with their targets; silent when there is no home.

    It reads folder names only: a shell asks at every key, and the index may be what is broken.
    """
    try:
        folders = [path for path in (runs.default_home() / "runs").iterdir() if path.name.startswith(incomplete)]
        newest = sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)
    except (OSError, Refusal):
        return []
    answers = [(path.name, "a run") for path in newest[:100]]
    if "last".startswith(incomplete):
        answers.insert(0, ("last", "the newest run"))
    return answers


def complete_file(incomplete: str) -> list[str]:
    """Return the YAML files and the folders on the way to them."""
    folder = Path(incomplete)
    if incomplete and not incomplete.endswith("/"):
        folder = folder.parent
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
    names = [str(path) + "/" * path.is_dir() for path in entries]
    return [name for name in names if name.startswith(incomplete) and name.endswith(("/", ".yaml", ".yml"))]


def complete_target(incomplete: str) -> list[tuple[str, str]]:
    """Return the targets that begin like this: this machine, and the pods that are known; silent without a home."""
    try:
        names = sorted(path.stem for path in (runs.default_home() / "pods").glob("*.yaml"))
    except (OSError, Refusal):
        names = []
    targets = [("local", "this machine"), *((name, "a pod") for name in names)]
    return [target for target in targets if target[0].startswith(incomplete)]


def seconds_of(text: str, field: str) -> float:
    """Return a time such as `2d` or `5m` in seconds, or refuse it by the option's name."""
    try:
        return duration_s(text)
    except Refusal as refusal:
        problem = refusal.problems[0]
        raise refuse(problem.message, problem.hint, field=field) from None


def ranks_of(text: str, run_id: str, count: int) -> frozenset[int]:
    """Return the ranks that `0,3-5` names; refuse what would silently print nothing."""
    ranks: set[int] = set()
    for part in text.split(","):
        if not (span := re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())):
            raise refuse(f'"{text}" names no ranks', "write it like `0,3-5`", field="--rank")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first or last >= count:
            raise refuse(f"{run_id} has no {part.strip()}", f"it has 0 to {count - 1}", field="--rank")
        ranks.update(range(first, last + 1))
    return frozenset(ranks)


def node_of(text: str, record: Record) -> int:
    """Return the number of the node of this name, the one that every command shows, or of this number."""
    names = node_names(dict(enumerate(record.hosts)))
    if text in names.values():
        return next(number for number, name in names.items() if name == text)
    if re.fullmatch("[0-9]{1,9}", text) and int(text) < record.nodes:
        return int(text)
    known = f"they are {', '.join(names.values())}, or by number" if names else "they have numbers"
    hint = f"{known} from 0 to {record.nodes - 1}"
    raise refuse(f"{record.id} has no node {text}", hint, field="--node")


RunRef = Annotated[
    str,
    typer.Argument(metavar="RUN", help="An id, an unambiguous start of one, or `last`.", autocompletion=complete_run),
]
RunRefs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Ids, unambiguous starts of them, or `last`.", autocompletion=complete_run),
]
WorkloadFile = Annotated[
    Path, typer.Argument(metavar="WORKLOAD", help="The workload's file.", autocompletion=complete_file)
]
WorkloadOrHere = Annotated[
    Path | None,
    typer.Argument(
        metavar="[WORKLOAD]", help="The workload's file; left out: ./workload.yaml.", autocompletion=complete_file
    ),
]
Target = Annotated[
    str,
    typer.Option("--on", metavar="TARGET", help="Where: `local`, or POD[:SCHEDULER].", autocompletion=complete_target),
]
Sets = Annotated[
    list[str],
    typer.Option("--set", metavar="FIELD=VALUE", help="Use this instead of what the file says; may be repeated."),
]
Node = Annotated[str, typer.Option("--node", metavar="N", help="The node of the run: its name, or its number from 0.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
