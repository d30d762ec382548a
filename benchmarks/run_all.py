"""Runs every benchmark that needs no GPU, one after the other, and sums them up.

    python benchmarks/run_all.py [--pairs N] [--results DIR] [--no-run]

Raw figures and summary.md go to benchmarks/results, and the ratios to history.jsonl, by which history.py says what
became worse. Results of benchmarks/gpu_step.py that lie there are summed up too, with the machine and the date they
come from. The exit code is 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import history
from measure import HEADINGS, RESULTS, Row, cells, from_json, say, start, table

HERE = Path(__file__).resolve().parent
NAMES = (
    *("startup", "trivial", "pilot_cpu", "ps_scale", "results_scale", "overhead", "live_view", "catalog", "cache_look"),
    *("container", "design_scale", "bringup_scale", "slurm_submit", "map_submitit", "slurm_cancel"),
    *("kubernetes_submit", "kubernetes_cancel", "run_returns", "exporter_cost"),
)

Document = Mapping[str, Any]


def rows_of(document: Document) -> list[Row]:
    """The findings of one benchmark."""
    return [from_json(row) for row in document["rows"]]


def machine_line(document: Document) -> str:
    """Where and when, in a line."""
    facts = document["machine"]
    gpu = [facts["gpu"]] if "gpu" in facts else []
    versions = [f"{name} {version}" for name, version in facts["versions"].items()]
    load = f"load {facts['load_at_start'][0]:.2f}"
    return ", ".join(
        [facts["date"], *gpu, facts["cpu"], f"{facts['cores']} cores", load, f"Python {facts['python']}", *versions]
    )


def summary(documents: Sequence[Document]) -> str:
    """summary.md: a table for each benchmark, and the machine beneath it."""
    lines = ["# Benchmarks", "", "Made by `make bench`; the raw figures lie beside this file.", ""]
    for document in documents:
        lines += [f"## {document['benchmark']}", "", markdown(HEADINGS), markdown(["---"] * len(HEADINGS))]
        lines += [markdown(cells(row)) for row in rows_of(document)]
        lines += ["", machine_line(document), ""]
    return "\n".join(lines[:-1]) + "\n"


def markdown(texts: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(texts)} |"


def measure_all(results: Path, pairs: int | None) -> bool:
    """Run each with its own default or the given number of rounds; false when one could not be run."""
    fine = True
    for name in NAMES:
        say(f"== {name}")
        rounds = ["--pairs", str(pairs)] if pairs else []
        command = [sys.executable, str(HERE / f"{name}.py"), *rounds, "--json", str(results / f"{name}.json")]
        fine &= subprocess.run(command, check=False).returncode == 0
    return fine


def main() -> int:
    """Measure, print one table, write summary.md."""
    made = argparse.ArgumentParser(description="Run all benchmarks that need no GPU.")
    made.add_argument("--pairs", type=int, help="rounds of each (default: each its own)")
    made.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of the figures (default: benchmarks/results)"
    )
    made.add_argument("--no-run", action="store_true", help="only sum up the figures that are there")
    options = made.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    fine = options.no_run or measure_all(options.results, options.pairs)
    paths = [options.results / f"{name}.json" for name in NAMES]
    paths += sorted(options.results.glob("gpu_step*.json"))
    documents = [json.loads(path.read_text()) for path in paths if path.exists()]
    (options.results / "summary.md").write_text(summary(documents))
    rows = [row for document in documents for row in rows_of(document)]
    print("\n" + "\n".join(table(rows)))
    history.append(options.results / history.NAME, documents)
    print("\n" + "\n".join(history.page(history.read(options.results / history.NAME))))
    return 0 if fine and not any(row.verdict == "missed" for row in rows) else 1


if __name__ == "__main__":
    start(main)
