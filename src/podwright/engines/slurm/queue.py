"""What Slurm says of many jobs at once: one squeue for all runs, however many there are and whoever asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from podwright.clients.ssh import Reach
from podwright.engines.base import Status
from podwright.engines.slurm.site import site_of
from podwright.engines.slurm.states import REASONS, seen
from podwright.pilot.protocol import whole_number
from podwright.runs import RunFolder
from podwright.runs.events import CancelAsked
from podwright.spec.problems import Refusal
from podwright.theme.words import format_duration

FLOOR_S = 2.0
"""Between two questions to the controller, whatever number of runs is followed."""
ABSENT_S = 5.0
"""How long a job must be missing from the queue before that is believed: a controller that has just come back may
give an empty list."""
SILENT_S = 60.0
"""How long a cluster that has answered may be away before that is said."""
FORMAT = "%i|%F|%T|%r|%k|%j"
COMMENT = "podwright: "
"""Begins what the batch script left with Slurm, since it found no room for it."""
STOP = """\
scancel --quiet --state=PENDING -- "$@"
scancel --quiet --signal=TERM --state=RUNNING -- "$@"
exit 0
"""
STOP_ARRAY = """\
touch -- "$2"
scancel --quiet --signal=TERM -- "$1"
scancel --quiet --state=PENDING -- "$1"
exit 0
"""
"""Of a whole array: with a state to look for, scancel would ask for each task by itself. A task that starts in between
finds the mark and leaves."""


FORGOTTEN = Status("gone", "Slurm does not know it any more")


@dataclass(frozen=True)
class QueueRow:
    """One job or one task of an array, as squeue lists it."""

    job: str
    array: str
    state: str
    reason: str
    comment: str
    run: str


class SlurmQueue:
    """What the controller knows of this user's jobs, asked at most once in two seconds, and accounting after it."""

    def __init__(self, reach: Reach, clock: Callable[[], float] = time.monotonic) -> None:
        self._reach, self._clock = reach, clock
        self._rows: dict[str, list[QueueRow]] = {}
        self._asked_at = -FLOOR_S
        self._answered_at: float | None = None
        self._away = ""
        self._absent: dict[str, float] = {}
        self._final: dict[str, Status] = {}

    def handle(self, folder: RunFolder) -> str | None:
        """Return Slurm's name for the job of this run: of a point the task's."""
        job, index = folder.handle, folder.asked.index
        if job is None or index is None:
            return job
        return f"{job}_{index + 1}"

    def find(self, run_id: str) -> str | None:
        """Return the job of this name, when the controller has it; end a double."""
        answer = self._reach.call(["squeue", "--noheader", "--me", "--states=all", f"--name={run_id}", "--format=%F"])
        numbers = map(whole_number, answer.text.split())
        jobs = sorted({number for number in numbers if number is not None})
        if len(jobs) > 1:
            self._reach.call(["scancel", "--", *map(str, jobs[1:])])
        return str(jobs[0]) if jobs else None

    def rows(self) -> Mapping[str, Sequence[QueueRow]]:
        """Return all jobs of this user by the run that they are of; nothing of a controller that does not answer."""
        self._ask()
        return {} if self._away else self._rows

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what is known of each run: from the queue, from what was final before, else from accounting."""
        self._ask()
        statuses, missing = {}, []
        for folder in folders:
            row = self._row(folder)
            if row:
                self._absent.pop(folder.id, None)
                statuses[folder.id] = self._listed(folder, row)
            elif folder.id in self._final:
                statuses[folder.id] = self._final[folder.id]
            else:
                missing.append(folder)
        statuses.update(self._missing(missing))
        return statuses

    def _listed(self, folder: RunFolder, row: QueueRow) -> Status:
        status = commented(explained(folder, row.state, row.reason), row.comment)
        # A run that waited when the controller was last heard of may be at work by now.
        if self._away and (status.state == "waiting" or self._silent().silent):
            status = self._silent()
        return replace(status, handle=row.array)

    def _row(self, folder: RunFolder) -> QueueRow | None:
        """Return the job that was given for this run, else (its client died before it could say) the first of its name.

        Others of that name come from a submission that was thought lost and repeated; they start nothing.
        """
        rows, given = self._rows.get(folder.id, []), folder.handle
        return next((row for row in rows if given in (None, row.array)), None)

    def _ask(self) -> None:
        """Ask the controller for all jobs, unless it was asked a moment ago.

        A controller that is away has lost no run: what was known last stays, and nothing is called gone.
        """
        if self._clock() - self._asked_at < FLOOR_S:
            return
        command = ["squeue", "--noheader", "--me", "--array", "--states=all", f"--format={FORMAT}"]
        self._away = ""
        try:
            answer = self._reach.call(command)
            if answer.code:
                self._away = answer.err.strip() or "no answer"
        except Refusal as refusal:
            self._away = refusal.problems[0].message
        self._asked_at = self._clock()
        if not self._away:
            self._answered_at = self._asked_at
            self._rows = {}
            for row in sorted(parse_queue(answer.text), key=lambda row: int(row.array)):
                self._rows.setdefault(row.run, []).append(row)

    def _silent(self) -> Status:
        """Return what is known of a run while the cluster does not answer, and whether that has lasted.

        Slurm's commands and ssh have their own patience: a first question that fails has waited long enough. A cluster
        that answered a moment ago is given a minute, since a controller that is started anew needs some of it.
        """
        reason = self._away.splitlines()[-1]
        if self._answered_at is not None and self._clock() - self._answered_at < SILENT_S:
            return Status("there", f"Slurm does not answer: {reason}")
        return Status("there", silent=reason)

    def _missing(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what is known of runs that are not in the queue.

        Accounting knows jobs the controller has forgotten; without it their own record is all there is.
        """
        now = self._clock()
        known: dict[str, Status] = {}
        asked: dict[RunFolder, str] = {}
        for folder in folders:
            job = self.handle(folder)
            since = self._absent.setdefault(folder.id, now)
            if self._away:
                known[folder.id] = self._silent()
            elif job is None:
                known[folder.id] = Status("gone", "it was never submitted")
            elif now - since < ABSENT_S:
                known[folder.id] = Status("there")
            else:
                asked[folder] = job
        if asked:
            known.update(self._from_accounting(asked))
        return known

    def _from_accounting(self, jobs: dict[RunFolder, str]) -> dict[str, Status]:
        command = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State,Reason,Comment"]
        answer = self._reach.call([*command, f"--jobs={','.join(jobs.values())}"])
        rows = {}
        for line in answer.text.splitlines():
            if line.count("|") == 3:
                name, *words = line.split("|")
                rows[name] = words
        statuses = {}
        for folder, job in jobs.items():
            state, reason, comment = rows.get(job, ("", "", ""))
            status = FORGOTTEN
            if state:
                status = commented(explained(folder, state.split(" ")[0], reason), comment)
            if status.state == "gone":
                self._final[folder.id] = status
            statuses[folder.id] = status
        return statuses

    def look_again(self, folder: RunFolder) -> None:
        """Forget what was found of a run: it does not hold any more."""
        self._final.pop(folder.id, None)
        self._absent.pop(folder.id, None)

    def stop_array(self, job: str, mark: str) -> None:
        """Leave a mark for all tasks of an array and end them, gently, by as few questions as one job takes."""
        self._reach.call(["sh", "-c", STOP_ARRAY, "podwright", job, mark])
        self._asked_at = -FLOOR_S

    def stop(self, folders: Iterable[RunFolder], gently: bool) -> None:
        """End the jobs of these runs; gently: what runs gets a signal and its grace."""
        jobs = [job for job in map(self.handle, folders) if job]
        if not jobs:
            return
        if gently:
            self._reach.call(["sh", "-c", STOP, "podwright", *jobs])
        else:
            self._reach.call(["scancel", "--quiet", "--", *jobs])
        self._asked_at = -FLOOR_S


def explained(folder: RunFolder, state: str, reason: str) -> Status:
    """Return what Slurm's words mean for this run.

    A run whose predecessor failed is removed by Slurm, and that is no cancelling. One that had better be under one
    switch may wait for that while nodes elsewhere are idle.
    """
    after = folder.asked.after
    if after and state == "CANCELLED" and reason.startswith("Dependency"):
        return Status("gone", f"{after}, which it comes after, did not succeed", "failed")
    status = seen(state, reason)
    if status.outcome == "cancelled" and not any(isinstance(event, CancelAsked) for event in folder.client_events()):
        return replace(status, reason="was cancelled by somebody else, with scancel")
    if status.reason == REASONS["Resources"] and folder.asked.nodes > 1:
        wait_s = site_of(folder).get("switches_s")
        if wait_s:
            words = f"{status.reason}, for {format_duration(wait_s)} at most for some under one switch"
            return replace(status, reason=words)
    return status


def commented(status: Status, comment: str) -> Status:
    """Return the status of a job that is gone, with what its script left with Slurm."""
    if status.state != "gone" or not comment.startswith(COMMENT):
        return status
    return replace(status, reason="; ".join(filter(None, [status.reason, comment.removeprefix(COMMENT)])))


def parse_queue(text: str) -> list[QueueRow]:
    """Read squeue's lines; a task of an array belongs to the point of that number."""
    rows = []
    for line in text.splitlines():
        parts = line.split("|", 5)
        if len(parts) == 6:
            job, array, state, reason, comment, name = parts
            task = job.partition("_")[2]
            run = f"{name}-{task}" if whole_number(task) is not None else name
            rows.append(QueueRow(job, array, state, reason, comment, run))
    return rows
