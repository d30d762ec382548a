"""`podwright ps`, `ps --where` and `best` with 10,000 sealed runs in the home against 100.

    python benchmarks/ps_scale.py [--pairs 20] [--json OUT] [--many 10000]

One real run is made and copied under other names, so the folders hold what runs really leave (less the code and the
pilot's zip, which no list reads). The index is made once before the clock starts, as on a home that has grown. With
`--many 100000` it takes an hour and 20 GB.
"""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

from measure import BIN, alternate, compare, conclude, environment, machine, parser, say, start, timed
from podwright.runs import Home, RunFolder

FEW = 100
GOAL = 3.0
COMMANDS = {
    "ps": ["ps"],
    "ps --where": ["ps", "--where", "loss<0.5 and user=me and not tag=draft", "--sort", "loss"],
    "best": ["best", "sample", "--metric", "loss"],
}
LEFT_OUT = {"run.json", "pilot.pyz", "code.tar", "report.html"}
WORKLOAD = """\
name: sample
command: ["echo", '{"podwright": {"loss": 0.25}}']
"""


def make_sample(folder: Path) -> RunFolder:
    """One real run, sealed: `show` after its end closes the folder."""
    (folder / "sample.yaml").write_text(WORKLOAD)
    home = folder / "sample"
    for words in (["run", "sample.yaml", "--json"], ["show", "last"]):
        timed([str(BIN / "podwright"), *words], environment(home), folder)
    opened = Home.open(home)
    return opened.folder(next(opened.all_ids()))


def fill(path: Path, sample: RunFolder, count: int) -> None:
    """A home with this many copies of the run, a minute apart."""
    home = Home.open(path)
    files = {
        str(file.relative_to(sample.path)): file.read_bytes()
        for file in sample.path.rglob("*")
        if file.is_file() and file.name not in LEFT_OUT
    }
    began = sample.asked.created_at - 60 * count
    for number in range(count):
        asked = dataclasses.replace(sample.asked, id=f"sample-{number:05d}", created_at=began + 60 * number)
        old, new = sample.id.encode(), asked.id.encode()
        home.create(asked, {name: data.replace(old, new) for name, data in files.items()}, {})
        if (number + 1) % 2000 == 0:
            say(f"made {number + 1} of {count} runs")


def settle(homes: list[Path], folder: Path) -> None:
    """Make each index, once the folders are old enough for it to trust that it has seen them all."""
    time.sleep(2.5)
    for home in homes:
        timed([str(BIN / "podwright"), "rebuild", "--json"], environment(home), folder)


def lines_of(home: Path) -> int:
    """How much `ps` prints: both homes must give a list, or nothing was compared."""
    done = subprocess.run([str(BIN / "podwright"), "ps"], env=environment(home), capture_output=True, check=True)
    return len(done.stdout.splitlines())


def main() -> int:
    """Fill two homes and list them in turn."""
    made = parser("`podwright ps` with many runs against few.", pairs=20)
    made.add_argument("--many", type=int, default=10_000, help="runs in the larger home (default: %(default)s)")
    options = made.parse_args()
    few, many = f"{FEW} runs", f"{options.many} runs"
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        folder = Path(name)
        sample = make_sample(folder)
        homes = {few: folder / "few", many: folder / "many"}
        fill(homes[few], sample, FEW)
        fill(homes[many], sample, options.many)
        settle(list(homes.values()), folder)
        printed = {arm: lines_of(home) for arm, home in homes.items()}
        rows, taken = [], {}
        for name, words in COMMANDS.items():
            line = [str(BIN / "podwright"), *words]
            arms = {arm: partial(timed, line, environment(home), folder) for arm, home in homes.items()}
            taken[name] = alternate(arms, options.pairs)
            rows.append(compare(f"{name} with {many} / {few}", taken[name][many], taken[name][few], GOAL))
    conclude("ps_scale", rows, {"seconds": taken, "lines_printed": printed}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
