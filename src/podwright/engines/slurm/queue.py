"""What Slurm says of many jobs at once: one squeue for all runs, however many there are and whoever asks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from podwright.clients.ssh import Reach
from podwright.engines.base import Status
from podwright.engines.slurm.states import seen
from podwright.runs import RunFolder
from podwright.spec.problems import Refusal

FLOOR_S = 2.0
"""Between two questions to the controller, whatever number of runs is followed."""
ABSENT_S = 5.0
"""How long a job must be missing from the queue before that is believed: a controller that has just come back may
give an empty list."""
FORMAT = "%i|%F|%T|%r|%j"
STOP = """\
scancel --quiet --state=PENDING -- "$@"
scancel --quiet --signal=TERM --state=RUNNING -- "$@"
exit 0
"""


FORGOTTEN = Status("gone", "Slurm does not know it any more")


@dataclass(frozen=True)
class QueueRow:
    """One job or one task of an array, as squeue lists it."""

    job: str
    array: str
    state: str
    reason: str
    run: str


class SlurmQueue:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._rows: dict[str, list[QueueRow]] = {}
        self._asked_at = -FLOOR_S
        self._away = ""
        self._absent: dict[str, float] = {}
        self._final: dict[str, Status] = {}

    def handle(self, folder: RunFolder) -> str | None:
        """Slurm's name for the job of this run: of a point the task's."""
        job, index = folder.handle, folder.asked.index
        return job if job is None or index is None else f"{job}_{index + 1}"

    def find(self, run_id: str) -> str | None:
        """The job of this name, when the controller has it; a double is ended."""
        answer = self._reach.call(["squeue", "--noheader", "--me", "--states=all", f"--name={run_id}", "--format=%F"])
        jobs = sorted({int(line) for line in answer.text.split() if line.isdigit()})
        if len(jobs) > 1:
            self._reach.call(["scancel", "--", *map(str, jobs[1:])])
        return str(jobs[0]) if jobs else None

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        self._ask()
        found, missing = {}, []
        for folder in folders:
            row = self._row(folder)
            if row:
                self._absent.pop(folder.id, None)
                told = explained(folder, row.state, row.reason)
                silent = self._away and told.state == "waiting"
                found[folder.id] = replace(self._silent() if silent else told, handle=row.array)
            elif folder.id in self._final:
                found[folder.id] = self._final[folder.id]
            else:
                missing.append(folder)
        found.update(self._missing(missing))
        return found

    def _row(self, folder: RunFolder) -> QueueRow | None:
        """The job that was given for this run; where its client died before it could say which, the first of its name.

        Others of that name come from a submission that was thought lost and repeated; they start nothing.
        """
        rows, given = self._rows.get(folder.id, []), folder.handle
        return next((row for row in rows if given in (None, row.array)), None)

    def _ask(self) -> None:
        """A controller that is away has lost no run: what was known last stays, and nothing is called gone."""
        if time.monotonic() - self._asked_at < FLOOR_S:
            return
        command = ["squeue", "--noheader", "--me", "--array", "--states=all", f"--format={FORMAT}"]
        try:
            answer = self._reach.call(command)
            self._away = answer.err.strip() or "no answer" if answer.code else ""
        except Refusal as refusal:
            self._away = refusal.problems[0].message
        self._asked_at = time.monotonic()
        if not self._away:
            self._rows = {}
            for row in sorted(parse_queue(answer.text), key=lambda row: int(row.array)):
                self._rows.setdefault(row.run, []).append(row)

    def _silent(self) -> Status:
        """A run that waited when the controller was last heard of may be at work by now."""
        return Status("there", f"Slurm does not answer: {self._away.splitlines()[-1]}")

    def _missing(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Accounting knows jobs the controller has forgotten; without it their own record is all there is."""
        now = time.monotonic()
        known: dict[str, Status] = {}
        asked: dict[RunFolder, str] = {}
        for folder in folders:
            job = self.handle(folder)
            since = self._absent.setdefault(folder.id, now)
            if job is None:
                known[folder.id] = Status("gone", "it was never submitted")
            elif self._away:
                known[folder.id] = self._silent()
            elif now - since < ABSENT_S:
                known[folder.id] = Status("there")
            else:
                asked[folder] = job
        known.update(self._from_accounting(asked) if asked else {})
        return known

    def _from_accounting(self, jobs: dict[RunFolder, str]) -> dict[str, Status]:
        command = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State,Reason"]
        answer = self._reach.call([*command, f"--jobs={','.join(jobs.values())}"])
        rows = {line.split("|")[0]: line.split("|")[1:] for line in answer.text.splitlines() if line.count("|") == 2}
        found = {}
        for folder, job in jobs.items():
            state, reason = rows.get(job, ["", ""])
            found[folder.id] = explained(folder, state.split(" ")[0], reason) if state else FORGOTTEN
            if found[folder.id].state == "gone":
                self._final[folder.id] = found[folder.id]
        return found

    def look_again(self, folder: RunFolder) -> None:
        """What was found of a run does not hold any more."""
        self._final.pop(folder.id, None)
        self._absent.pop(folder.id, None)

    def stop(self, folders: Iterable[RunFolder], gently: bool) -> None:
        jobs = [job for job in map(self.handle, folders) if job]
        if not jobs:
            return
        if gently:
            self._reach.call(["sh", "-c", STOP, "podwright", *jobs])
        else:
            self._reach.call(["scancel", "--quiet", "--", *jobs])
        self._asked_at = -FLOOR_S


def explained(folder: RunFolder, state: str, reason: str) -> Status:
    """Slurm's words; a run whose predecessor failed is removed by Slurm, and that is no cancelling."""
    after = folder.asked.after
    if after and state == "CANCELLED" and reason.startswith("Dependency"):
        return Status("gone", f"{after}, which it comes after, did not succeed", "failed")
    return seen(state, reason)


def parse_queue(text: str) -> list[QueueRow]:
    """squeue's lines; a task of an array belongs to the point of that number."""
    rows = []
    for line in text.splitlines():
        parts = line.split("|", 4)
        if len(parts) == 5:
            job, array, state, reason, name = parts
            task = job.partition("_")[2]
            rows.append(QueueRow(job, array, state, reason, f"{name}-{task}" if task.isdigit() else name))
    return rows
