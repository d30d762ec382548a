"""A policy: a filter, an action and a schedule under a name; its folder has a journal of what was done to which file.

policies/NAME/policy.json     what was asked for, and its state
policies/NAME/journal.jsonl   a line for each file that was dealt with, added when that is certain
policies/NAME/review.jsonl    what a deletion would take, for somebody to look at
policies/NAME/known.jsonl     of one that waits for new files: those that were there, and what it wrote itself
policies/NAME/agent.log       what its agent said on stderr the last time
policies/NAME/lock            held by the one command that runs it
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from podwright.data.catalog.dataset import Match
from podwright.data.catalog.store import Store
from podwright.data.tree.paths import shown
from podwright.files.journal import JournalFile, lines_of
from podwright.files.whole import make_private, write_whole

RULES = 2
State = Literal["ready", "running", "paused", "review", "done", "failed", "undone"]


@dataclass(frozen=True)
class Policy:
    """What to do with which files of a dataset, and how often."""

    name: str
    dataset: str
    where: str
    action: str
    to: str = ""
    """Where copies and archives go."""
    tag: str = ""
    program: tuple[str, ...] = ()
    """An agent that runs here: the program and its arguments."""
    workload: str = ""
    """An agent that runs as a workload: its file."""
    target: str = "local"
    every_s: float | None = None
    batch: int = 1000
    state: State = "ready"
    last_at: float = 0.0
    matched: int = 0
    rules: int = 1
    """By which its filter was written: since 2 `not` and `!=` also fit files without a value."""
    event: Literal["", "new"] = ""
    """What it waits for: `new` files, once they are settled and published."""
    retries: int = 0
    """How often a batch that failed is tried again."""
    why: str = ""
    """Of one that failed as a whole, or was paused where nobody did it."""
    tail: tuple[str, ...] = ()
    """The last lines of its agent."""
    steps: tuple[Mapping[str, str], ...] = ()
    """Of one that a file describes: what is done with a batch, one after the other; `if` is a filter of samples."""

    def is_due(self, now: float) -> bool:
        """Say whether its time has come again; one that waits for files is asked whether there are any."""
        if self.event:
            return self.state not in ("paused", "failed")
        return self.state != "paused" and self.every_s is not None and now - self.last_at >= self.every_s


@dataclass(frozen=True)
class JournalEntry:
    """What was done with one file, as it was then; `kept` is what undoing it needs."""

    path: bytes
    size: int
    mtime_ns: int
    why: str = ""
    """Of a file with which it failed."""
    kept: Mapping[str, Any] | None = None

    @property
    def same_file(self) -> tuple[bytes, int, int]:
        """Return what tells whether a file is the one that was dealt with."""
        return self.path, self.size, self.mtime_ns

    @property
    def shown(self) -> str:
        """Return the path as text."""
        return shown(self.path)

    def row(self) -> dict[str, Any]:
        """Return the entry as a row of the journal."""
        return {**asdict(self), "path": os.fsdecode(self.path)}


def entry_of(match: Match, why: str = "", kept: Mapping[str, Any] | None = None) -> JournalEntry:
    """Return an entry of a file that a filter chose."""
    return JournalEntry(match.path_bytes, match.size, match.mtime_ns, why, kept)


class PolicyFolder:
    """Where one policy is kept."""

    def __init__(self, store: Store, name: str) -> None:
        self.path = store.home / "policies" / name
        self._file = self.path / "policy.json"
        self._journal = JournalFile(self.path / "journal.jsonl")
        self.review = self.path / "review.jsonl"
        self.lock = self.path / "lock"
        self.batch = self.path / "batch.jsonl"
        self.log = self.path / "agent.log"
        self._known = JournalFile(self.path / "known.jsonl")

    def load(self) -> Policy:
        """Return the policy as it is now."""
        document = json.loads(self._file.read_bytes())
        texts = {name: tuple(document.get(name, ())) for name in ("program", "tail", "steps")}
        return Policy(**{**document, **texts})

    def save(self, policy: Policy) -> None:
        """Write a policy, whole or not at all."""
        make_private(self.path)
        write_whole(self._file, json.dumps(asdict(policy), indent=1).encode() + b"\n")

    def change(self, **values: Any) -> Policy:
        """Write it with some of its values changed."""
        policy = replace(self.load(), **values)
        self.save(policy)
        return policy

    def entries(self) -> list[JournalEntry]:
        """Return what was done, in the order in which it was."""
        return _entries(self._journal)

    def note(self, entries: Iterable[JournalEntry]) -> None:
        """Add entries to the journal, and return when they are on the disk."""
        self._journal.append(*(entry.row() for entry in entries))

    def know(self, entries: Iterable[JournalEntry]) -> None:
        """Keep which files are no news: they were there before."""
        self._known.append(*(entry.row() for entry in entries))

    def know_output(self, paths: Iterable[bytes]) -> None:
        """Keep what the policy wrote itself, whatever becomes of it."""
        rows = [JournalEntry(path, -1, -1).row() for path in sorted(paths)]
        if rows:
            self._known.append(*rows)

    def is_news(self) -> Callable[[JournalEntry], bool]:
        """Return what says of a file whether it came later, and is no output of the policy."""
        known = _entries(self._known)
        files = {entry.same_file for entry in known}
        output = {entry.path for entry in known if entry.size < 0}
        return lambda entry: entry.same_file not in files and entry.path not in output

    def clear(self) -> None:
        """Forget what was done."""
        self._journal.path.unlink(missing_ok=True)
        self.review.unlink(missing_ok=True)

    def reviewed(self) -> list[JournalEntry]:
        """Return what somebody was shown before it is deleted."""
        return _entries(JournalFile(self.review))

    def write_review(self, entries: Iterable[JournalEntry]) -> None:
        """Write down what a deletion would take."""
        write_whole(self.review, lines_of(*(entry.row() for entry in entries)))

    def end_review(self) -> None:
        """Forget what was shown."""
        self.review.unlink(missing_ok=True)


def _entries(journal: JournalFile) -> list[JournalEntry]:
    return [JournalEntry(**{**row, "path": os.fsencode(row["path"])}) for row in journal.rows()]
