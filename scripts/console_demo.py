"""The console over a home that has something to show: recorded runs, a live one, a pod with its design.

make console-demo            # then open the link that it prints; Ctrl-C ends it
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

import podwright
from podwright import launch
from podwright.console import ConsoleWords, serve_console
from podwright.data import Choice, ScanRequest, StatsRequest
from podwright.launch import pods
from podwright.prove import SuiteFolder
from podwright.runs import Home
from podwright.spec.loader import workload_of
from tests.fixtures import run_folder
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.priced import price_run
from tests.fixtures.repeats import Planted, write_repeats
from tests.fixtures.run_folder import Shape, write_run
from tests.fixtures.suites import write_history
from tests.fixtures.sweeps import write_sweep

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".cache" / "console-demo"
NAMES = ("segmentation", "resnet", "gpt-small", "detection")
DAYS = 12
LIVE = """
import json, math, time
for step in range(1, 2001):
    print(json.dumps({"podwright": {"step": step, "steps": 2000, "loss": 2 * math.exp(-step / 300)}}), flush=True)
    time.sleep(0.5)
"""


def main() -> None:
    """Make the home, unless it is there, and serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="how many recorded runs there are")
    parser.add_argument("--listen", default="127.0.0.1:8080", help="where the console is reached")
    asked = parser.parse_args()
    os.environ["PODWRIGHT_HOME"] = str(HOME)
    shutil.rmtree(HOME, ignore_errors=True)
    home = Home.open(HOME)
    now = time.time()
    for number in range(asked.runs):
        record(home, number, now - 86400 * DAYS * (asked.runs - number) / asked.runs)
    compared(home, now - 5400)
    suites(home)
    data(home)
    pods.add(home, ROOT / "examples" / "superpod-140.yaml")
    with launch.Session(home) as session:
        run = start_live(session)
        try:
            serve_console(ConsoleWords(asked.listen), lambda url: print(f"{'open':<9} {url}", flush=True))
        except KeyboardInterrupt:
            print(f"{'ended':<9} {run.id} is asked to end, too", flush=True)
        finally:
            run.cancel()


def record(home: Home, number: int, began: float) -> None:
    """Write a run as it was recorded then: most succeed, some fail, some miss their goal."""
    run_folder.START = began
    run = f"{NAMES[number % len(NAMES)]}-{number:04x}"
    is_whole = number % 25 == 0
    shape = Shape(run=run, seconds=20 + number % 90, retry_at=None, metrics=is_whole, pictures=is_whole, seed=number)
    if number % 9 == 4:
        shape = Shape(run=run, state="failed", retry_at=None, fail_at=30, seconds=32, metrics=is_whole, pictures=False)
    whose = {"user": ("ada", "grace", "linus")[number % 3], "team": ("vision", "language")[number % 2]}
    price_run(write_run(home.runs / run, shape), round(shape.seconds / 100, 2), **whose)


def compared(home: Home, began: float) -> None:
    """Write a sweep, and two kinds of repeats of which nothing is proven yet."""
    run_folder.START = began
    write_sweep(home.runs, "sweep-00aa")
    write_repeats(home, "plain-00aa", (61.2, 60.4, 62.0, 61.6, 60.9), Planted(driver="550.54.15"))
    write_repeats(home, "fused-00aa", (60.1, 59.2, 61.9, 59.6, 60.8), Planted(image="sha256:bbbb"))


def suites(home: Home) -> None:
    """Write a suite that became slower in its fifth round."""
    images = [f"sha256:{digit}" + "0" * 8 for digit in "111223"]
    write_history(SuiteFolder(home.path / "suites" / "nightly"), [1.0, 1.01, 1.0, 0.99, 1.12, 1.13], images)


def data(home: Home) -> None:
    """Scan a few scenes, count their labels, and freeze two selections of them."""
    tree = write_scenes(HOME / "scenes", scenes=6, frames=4)
    catalog = podwright.catalog()
    catalog.scan(ScanRequest(tree, "scenes"))
    catalog.stats(StatsRequest("scenes"))
    for name, count in (("half", 12), ("small", 6)):
        catalog.select("scenes", Choice(name, size=count, split="train=0.75,validation=0.25"))


def start_live(session: launch.Session) -> launch.Run:
    """Start a run that goes on while the console is looked at."""
    folder = HOME / "live"
    folder.mkdir()
    (folder / "train.py").write_text(LIVE)
    given = {"name": "live", "command": [sys.executable, "train.py"], "code": ".", "include": ["*.py"]}
    return launch.start(session, workload_of(given, folder))


if __name__ == "__main__":
    main()
