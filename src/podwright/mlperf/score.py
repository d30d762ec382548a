"""Scoring logs of MLPerf Training that anybody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.files.untrusted import read_untrusted
from podwright.mlperf.log import ScoredRun, entries_of, olympic_minutes, score_run
from podwright.spec.problems import refuse

MAX_BYTES = 256 << 20
_FIGURES = ["minutes", "reached", "init_minutes", "train_minutes", "eval_minutes", "epochs", "minutes_per_epoch"]


@dataclass(frozen=True)
class Score:
    """The score of a set of logs, and each of its runs."""

    benchmark: str
    files: tuple[str, ...]
    runs: tuple[ScoredRun, ...]

    @property
    def minutes(self) -> float | None:
        """Return the olympic mean."""
        return olympic_minutes([(run.minutes, run.reached) for run in self.runs])

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench score`."""
        runs = []
        for file, run in zip(self.files, self.runs, strict=True):
            runs.append({"file": file, **{name: getattr(run, name) for name in _FIGURES}})
        return {"benchmark": self.benchmark or None, "runs": runs, "minutes": self.minutes}


def score_files(paths: Sequence[Path]) -> Score:
    """Score a set of logs, which must be of one benchmark."""
    runs = [_score_file(path) for path in paths]
    names = sorted({run.benchmark for run in runs if run.benchmark})
    if len(names) > 1:
        raise refuse(f"these logs are of {' and '.join(names)}", hint="score one benchmark at a time")
    return Score("".join(names), tuple(map(str, paths)), tuple(runs))


def _score_file(path: Path) -> ScoredRun:
    try:
        text = read_untrusted(path.parent, path.name, MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        raise refuse("there is no such file", file=str(path)) from None
    except OSError as error:
        raise refuse(f"cannot be read: {(error.strerror or str(error)).lower()}", file=str(path)) from None
    entries = list(entries_of(text.splitlines()))
    if not any(entry.key == "run_start" for entry in entries):
        hint = "a log has lines like `:::MLLOG {...}`, among them one with the key run_start"
        raise refuse("is no log of MLPerf Training: it has no run_start", hint=hint, file=str(path))
    return score_run(entries)
