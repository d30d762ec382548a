"""A suite in the home: its journal, which outlives client and runs, and the cells that it adds up to."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from podwright.analysis.bootstrap import median_interval
from podwright.analysis.differences import RunDifference, mixed
from podwright.analysis.settings import KINDS, Kind, Settings
from podwright.files.journal import JournalFile
from podwright.files.whole import make_private
from podwright.runs import Home
from podwright.runs.fields import numbers, whole
from podwright.runs.store import home_refusal
from podwright.spec.problems import Refusal, refuse, short

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, order=True)
class CellKey:
    """What makes a cell; the image is empty where the suite names none."""

    workload: str
    target: str
    runtime: str
    size: int
    image: str = ""

    @property
    def name(self) -> str:
        """Return the cell as it is written on a command line, behind the suite's name."""
        parts = (self.workload, self.target, self.runtime, str(self.size), self.image.replace("/", "_"))
        return "/".join(filter(None, parts))


@dataclass(frozen=True)
class Trial:
    """One run of a cell: what was asked for, and what came of it once it ended."""

    key: CellKey
    round: int
    warmup: bool
    run: str
    state: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    version: str = ""
    """What was measured: the image's digest, or that of the code where there is no image."""
    settings: Settings = field(default_factory=dict)
    """All that a cell must not mix: code, image, packages and data, by their digests and versions."""
    commit: str = ""
    folder: str = ""
    """Where its code stood, for the commits between two rounds."""
    reached: bool = True
    """Whether it reached the goal of its workload, if there is one."""
    began: float = 0.0
    """When it was asked for."""

    @property
    def counts(self) -> bool:
        """Tell whether it is a sample: it succeeded and was no warm-up."""
        return self.state == "succeeded" and not self.warmup

    @property
    def end(self) -> str:
        """Return how it ended as the gate sees it; one that missed its goal did not do its work."""
        if self.state == "succeeded" and not self.reached:
            return "missed its goal"
        return self.state or "not ended"


@dataclass(frozen=True)
class Cell:
    """The trials of one cell in one round."""

    suite: str
    key: CellKey
    round: int
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """Return its name with the suite's."""
        return f"{self.suite}/{self.key.name}"

    @property
    def runs(self) -> list[str]:
        """Return the runs that count."""
        return [trial.run for trial in self.trials if trial.counts]

    @property
    def failed(self) -> int:
        """Return how many ended otherwise."""
        return sum(bool(trial.state) and trial.state != "succeeded" for trial in self.trials)

    @property
    def version(self) -> str:
        """Return what was measured, by its digest; the latest where it changed meanwhile."""
        return next((trial.version for trial in reversed(self.trials) if trial.counts), "")

    def values(self, metric: str) -> list[float]:
        """Return the samples of a metric."""
        return [trial.values[metric] for trial in self.trials if trial.counts and metric in trial.values]

    def began(self, metric: str) -> list[float]:
        """Return when the runs behind the samples of a metric were asked for."""
        return [trial.began for trial in self.trials if trial.counts and metric in trial.values]

    def mixed(self) -> list[RunDifference]:
        """Return what its runs should have had in common and had not: the first against those after it."""
        return mixed([trial.settings for trial in self.trials if trial.counts and trial.settings])

    def check_pure(self) -> None:
        """Refuse a cell whose runs are not of one kind: its samples are of two things."""
        for row in self.mixed():
            sides = " and ".join(short(side or "none") for side in (row.a, row.b))
            message = f"{self.name} mixes {row.kind} {row.name}: {sides}"
            raise refuse(message, hint="begin a new round: `podwright bench run SUITE --again`")

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench run` lists it."""
        samples = self.values("duration_s")
        return {
            "workload": self.key.workload,
            "target": self.key.target,
            "runtime": self.key.runtime,
            "size": self.key.size,
            "n": len(samples),
            "median_s": median(samples) if samples else None,
            "interval": median_interval(samples),
            "image": self.key.image or None,
            "failed": self.failed,
            "runs": self.runs,
            "version": self.version or None,
            "mixed": [row.as_json() for row in self.mixed()] or None,
        }

    def metrics(self) -> list[str]:
        """Return what it has samples of."""
        names: dict[str, None] = {}
        for trial in self.trials:
            if trial.counts:
                names |= dict.fromkeys(trial.values)
        return list(names)


@dataclass(frozen=True)
class Accepted:
    """A change of a cell that somebody accepted: from this round on its level is another."""

    key: CellKey
    round: int
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench gate` lists it."""
        return {"cell": self.key.name, "round": self.round, "reason": self.reason}


class SuiteFolder:
    """Reads and appends; a line is written whole or not at all, whoever is killed meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = JournalFile(path / "journal.jsonl")
        """Says what was run."""

    @property
    def name(self) -> str:
        """Return the suite's name."""
        return self.path.name

    def note(self, kind: str, **fields: Any) -> None:
        """Append a line to the journal and wait until it is on disk: what it says is never done twice."""
        try:
            make_private(self.path)
            self.journal.append({"t": round(time.time(), 3), "k": kind, **fields})
        except OSError as error:
            raise home_refusal(self.path, error) from None

    def trials(self) -> list[Trial]:
        """Return what was asked for, in that order, with what came of it."""
        rows = self.journal.rows()
        ends = {row.get("run"): row for row in rows if row.get("k") == "done"}
        return [_trial(row, ends.get(row.get("run"), {})) for row in rows if row.get("k") == "asked"]

    def round(self) -> int:
        """Return the number of the newest round, 0 before the first."""
        rows = self.journal.rows()
        return max((whole(row.get("round")) or 0 for row in rows if row.get("k") == "round"), default=0)

    @property
    def file(self) -> str:
        """Return the suite's file as it was named when it was last run."""
        rows = self.journal.rows()
        return next((str(row.get("file") or "") for row in reversed(rows) if row.get("k") == "round"), "")

    def planned(self, number: int) -> dict[CellKey, int]:
        """Return how often each cell of a round was to be run; nothing where the journal is too old to say."""
        for row in reversed(self.journal.rows()):
            if row.get("k") == "round" and whole(row.get("round")) == number:
                cells = row.get("cells")
                repeats = whole(row.get("repeats")) or 0
                return {_key(cell): repeats for cell in cells} if isinstance(cells, list) else {}
        return {}

    def accepted(self) -> list[Accepted]:
        """Return the changes that somebody accepted, oldest first."""
        rows = [row for row in self.journal.rows() if row.get("k") == "accepted"]
        return [
            Accepted(_key(row.get("cell")), whole(row.get("round")) or 0, str(row.get("reason") or "")) for row in rows
        ]

    def cells(self, number: int | None = None) -> list[Cell]:
        """Return the cells of a round, by default the newest, in the order they were first run."""
        number = number or self.round()
        grouped: dict[CellKey, list[Trial]] = {}
        for trial in self.trials():
            if trial.round == number:
                grouped.setdefault(trial.key, []).append(trial)
        return [Cell(self.name, key, number, tuple(trials)) for key, trials in grouped.items()]


def _key(cell: object) -> CellKey:
    row = cell if isinstance(cell, dict) else {}
    texts = {name: str(row.get(name) or "") for name in ("workload", "target", "runtime", "image")}
    return CellKey(size=whole(row.get("size")) or 0, **texts)


def _trial(request: Mapping[str, Any], end: Mapping[str, Any]) -> Trial:
    began = request.get("t")
    return Trial(
        key=_key(request.get("cell")),
        round=whole(request.get("round")) or 0,
        warmup=bool(request.get("warmup")),
        run=str(request.get("run") or ""),
        state=str(end.get("state") or ""),
        values={name: float(value) for name, value in (numbers(end.get("values")) or {}).items()},
        version=str(end.get("version") or ""),
        settings=_settings(end.get("settings")),
        commit=str(end.get("commit") or ""),
        folder=str(end.get("folder") or ""),
        reached=end.get("reached") is not False,
        began=float(began) if isinstance(began, int | float) else 0.0,
    )


def _settings(rows: object) -> Settings:
    """Return what a line of the journal says of what was measured; of a kind that is not known it says nothing."""
    found: dict[tuple[Kind, str], str] = {}
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [kind, str(name), str(value)] if kind in KINDS:
                found[kind, name] = value
    return found


def suite_folder(home: Home, name: str) -> SuiteFolder:
    """Return the folder of a suite of this name, whether it was ever run or not."""
    if _NAME.fullmatch(name) is None:
        raise _unknown(home, name)
    return SuiteFolder(home.path / "suites" / name)


def known_suite(home: Home, name: str) -> SuiteFolder:
    """Return the folder of a suite that was run."""
    folder = suite_folder(home, name)
    if not folder.journal.path.exists():
        raise _unknown(home, name)
    return folder


def suite_names(home: Home) -> list[str]:
    """Return the suites of a home that were run."""
    names = sorted(path.parent.name for path in home.path.glob("suites/*/journal.jsonl"))
    return [name for name in names if _NAME.fullmatch(name)]


def _unknown(home: Home, name: str) -> Refusal:
    names = suite_names(home)
    hint = "run one with `podwright bench run SUITE.yaml`"
    if names:
        hint = f"suites here: {', '.join(names)}"
    return refuse(f"there is no suite {short(name)!r}", hint=hint)


def find_cell(home: Home, ref: str) -> Cell:
    """Return the one cell that `SUITE[@ROUND]/PART/...` means: the parts that tell it from the others are enough."""
    name, *parts = ref.strip("/").split("/")
    name, _, number = name.partition("@")
    folder = known_suite(home, name)
    if number and not number.isdecimal():
        raise refuse(f"{short(number)!r} is no round", hint=f"rounds of {name} are 1 to {folder.round()}")
    cells = folder.cells(int(number or 0))
    fitting = [cell for cell in cells if set(parts) <= set(cell.key.name.split("/"))]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(cell.key.name for cell in fitting or cells)
    if fitting:
        raise refuse(f"{short(ref)!r} may be any of {listed}", hint="name more of its parts")
    raise refuse(f"{name} has no cell {short('/'.join(parts))!r}", hint=f"its cells are {listed}")


def histories(folder: SuiteFolder) -> dict[CellKey, list[Cell]]:
    """Return all rounds of each cell, oldest first; a cell of another image is the same cell later."""
    cells: dict[CellKey, list[Cell]] = {}
    for number in range(1, folder.round() + 1):
        for cell in folder.cells(number):
            cells.setdefault(replace(cell.key, image=""), []).append(cell)
    return cells
