"""Slurm's controller, which may go away at any moment: a job is given to it once, and one that it lost is found out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from podwright.clients.reasons import last_line
from podwright.clients.ssh import Answer, Reach
from podwright.engines.base import Status
from podwright.engines.slurm import lost_jobs
from podwright.engines.slurm.queue import FORGOTTEN, SlurmQueue
from podwright.engines.slurm.site import run_path
from podwright.runs import RunFolder
from podwright.spec.problems import Refusal, refuse

COME_BACK_S = 60.0
"""How long a controller that does not answer is waited for when a job is submitted."""
AWAY = ("unable to contact", "socket timed out", "connection refused", "zero bytes", "transport endpoint", "timed out")
"""What Slurm's commands say when the controller is not there; the job may or may not have been taken."""


class Controller:
    """The controller of one cluster, with what it was found to have lost."""

    def __init__(self, reach: Reach, queue: SlurmQueue, clock: Callable[[], float]) -> None:
        self._reach, self._queue, self._clock = reach, queue, clock
        self._lost: dict[str, str] = {}

    def take(
        self, run_id: str, command: Sequence[str], env: Mapping[str, str], parts: Sequence[str], again: bool
    ) -> str:
        """Return Slurm's name for the job that this command submits; one that was perhaps taken is looked for first."""
        deadline, may_be_there = self._clock() + COME_BACK_S, again
        while True:
            # A controller that went away in the middle may have taken the job before: a second would be a double.
            job = self._queue.find(run_id) if may_be_there else None
            if job:
                return job
            self._give(parts)
            answer = self._try(command, env)
            if answer.code == 0:
                return answer.text.strip().partition(";")[0]
            away = any(sign in answer.err.lower() for sign in AWAY)
            if not away or self._clock() > deadline:
                raise refuse(f"Slurm did not take the job: {last_word(answer)}", exit_code=3 if away else 2)
            may_be_there = True
            self._wait(deadline)

    def lost(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return the jobs that the controller took and lost before it had saved them."""
        paths = {run_path(folder): folder for folder in folders}
        with suppress(Refusal):
            for path in lost_jobs.lost(self._reach, paths):
                if path in paths:
                    self._lost[paths[path].id] = path
        lost = [folder for folder in folders if folder.id in self._lost]
        for folder in lost:
            self._queue.look_again(folder)
        return {folder.id: replace(FORGOTTEN, unknown_to_engine=True) for folder in lost}

    def _give(self, parts: Sequence[str]) -> None:
        """Let the next job have runs whose own was lost."""
        paths = [self._lost.pop(run_id) for run_id in parts if run_id in self._lost]
        if paths:
            lost_jobs.give(self._reach, paths)

    def _try(self, command: Sequence[str], env: Mapping[str, str]) -> Answer:
        try:
            return self._reach.call(command, env=env)
        except Refusal as refusal:  # the connection broke: nobody knows whether the job was taken
            if refusal.exit_code != 3:
                raise
            return Answer(1, b"", f"{AWAY[0]}: {refusal.problems[0].message}")

    def _wait(self, deadline: float) -> None:
        while self._clock() < deadline:
            with suppress(Refusal):
                if self._reach.call(["scontrol", "ping"]).code == 0:
                    return
            time.sleep(0.5)


def last_word(answer: Answer) -> str:
    """Return what a command of Slurm said last."""
    return last_line(answer.err or answer.text, f"exit code {answer.code}").removeprefix("sbatch: error: ")
