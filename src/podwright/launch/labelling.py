"""Tagging runs and writing notes on them: appended to their folders, whether they are over or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.launch.journal import note
from podwright.runs.labels import MAX_NOTE, MAX_TAGS, TAG
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from podwright.launch.run import Run
    from podwright.launch.session import Session


@dataclass(frozen=True)
class TagChange:
    """Tags that runs get, and tags that they lose."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunsTagged:
    """Runs, and the tags that they have now, all of them together."""

    runs: tuple[str, ...]
    tags: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `tag`."""
        return {"runs": list(self.runs), "tags": list(self.tags)}


@dataclass(frozen=True)
class RunNoted:
    """A run with its note."""

    run: str
    note: str

    def as_json(self) -> dict[str, str]:
        """Return the document of `note`."""
        return {"run": self.run, "note": self.note}


def tags_of(words: Iterable[str], field: str = "") -> tuple[str, ...]:
    """Return tags as they may be written on a run, or refuse the first that may not."""
    tags = tuple(dict.fromkeys(words))
    for tag in tags:
        if TAG.fullmatch(tag) is None:
            hint = "a tag is letters, digits and . _ : / - , at most 64, and begins with a letter or a digit"
            raise refuse(f'"{short(tag)}" is no tag', hint, field=field)
    if len(tags) > MAX_TAGS:
        raise refuse(f"{len(tags)} tags are too many", f"a run has at most {MAX_TAGS}", field=field)
    return tags


def check_note(text: str, field: str = "") -> str:
    """Return a note that may be written on a run, or refuse it."""
    if len(text) > MAX_NOTE:
        raise refuse(f"has {len(text):,} characters", f"a note has at most {MAX_NOTE:,}", field=field)
    return text.strip()


def tag_runs(session: Session, runs: Sequence[Run], change: TagChange) -> RunsTagged:
    """Change the tags of runs; nothing is written where one of them would have too many."""
    added, removed = tags_of(change.added), tags_of(change.removed)
    for run in runs:
        run.folder.refuse_stray()
        tags = (set(run.last_known().tags) - set(removed)) | set(added)
        if len(tags) > MAX_TAGS:
            raise refuse(f"{run.id} would have {len(tags)} tags", f"a run has at most {MAX_TAGS}")
    if added or removed:
        for run in runs:
            note(run.folder, "tags", added=list(added), removed=list(removed))
        session.home.index.put([run.last_known() for run in runs])
    tags = set().union(*(run.last_known().tags for run in runs))
    return RunsTagged(tuple(run.id for run in runs), tuple(sorted(tags)))


def note_run(session: Session, run: Run, text: str) -> RunNoted:
    """Write a note on a run, in place of the one it had; an empty text takes it away."""
    run.folder.refuse_stray()
    note(run.folder, "note", text=check_note(text))
    record = run.last_known()
    session.home.index.put([record])
    return RunNoted(run.id, record.note)
