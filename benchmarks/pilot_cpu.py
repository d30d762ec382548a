"""What the pilot itself takes of a core while it samples once a second beside a rank that does nothing.

    python benchmarks/pilot_cpu.py [--pairs 12] [--json OUT] [--window 5] [--says plain|loss]

With `--says` the rank writes 100 lines a second: sentences without a value, or steps with a loss, which the pilot
reads. What guessing adds at this rate is measured by itself, on and off in turn, on such lines in one process: of two
runs the load of the machine differs by more.

The kernel's own account of each process of ours, over windows one after the other; one window is one measurement. A
window is a multiple of the seconds between two samples, so each holds nearly the same work.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import cast

from measure import BIN, Row, bootstrap, conclude, environment, machine, parser, say, start
from podwright.pilot.ranks.guesses import Recogniser
from podwright.pilot.ranks.results import Results
from podwright.pilot.system.journal import Journal

SETTLE_S = 5.0
"""Start-up is not what is measured here: benchmarks/trivial.py has it."""
GOALS = {"node": 0.3, "all": 0.3}
"""Percent of a core. The first is what a node of a cluster pays, the second what this machine pays."""
ROLES = {
    "node": "pilot of the node",
    "keep": "keeper of the run",
    "rank": "shim of the rank",
    "all": "all three together",
}
ALL = "all"
WORKLOAD = """\
name: idle
command: {command}
"""
GUESSING_GOAL = 0.1
LINES, LINES_PER_S = 20_000, 100
SPEAKER = "import time\nwhile True:\n    print({text!r}, flush=True)\n    time.sleep(0.01)\n"
TEXTS = {"plain": "a sentence of the length that lines have", "loss": "iter 10: loss 2.33, lr 0.001, time 12 ms"}


def cpu_s(pid: int) -> float:
    """User and system time of a process so far: utime and stime, but in nanoseconds instead of hundredths."""
    threads = Path("/proc", str(pid), "task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def find_processes(run_id: str) -> dict[str, int]:
    """The processes of ours in this run, by role; the rank itself is none of them."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            role = role_of(path, run_id)
            if role:
                found[role] = int(path.name)
    return found


def role_of(process: Path, run_id: str) -> str | None:
    """`node`, `keep` or `rank` when it is a pilot of this run."""
    try:
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    # Started as `python -I -S PILOT ROLE ...`, where the pilot may be a file or the keeper's sealed copy of it.
    if words[1:3] != ["-I", "-S"] or f"PODWRIGHT_RUN={run_id}".encode() not in variables:
        return None
    return words[4] if words[4] in ROLES else None


def watch(processes: dict[str, int], windows: int, window_s: float) -> dict[str, list[float]]:
    """Percent of a core, window by window."""
    taken: dict[str, list[float]] = {role: [] for role in processes}
    before, then = {role: cpu_s(pid) for role, pid in processes.items()}, time.monotonic()
    for number in range(windows):
        time.sleep(window_s)
        now = time.monotonic()
        after = {role: cpu_s(pid) for role, pid in processes.items()}
        for role, values in taken.items():
            values.append(100 * (after[role] - before[role]) / (now - then))
        before, then = after, now
        shares = "  ".join(f"{role} {values[-1]:.3f} %" for role, values in taken.items())
        say(f"window {number + 1}/{windows}  {shares}")
    return taken


def run_idle(folder: Path, windows: int, window_s: float, says: str | None) -> dict[str, list[float]]:
    """Start a run that sleeps, or writes lines, watch its pilots, end it."""
    command = ["sleep", f"{SETTLE_S + windows * window_s + 120:.0f}"]
    if says:
        command = ["python", "-c", SPEAKER.format(text=TEXTS[says])]
    (folder / "idle.yaml").write_text(WORKLOAD.format(command=json.dumps(command)))
    env = environment(folder / "home")

    def podwright(*words: str) -> str:
        command = [str(BIN / "podwright"), *words]
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout.strip()

    run_id = podwright("run", "idle.yaml", "--detach")
    try:
        while json.loads(podwright("show", run_id, "--json"))["state"] in ("pending", "starting"):
            time.sleep(0.2)
        time.sleep(SETTLE_S)
        return watch(find_processes(run_id), windows, window_s)
    finally:
        podwright("cancel", run_id)
        subprocess.run([str(BIN / "podwright"), "wait", run_id], env=env, capture_output=True, check=False)


class SilentJournal:
    """What results ask of the pilot's journal: its time, which passes line by line, and nobody to listen."""

    epoch = (0, 0)

    def __init__(self) -> None:
        self.t = 1.7e9

    def now(self) -> float:
        return self.t

    def say(self, kind: str, **fields: object) -> None:
        """Say nothing."""


def cost_of_lines(guesses: bool) -> float:
    """Percent of a core that reading lines with values takes, with the series that is written of them."""
    journal = SilentJournal()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        results = Results(folder, None, cast(Journal, journal), Recogniser({}, guesses, journal.now))
        began = time.process_time()
        for _ in range(LINES):
            journal.t += 1 / LINES_PER_S
            results.hear(0, TEXTS["loss"].encode())
            results.tick()
        took = time.process_time() - began
        results.close()
    return 100 * took / (LINES / LINES_PER_S)


def added_by_guessing(rounds: int) -> list[float]:
    """Points of a core, round by round."""
    cost_of_lines(True)
    return [cost_of_lines(True) - cost_of_lines(False) for _ in range(rounds)]


def main() -> int:
    """Watch one run."""
    made = parser("CPU use of an idle run's pilot, in percent of a core.", pairs=12)
    made.add_argument("--window", type=float, default=5.0, help="seconds of one measurement (default: %(default)s)")
    made.add_argument("--says", choices=TEXTS, help="what the rank writes, 100 lines a second (default: nothing)")
    options = made.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        taken = run_idle(Path(folder), options.pairs, options.window, options.says)
    taken[ALL] = [sum(values) for values in zip(*taken.values(), strict=True)]
    rows = [
        Row(name, bootstrap(taken[role], fmean), "%", GOALS.get(role))
        for role, name in {**ROLES, ALL: "all three together"}.items()
    ]
    taken["guessing"] = added_by_guessing(options.pairs)
    what = f"added by guessing, {LINES_PER_S} lines a second"
    rows.append(Row(what, bootstrap(taken["guessing"], fmean), "%", GUESSING_GOAL))
    conclude("pilot_cpu", rows, {"window_s": options.window, "percent": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
