"""Starting a run, and what would be started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.submission import Submission, prepare
from podwright.launch.submission import start as submit
from podwright.runs import Home
from podwright.runs.store import default_home

if TYPE_CHECKING:
    from podwright.spec import Workload

PROFILE, PROFILE_STEPS = "PODWRIGHT_PROFILE", 8
"""The variable by which a program is asked for a profile, and of how many steps."""


def render(
    workload: Workload, on: str = "local", run_id: str | None = None, session: Session | None = None
) -> dict[str, str]:
    """Return what `start` would write and start, file by file, to the letter; nothing is touched."""
    # Not `Session.open()`, which would make a home where there is none.
    session = session or Session(Home(default_home()))
    with prepare(session, Submission(workload, on, run_id or f"{workload.name}-0000")) as prepared:
        return prepared.files


def start(
    session: Session,
    workload: Workload,
    on: str = "local",
    repeat: int = 1,
    after: str | None = None,
    run_id: str | None = None,
) -> Run:
    """Start a run and return once it is submitted; whoever must know its id before that gives it one of the home's."""
    return _start(session, _submission(session, workload, on, repeat, after, run_id))


def start_verified(
    session: Session, workload: Workload, on: str = "local", repeat: int = 1, after: str | None = None
) -> Run:
    """Start a run as `start` does, once all bytes of its selections were compared with what was chosen."""
    return _start(session, replace(_submission(session, workload, on, repeat, after, None), verify=True))


def _submission(
    session: Session, workload: Workload, on: str, repeat: int, after: str | None, run_id: str | None
) -> Submission:
    home = session.home
    before = home.resolve(after) if after else None
    return Submission(workload, on, run_id or home.new_id(workload.name), repeat, before)


def _start(session: Session, submission: Submission) -> Run:
    with prepare(session, submission) as prepared:
        return Run(session, submit(session, prepared))


def profiled(workload: Workload, steps: int = PROFILE_STEPS) -> Workload:
    """Return the same workload, whose program is asked to profile a few of its steps."""
    return workload.model_copy(update={"env": {**workload.env, PROFILE: str(steps)}})


def notifier(command: str | None) -> Callable[[Run], None] | None:
    """Return what sees to it that somebody is told of the end of a run; None where nobody wants to be."""
    home = default_home()
    if command is None and not (home / "settings.yaml").exists():
        return None  # the usual case, for which nothing is imported
    from podwright.launch.notify import command_of, when_ended
    from podwright.launch.settings import read_settings

    words = [] if command is None else command_of(command)
    if not words and read_settings(home).webhook is None:
        return None
    return partial(when_ended, command=words)
