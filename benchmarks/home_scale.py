"""A home of 100,000 runs against one of 100: lists, `best` and completion; and `show` of 500 nodes against one.

    python benchmarks/home_scale.py [--pairs 10] [--json OUT] [--many 100000]

The runs are made by hand: of each what was asked and its closed record, which is all that a list reads. The index is
made once before the clock starts, as on a home that has grown. `ps_scale.py` has folders that real runs left. The run
of 500 nodes is a real one of a node, whose record every other node has, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measure import BIN, Row, alternate, bootstrap, compare, conclude, environment, machine, parser, say, start, timed
from podwright.runs import Home, RunFolder
from ps_scale import FEW, make_sample, settle

GOAL = 3.0
NODES = 500
COMPLETES = {"_PODWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "podwright show sample-0", "COMP_CWORD": "2"}
COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "ps": (["ps"], {}),
    "ps --where": (["ps", "--where", "loss<0.5 and user=me and not tag=draft", "--sort", "loss"], {}),
    "best": (["best", "sample", "--metric", "loss"], {}),
    "completion": ([], COMPLETES),
}


def fill(path: Path, sample: RunFolder, count: int) -> None:
    """A home with this many runs, a minute apart."""
    home = Home.open(path)
    asked, record = (json.loads((sample.path / name).read_text()) for name in ("run.json", "record.json"))
    began = asked["created_at"] - 60 * count
    for number in range(count):
        run_id = f"sample-{number:06d}"
        folder = home.runs / run_id
        folder.mkdir(mode=0o700)
        row = {**asked, "id": run_id, "created_at": began + 60 * number}
        (folder / "run.json").write_text(json.dumps(row))
        told = {**record, "id": run_id, "results": {"loss": 1 / (number + 1)}, "folder": str(folder)}
        (folder / "record.json").write_text(json.dumps(told))
        if (number + 1) % 20_000 == 0:
            say(f"made {number + 1} of {count} runs")


def widen(home: Path, sample: RunFolder) -> str:
    """A run of 500 nodes beside the sample, in a home of its own; its id."""
    opened = Home.open(home)
    folder = opened.runs / "wide-2222"
    shutil.copytree(sample.path, folder)
    for name in ("run.json", "record.json"):
        row = json.loads((folder / name).read_text())
        hosts = [f"host{number:03d}" for number in range(NODES)]
        wide = {"id": folder.name, "nodes": NODES, "world_size": NODES, "hosts": hosts, "folder": str(folder)}
        (folder / name).write_text(json.dumps({**row, **{key: wide[key] for key in wide if key in row}}))
    for number in range(1, NODES):
        node = folder / "record" / f"n{number}.r0"
        shutil.copytree(folder / "record" / "n0.r0", node)
        events = (node / "events.jsonl").read_text()
        (node / "events.jsonl").write_text(events.replace('"n":0', f'"n":{number}').replace('"n": 0', f'"n": {number}'))
    return folder.name


def peak_mib(words: Sequence[str], env: dict[str, str]) -> float:
    """The most memory that a command held."""
    process = subprocess.Popen([str(BIN / "podwright"), *words], env=env, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss / 1024


def main() -> int:
    """Fill two homes and ask them in turn."""
    made = parser("Commands on a home of very many runs against few.", pairs=10)
    made.add_argument("--many", type=int, default=100_000, help="runs in the larger home (default: %(default)s)")
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
        rows: list[Row] = []
        taken: dict[str, dict[str, list[float]]] = {}
        for what, (words, extra) in COMMANDS.items():
            line = [str(BIN / "podwright"), *words]
            envs = {arm: {**environment(home), **extra} for arm, home in homes.items()}
            taken[what] = alternate({arm: partial(timed, line, envs[arm], folder) for arm in homes}, options.pairs)
            rows.append(compare(f"{what} with {many} / {few}", taken[what][many], taken[what][few], GOAL))
            peaks = {arm: [peak_mib(words, envs[arm]) for _ in range(3)] for arm in homes}
            more = [most - least for most, least in zip(peaks[many], peaks[few], strict=True)]
            rows.append(Row(f"{what}: memory more", bootstrap(more, max), unit="MiB"))
        wide = widen(folder / "sample", sample)
        line = [str(BIN / "podwright"), "show"]
        shows = {name: [*line, name] for name in (wide, sample.id)}
        arms = {name: partial(timed, words, environment(folder / "sample"), folder) for name, words in shows.items()}
        taken["show"] = alternate(arms, options.pairs)
        rows.append(compare(f"show of {NODES} nodes / 1", taken["show"][wide], taken["show"][sample.id], GOAL))
    conclude("home_scale", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
