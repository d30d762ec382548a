"""However many results a run told, the memory of whoever reads it stays: the law of benchmarks/results_scale.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.reading.run_data import gather
from podwright.report.page import render_run
from podwright.runs import Home
from podwright.runs.seal import seal
from tests.fixtures.bad_runs import add_run

FEW, MANY = 1_000, 100_000
MAX_KB = 40 << 10
"""Of memory beyond what few take; version 0.1 took 150 MB."""
MAX_PAGE_BYTES = 1 << 20
PROGRAM = "import sys; from tests.unit.launch.test_many_results import look_at; look_at(*sys.argv[1:])"


def series_lines(began: float, count: int) -> Iterator[str]:
    """Yield what a pilot writes into a rank's series."""
    for step in range(count):
        values = {"step": step, "loss": 1 / (step + 1)}
        yield json.dumps({"t": began + step / 1000, "e": [0, 0], "v": values}) + "\n"


def result_events(began: float, count: int) -> Iterator[str]:
    """Yield result events as version 0.1 wrote them, one for each line that was told."""
    for step in range(count):
        row = {"t": began + step / 1000, "e": [0, 0], "n": 0, "q": step, "k": "result", "rank": 0}
        yield json.dumps({**row, "values": {"step": step, "loss": 1 / (step + 1)}}) + "\n"


def look_at(path: str, run_id: str) -> None:
    """Read, seal and report a run, and print the most memory that this process had."""
    home = Home.open(Path(path))
    folder = home.folder(run_id)
    seal(folder, home.read(run_id))
    page = render_run(gather(folder.path))
    home.index.close()
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"page": len(page), "peak_kb": int(peak.split()[1]), "results": home.read(run_id).results}))


def looked_at(home: Home, run_id: str) -> dict[str, object]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, str(home.path), run_id]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout)


@pytest.mark.parametrize(
    ("file", "lines"), [("rank0.series.jsonl", series_lines), ("events.jsonl", result_events)], ids=["now", "0.1"]
)
def test_many_results_take_no_more_memory_than_few(
    tmp_path: Path, file: str, lines: Callable[[float, int], Iterator[str]]
) -> None:
    home, looks = Home.open(tmp_path), []
    for run_id, count in (("few-2222", FEW), ("many-2222", MANY)):
        record = add_run(home, run_id) / "record" / "n0.r0"
        (record / "rank0.series.jsonl").unlink()
        with (record / file).open("a") as opened:
            opened.writelines(lines(home.folder(run_id).asked.created_at, count))
        looks.append(looked_at(home, run_id))
    few, many = looks
    assert many["peak_kb"] - few["peak_kb"] < MAX_KB
    assert many["page"] < MAX_PAGE_BYTES
    assert sum(1 for value in home.folder("many-2222").series() if value.name == "loss") >= MANY
