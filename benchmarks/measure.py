"""What every benchmark shares: alternating measurements, intervals, verdicts, the table, the machine's facts.

Standard library only and no import of ours, so that it also works on a machine where nothing is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BIN = Path(sys.executable).parent
PACKAGES = ("podwright", "torch", "torchx", "submitit", "typer", "pydantic")
RESAMPLES = 10_000
LEAST = 5
"""Rounds below which an interval says nothing."""
BUSY = 0.5
"""Load per core from which figures are rough: something else takes part in the measurement."""


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % confidence interval."""

    value: float
    low: float
    high: float
    count: int
    """How many measurements it rests on."""


@dataclass(frozen=True)
class Row:
    """One finding; `goal` is the most it may be, and `seen` says what it was made of."""

    what: str
    estimate: Estimate
    unit: str = "x"
    goal: float | None = None
    seen: str = ""

    @property
    def verdict(self) -> str:
        """Met or missed is only said when the whole interval agrees."""
        if self.goal is None:
            return ""
        if self.estimate.count < LEAST:
            return "too few rounds"
        if self.estimate.high <= self.goal:
            return "met"
        if self.estimate.low > self.goal:
            return "missed"
        return "likely met" if self.estimate.value <= self.goal else "likely missed"


def mean_of_middle(values: Sequence[float]) -> float:
    """The mean without the highest and the lowest quarter: one disturbed run does not decide."""
    cut = max(len(values) // 4, 1 if len(values) > 2 else 0)
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def bootstrap(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], resamples: int = RESAMPLES
) -> Estimate:
    """The statistic with its percentile interval; the same values always give the same interval."""
    chance = random.Random(0)
    drawn = sorted(statistic(chance.choices(values, k=len(values))) for _ in range(resamples))
    low, high = drawn[int(0.025 * resamples)], drawn[int(0.975 * resamples) - 1]
    return Estimate(statistic(values), low, high, len(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """How many times theirs ours is, pair by pair: both of a pair met the same state of the machine."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    found = bootstrap(logs, mean_of_middle)
    return Estimate(math.exp(found.value), math.exp(found.low), math.exp(found.high), found.count)


def alternate(arms: Mapping[str, Callable[[], float]], pairs: int, warm_up: bool = True) -> dict[str, list[float]]:
    """Seconds of each arm, measured in turn; every other round goes backwards, so that a drift favours none."""
    if warm_up:
        for arm in arms.values():
            arm()
    taken: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(pairs):
        for name in list(arms)[:: -1 if number % 2 else 1]:
            taken[name].append(arms[name]())
        latest = "  ".join(f"{name} {seconds(times[-1])}" for name, times in taken.items())
        say(f"round {number + 1}/{pairs}  {latest}")
    return taken


def seconds(value: float) -> str:
    """`31.42 s`, or `18.3 ms` for what is short."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def compare(what: str, ours: Sequence[float], theirs: Sequence[float], goal: float | None = None) -> Row:
    """The ratio of two arms, with the medians behind it."""
    medians = f"{seconds(statistics.median(ours))} / {seconds(statistics.median(theirs))}"
    return Row(what, ratio(ours, theirs), goal=goal, seen=medians)


def timed(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> float:
    """Seconds from start to end of a command that must succeed and whose output nobody reads."""
    began = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{words}")
    return took


def environment(home: Path) -> dict[str, str]:
    """The shell of a user with the environment activated, and a home of Podwright's own.

    Bytecode is kept as Python keeps it: what was installed has it, and of a checkout the warm-up round writes it.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "PATH": path, "VIRTUAL_ENV": str(BIN.parent), "PODWRIGHT_HOME": str(home)}


def say(text: str) -> None:
    """Talk goes to stderr; stdout holds the table alone."""
    print(text, file=sys.stderr, flush=True)


def parser(description: str, pairs: int) -> argparse.ArgumentParser:
    """The two options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--pairs", type=int, default=pairs, help="rounds to measure (default: %(default)s)")
    made.add_argument("--json", type=Path, help="where the raw figures go (default: benchmarks/results)")
    return made


def start(main: Callable[[], int]) -> NoReturn:
    """Run a script to its exit code; an interrupt is an end like another, not a fault to trace.

    Nor does a signal to end leave a cluster or a container behind.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)


def conclude(
    name: str, rows: Sequence[Row], raw: Mapping[str, Any], facts: Mapping[str, Any], out: Path | None
) -> None:
    """Print the table and write the raw figures with the facts of the machine they come from."""
    print("\n".join(table(rows)), flush=True)
    path = out or RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    ended = {"load_at_end": list(os.getloadavg())}
    document = {"benchmark": name, "machine": {**facts, **ended}, "rows": [as_json(row) for row in rows], "raw": raw}
    path.write_text(json.dumps(document, indent=1) + "\n")
    say(f"raw figures in {path}")


def as_json(row: Row) -> dict[str, Any]:
    """A row with its verdict, as results/NAME.json has it."""
    return {**asdict(row), "verdict": row.verdict}


def from_json(row: Mapping[str, Any]) -> Row:
    """The row that `as_json` wrote."""
    return Row(row["what"], Estimate(**row["estimate"]), row["unit"], row["goal"], row["seen"])


def cells(row: Row) -> tuple[str, ...]:
    """A row as text; the nearer a ratio is to 1, the more its small digits are what counts."""
    found, unit = row.estimate, " %" if row.unit == "%" else row.unit
    digits = 1 if found.value >= 2 else 4 if 0.9 < found.value < 1.1 else 3
    interval = f"{found.low:.{digits}f} .. {found.high:.{digits}f}"
    goal = "" if row.goal is None else f"<= {row.goal:g}{unit}"
    return row.what, f"{found.value:.{digits}f}{unit}", interval, goal, row.verdict, row.seen


HEADINGS = ("measured", "value", "95 % interval", "goal", "verdict", "medians")


def table(rows: Sequence[Row]) -> list[str]:
    """Aligned columns."""
    lines = [HEADINGS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def machine() -> dict[str, Any]:
    """What the figures depend on; read before the measurement, since its load counts."""
    load = os.getloadavg()
    cores = len(os.sched_getaffinity(0))
    if load[0] > BUSY * cores:
        say(f"this machine is busy (load {load[0]:.1f} on {cores} cores): figures will be rough")
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu_model(),
        "cores": cores,
        "load_at_start": list(load),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := version_of(name))},
        "commit": commit(),
    }


def cpu_model() -> str:
    """As the kernel names it; on some machines it has no name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def version_of(package: str) -> str | None:
    """The installed version, if it is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit that was measured, with a plus when the tree differs from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
