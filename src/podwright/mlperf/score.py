"""Scoring logs of MLPerf Training that anybody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from podwright.files.untrusted import read_untrusted
from podwright.mlperf.log import ScoredRun, entries_of, olympic_minutes, score_run
from podwright.mlperf.rules import DROPPED, LogWarning, check_log
from podwright.spec.problems import refuse

MAX_BYTES = 256 << 20
_FIGURES = ["minutes", "reached", "init_minutes", "train_minutes", "eval_minutes", "epochs", "minutes_per_epoch"]


@dataclass(frozen=True)
class Score:
    """The score of a set of logs, and each of its runs."""

    benchmark: str
    files: tuple[str, ...]
    runs: tuple[ScoredRun, ...]
    warnings: tuple[LogWarning, ...] = ()

    @property
    def refused(self) -> bool:
        """Tell whether the times of a log cannot be believed."""
        return any(warning.refuses for warning in self.warnings)

    @property
    def dropped(self) -> int:
        """Return how many of the best, and of the worst, runs do not count."""
        return DROPPED.get(self.benchmark, 1)

    @property
    def minutes(self) -> float | None:
        """Return the olympic mean; None where a log is refused."""
        if self.refused:
            return None
        return olympic_minutes([(run.minutes, run.reached) for run in self.runs], self.dropped)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench score`."""
        runs = []
        for file, run in zip(self.files, self.runs, strict=True):
            runs.append({"file": file, **{name: getattr(run, name) for name in _FIGURES}})
        warnings = [warning.as_json() for warning in self.warnings]
        return {"benchmark": self.benchmark or None, "runs": runs, "minutes": self.minutes, "warnings": warnings}


def score_files(paths: Sequence[Path]) -> Score:
    """Score a set of logs, which must be of one benchmark."""
    scored = [_score_file(path) for path in paths]
    runs = [run for run, _ in scored]
    names = sorted({run.benchmark for run in runs if run.benchmark})
    if len(names) > 1:
        raise refuse(f"these logs are of {' and '.join(names)}", hint="score one benchmark at a time")
    warnings = chain.from_iterable(rows for _, rows in scored)
    return Score("".join(names), tuple(map(str, paths)), tuple(runs), tuple(warnings))


def _score_file(path: Path) -> tuple[ScoredRun, list[LogWarning]]:
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
    return score_run(entries), check_log(str(path), entries)
