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

from podwright import launch
from podwright.console import ConsoleWords, serve_console
from podwright.launch import pods
from podwright.runs import Home
from podwright.spec.loader import workload_of
from tests.fixtures import run_folder
from tests.fixtures.run_folder import Shape, write_run

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
    write_run(home.runs / run, shape)


def start_live(session: launch.Session) -> launch.Run:
    """Start a run that goes on while the console is looked at."""
    folder = HOME / "live"
    folder.mkdir()
    (folder / "train.py").write_text(LIVE)
    given = {"name": "live", "command": [sys.executable, "train.py"], "code": ".", "include": ["*.py"]}
    return launch.start(session, workload_of(given, folder))


if __name__ == "__main__":
    main()
