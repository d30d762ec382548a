"""A part of a path in the catalog against a plain DuckDB table that is read whole.

    python benchmarks/catalog_substring.py [--rows 1000000 10000000] [--pairs 7] [--json OUT] [--keep FOLDER]

Three parts, by how many rows hold them: a frame (20), ten frames (600), and a kind of one camera (an eighteenth).
`first` opens the file before it asks, as a command does; `open` asks what is open, each time for another part than
before, so that no answer is one that was kept.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from catalog_rows import CAMERAS, catalog_rival, clocked, make_catalog, make_plain, plain_rival
from measure import Row, alternate, compare, conclude, machine, parser, say, start
from podwright.data.catalog.store import Store

SIZES = (1_000_000, 10_000_000)
PARTS = {
    "a frame": [f"label_frontleft_{frame:09d}" for frame in range(1617, 1640)],
    "ten frames": [f"rearcenter_0000000{number}" for number in range(1, 10)],
    "a kind of one camera": [f"_label_{camera.replace('_', '')}" for camera in CAMERAS],
}


def catalog_count(part: str, opened: Any) -> int:
    """How many files of the catalog have this in their path."""
    return int(opened.count_files(opened.condition(f"path~{part}")))


def plain_count(part: str, opened: Any) -> int:
    """How many rows of the plain table have it."""
    return int(opened.execute("SELECT count(*) FROM walked WHERE contains(path, ?)", [part]).fetchone()[0])


def rows_of(folder: Path, count: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """The ratios at one size, and the seconds behind them."""
    store, made = Store(folder / "home"), folder / "made.json"
    if not made.exists():
        folder.mkdir(parents=True)
        make_catalog(folder, count)
        make_plain(folder, store)
        made.write_text(json.dumps({"rows": count}))
    rivals = {"catalog": (catalog_rival(store), catalog_count), "plain": (plain_rival(folder), plain_count)}

    def first(arm: str, parts: Iterator[str]) -> int:
        rival, ask = rivals[arm]
        opened = rival.open()
        answer = ask(next(parts), opened)
        rival.close(opened)
        return answer

    rows, raw = [], {}
    for name, parts in PARTS.items():
        held = {arm: first(arm, iter(parts)) for arm in rivals}
        if held["catalog"] != held["plain"]:
            raise SystemExit(f"{name}: the answers differ: {held}")
        say(f"{name}: {held['plain']} of {count} rows")
        arms = {arm: partial(clocked, partial(first, arm, cycle(parts))) for arm in rivals}
        raw[f"{name}, first"] = alternate(arms, pairs)
        opened = {arm: rival.open() for arm, (rival, _) in rivals.items()}
        arms = {arm: partial(ask_next, ask, cycle(parts), opened[arm]) for arm, (_, ask) in rivals.items()}
        raw[f"{name}, open"] = alternate(arms, pairs)
        for arm, (rival, _) in rivals.items():
            rival.close(opened[arm])
        for kind in ("first", "open"):
            taken = raw[f"{name}, {kind}"]
            rows.append(compare(f"{name}, {kind}, {count} rows / plain DuckDB", taken["catalog"], taken["plain"]))
    return rows, raw


def ask_next(ask: Any, parts: Iterator[str], opened: Any) -> float:
    """Seconds of an answer about the next part."""
    return clocked(partial(ask, next(parts), opened))


def main() -> int:
    """Measure all sizes."""
    options = parser("A part of a path: the catalog against plain DuckDB.", pairs=7)
    options.add_argument("--rows", type=int, nargs="+", default=SIZES, help="how many rows (default: %(default)s)")
    options.add_argument("--keep", type=Path, help="the folder in which rows are made, or were made before")
    given = options.parse_args()
    facts = machine()
    rows: list[Row] = []
    raw: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        for count in given.rows:
            of_size, raw[str(count)] = rows_of((given.keep or Path(name)) / str(count), count, given.pairs)
            rows += of_size
    conclude("catalog_substring", rows, {"seconds": raw}, facts, given.json)
    return 0


if __name__ == "__main__":
    start(main)
