"""What may be said when a run is started, in one piece: what the options of `podwright run` are on a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from podwright.launch.again import start_again
from podwright.launch.finding import find
from podwright.launch.labelling import TagChange, check_note, note_run, tag_runs, tags_of
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.starting import notifier, profiled, start, start_verified
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Workload

WITH_RECORD = frozenset({"like", "resume", "notify", "tags", "note", "trust"})
"""What may be said of a run that is started again from a record."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is started; each field is the option of `podwright run` of its name."""

    on: str = "local"
    repeat: int = 1
    after: Run | str | None = None
    sets: Sequence[str] = field(default_factory=tuple)
    like: Run | str | None = None
    resume: Run | str | None = None
    notify: str | None = None
    tags: Sequence[str] = ()
    note: str = ""
    profile: bool = False
    verify: bool = False
    trust: bool = False
    """Of a run that was imported: that its code may run here."""

    def changed(self) -> set[str]:
        """Return the names of what differs from what is usual."""
        usual = RunOptions()
        return {row.name for row in fields(self) if getattr(self, row.name) != getattr(usual, row.name)}


def start_with(session: Session, load: Callable[[Sequence[str]], Workload] | None, options: RunOptions) -> Run:
    """Start a workload, which `load` reads with the changes of the options, or what `like` or `resume` names."""
    tags, note = tags_of(options.tags, "tags"), check_note(options.note, "note")
    notify = notifier(options.notify)
    run = _again(session, load is not None, options) if options.like or options.resume else _new(session, load, options)
    if tags:
        tag_runs(session, [run], TagChange(tags))
    if note:
        note_run(session, run, note)
    if notify:
        notify(run)
    return run


def _new(session: Session, load: Callable[[Sequence[str]], Workload] | None, options: RunOptions) -> Run:
    if load is None:
        raise refuse("there is no workload", hint="name its file, or what to start again by `like` or `resume`")
    workload = load(tuple(options.sets))
    if options.profile:
        workload = profiled(workload)
    begin = start_verified if options.verify else start
    return begin(session, workload, options.on, options.repeat, _ref(options.after))


def _again(session: Session, has_workload: bool, options: RunOptions) -> Run:
    others = options.changed() - WITH_RECORD
    if (options.like and options.resume) or has_workload or others:
        hint = "a run that is started again takes file, target and settings from its record"
        field_name = "like" if options.like else "resume"
        raise refuse(f"goes without {', '.join(sorted(others)) or 'a workload'}", hint, field=field_name)
    ref = _ref(options.like or options.resume) or ""
    return start_again(session, find(session, ref).id, resume=bool(options.resume), trust=options.trust)


def _ref(run: Run | str | None) -> str | None:
    return run.id if isinstance(run, Run) else run
