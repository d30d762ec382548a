"""A made trainer that says what became of its time and keeps stamps of its own: each phase is a sleep.

    python stamped.py --steps 12 --fail-at 8

It fails once after a step, goes on from its last checkpoint, and is hung where `--hang-at` says. What it was at, from
when to when by its monotonic clock, is a line of `stamps.ATTEMPT.jsonl` in the run's results; the wall clock is read
once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

INIT_S, COMPILE_S, RESTORE_S, TEARDOWN_S = 1.0, 1.5, 1.0, 1.5
STEP_S, WAIT_S, SAVE_S, SCORE_S = 0.8, 0.3, 0.4, 1.2
SAVE_EVERY, SCORE_EVERY = 3, 6


class Phases:
    """Takes time for phases, and notes it."""

    def __init__(self, attempt: str) -> None:
        folder = Path(os.environ["PODWRIGHT_FOLDER"]) / "results"
        folder.mkdir(exist_ok=True)
        self._file = (folder / f"stamps.{attempt}.jsonl").open("w")
        self._wall_s = time.time() - time.monotonic()
        self.spent: Counter[str] = Counter()
        self.step = 0

    def take(self, name: str, seconds: float) -> None:
        """Be at something for so long."""
        began = time.monotonic()
        time.sleep(seconds)
        ended = time.monotonic()
        self.spent[name] += ended - began
        self._note(name, began, ended)

    def _note(self, name: str, began: float, ended: float) -> None:
        row = {"phase": name, "step": self.step, "begin": began + self._wall_s, "end": ended + self._wall_s}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def tell(self) -> None:
        """Say how far it is, and what became of the time."""
        values: dict[str, float] = {"step": self.step}
        for name, seconds in self.spent.items():
            if name not in ("init", "teardown"):
                values[f"spent.{name}"] = round(seconds, 6)
        print(json.dumps({"podwright": values}), flush=True)
        self._note("told", time.monotonic(), time.monotonic())


def newest(folder: Path) -> int:
    """Return the step that the newest checkpoint is of; 0 without one."""
    return max((int(path.stem.partition("-")[2]) for path in folder.glob("step-*.pt")), default=0)


def main() -> int:
    """Train to the end, or to where it was told to fail."""
    parser = argparse.ArgumentParser(description="Take time for the phases of a training.")
    for name, default in (("steps", 12), ("fail-at", 0), ("hang-at", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    folder, rank = Path(os.environ["PODWRIGHT_CHECKPOINT"]), int(os.environ.get("RANK", "0"))
    attempt = os.environ["PODWRIGHT_ATTEMPT"]
    over = Path(os.environ["PODWRIGHT_FOLDER"]) / "results" / f"over.{attempt}"
    if rank:  # it is there as long as the first is
        while not over.exists():
            time.sleep(0.2)
        return 0
    phases = Phases(attempt)
    phases.take("init", INIT_S)
    done = newest(folder)
    if done:
        phases.take("restore", RESTORE_S)
    phases.take("compile", COMPILE_S)
    for step in range(done + 1, options.steps + 1):
        phases.step = step
        phases.take("data_wait", WAIT_S)
        phases.take("productive", STEP_S)
        if step % SAVE_EVERY == 0:
            phases.take("checkpoint_save", SAVE_S)
            fresh = folder / f".step-{step}"
            fresh.write_text("state")
            fresh.rename(folder / f"step-{step:08d}.pt")
        if step % SCORE_EVERY == 0:
            phases.take("evaluation", SCORE_S)
        phases.tell()
        if attempt == "1" and step == options.fail_at:
            return 1
        if attempt == "1" and step == options.hang_at:
            time.sleep(10_000)
    phases.take("teardown", TEARDOWN_S)
    over.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
