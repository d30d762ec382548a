"""How a scan and the catalog's answers grow with the number of files.

    python benchmarks/catalog_growth.py [--rows 10000 100000 1000000 10000000] [--trees-to 1000000] [--pairs 5]

A tree of empty files is scanned at each size up to `--trees-to`, beside `find -printf` in turn; the first scan, with
everything published. Rows of every size are then made without a tree, published, and asked what catalog.py asks: the
first time, with the file opened for it and its pages in memory, and warm. Growth is read off a column: ten times the
rows cost ten times as much where a line is straight.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from catalog import FIELDS, make_tree
from catalog_rows import QUERIES, Rival, catalog_rival, clocked, make_catalog
from measure import Row, alternate, bootstrap, conclude, machine, mean_of_middle, parser, say, seconds, start
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def scan_times(folder: Path, files: int, pairs: int) -> dict[str, list[float]]:
    """Seconds of a whole first scan, and of `find`, over a tree of so many files."""
    tree = folder / "tree"
    make_tree(tree, files)
    homes = (folder / f"home{number}" for number in range(pairs + 1))
    with (folder / "listing").open("wb") as listing:
        find = partial(subprocess.run, ["find", str(tree), "-printf", FIELDS], stdout=listing, check=True)
        arms: dict[str, Callable[[], float]] = {
            "find": partial(clocked, find),
            "scan": lambda: clocked(partial(scan, Store(next(homes)), tree, "tree")),
        }
        return alternate(arms, pairs)


def query_times(rival: Rival, pairs: int) -> dict[str, list[float]]:
    """Seconds of each question, the first time and warm."""
    taken: dict[str, list[float]] = {}
    for name in [*QUERIES, "facets"]:
        taken[f"{name}, first"] = [clocked(partial(rival.first, name)) for _ in range(pairs)]
        opened = rival.open()
        taken[f"{name}, warm"] = [clocked(partial(rival.asked[name], opened)) for _ in range(pairs + 1)][1:]
        rival.close(opened)
    return taken


def measured(folder: Path, count: int, pairs: int, trees_to: int) -> dict[str, list[float]]:
    """All times at one size; what was made for them is removed."""
    taken: dict[str, list[float]] = {}
    if count <= trees_to:
        taken |= scan_times(folder, count, pairs)
    store, making = make_catalog(folder, count)
    taken["sort, index, publish"] = [sum(value for name, value in making.items() if name != "staging")]
    taken |= query_times(catalog_rival(store), pairs)
    shutil.rmtree(folder)
    return taken


def rows_of(count: int, taken: dict[str, list[float]]) -> list[Row]:
    """Milliseconds, each beside microseconds for a row."""
    rows = []
    for name, values in taken.items():
        estimate = bootstrap([1000 * value for value in values], mean_of_middle)
        each = f"{1e6 * statistics.median(values) / count:.3g} us for a row"
        rows.append(Row(f"{name}, {count} rows", estimate, " ms", seen=each))
    return rows


def markdown(every: dict[int, dict[str, list[float]]]) -> str:
    """The medians as a table: a row for each measurement, a column for each size."""
    names = dict.fromkeys(chain.from_iterable(every.values()))
    lines = [["rows", *(f"{count:,}" for count in every)], ["---", *("---:" for _ in every)]]
    for name in names:
        lines.append([name, *(_median(taken.get(name)) for taken in every.values())])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _median(values: list[float] | None) -> str:
    return seconds(statistics.median(values)) if values else ""


def main() -> int:
    """Measure every size, the smallest first."""
    options = parser("A scan and the catalog's answers at growing sizes.", pairs=5)
    options.add_argument("--rows", type=int, nargs="+", default=SIZES, help="sizes (default: 1e4 to 1e7)")
    options.add_argument("--trees-to", type=int, default=1_000_000, help="largest tree (default: %(default)s files)")
    given = options.parse_args()
    facts = machine()
    rows: list[Row] = []
    every: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        for count in sorted(given.rows):
            say(f"{count} rows")
            folder = Path(name) / str(count)
            folder.mkdir()
            every[count] = measured(folder, count, given.pairs, given.trees_to)
            rows += rows_of(count, every[count])
            say(markdown(every))
    conclude("catalog_growth", rows, {"seconds": every, "table": markdown(every)}, facts, given.json)
    return 0


if __name__ == "__main__":
    start(main)
