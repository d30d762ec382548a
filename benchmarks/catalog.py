"""The catalog against what people use instead: `find`, a plain DuckDB table, SQLite, and decoding label images alone.

    python benchmarks/catalog.py [--pairs 5] [--json OUT] [--files 100000] [--rows 1000000] [--images 24]
                                   [--alone [--keep FOLDER]]

Scan: `find -printf` with the same fields, warm, over a tree of empty files; the time a processor was busy beside that
of the wall, since a busy machine stretches both. All columns are in memory and, as `find` sorts nothing, in no order;
sorted, they are the tables of a catalog, and published, with indexes, what a scan leaves on the disk. Queries: the same
rows as a catalog, as a DuckDB table of paths and sizes in no order, and as a SQLite table with an index on each column;
answers are compared before a clock starts. `first` opens the file before it asks, with its pages in memory; `warm` has
asked before. Labels: all images decoded by as many threads and thrown away.

`--alone` is for very many rows: each query is asked once of plain DuckDB, which must give the same answer and whose
time is kept, and then of the catalog alone; SQLite, whose table and indexes would not fit on the disk, is left out.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from PIL import Image, ImageDraw

from catalog_rows import (
    CAMERAS,
    KINDS,
    QUERIES,
    SCENES,
    catalog_rival,
    clocked,
    lite_rival,
    make_catalog,
    make_lite,
    make_plain,
    plain_rival,
    sizes,
)
from measure import (
    Row,
    alternate,
    bootstrap,
    compare,
    conclude,
    machine,
    mean_of_middle,
    parser,
    say,
    seconds,
    start,
)
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.scan import build_tables, scan
from podwright.data.catalog.schema import columns_query, placed_statement
from podwright.data.catalog.staging import Staging
from podwright.data.catalog.store import Store
from podwright.data.labels.classes import classes_of
from podwright.data.labels.counting import count_images
from podwright.data.labels.images import LabelFile
from podwright.data.tree.layouts import A2D2
from podwright.data.tree.walk import walk

CORES = len(os.sched_getaffinity(0))
WALK_GOAL, SCAN_GOAL, LABEL_GOAL = 1.2, 2.0, 1.3
ALONE_GOALS = {("scattered", "warm"): 50.0, ("scattered", "first"): 300.0}
"""Milliseconds, at 1e8 rows."""
FIELDS = r"%p\0%m\0%s\0%T@\0%C@\0%i\0%U\0%G\0"


def make_tree(root: Path, files: int) -> None:
    """A tree in A2D2's layout, of empty files."""
    per_folder = files // (SCENES * len(CAMERAS) * len(KINDS))
    folders: set[str] = set()
    for folder, stem, ext in _names(per_folder):
        if folder not in folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        (root / folder / f"{stem}.{ext}").touch()


def _names(per_folder: int) -> Sequence[tuple[str, str, str]]:
    names = []
    for scene in range(SCENES):
        name = f"201808{scene + 1:02d}_145028"
        for camera in CAMERAS:
            for kind, ext in KINDS:
                stem = f"{name.replace('_', '')}_{kind}_{camera.replace('_', '')}"
                names += [(f"{name}/{kind}/cam_{camera}", f"{stem}_{frame:09d}", ext) for frame in range(per_folder)]
    return names


def busy_s(who: int) -> float:
    """Seconds that a processor was busy for us, or for those of our processes that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def clocked_both(work: Callable[[], Any], busy: list[float]) -> float:
    """Seconds that some work takes; those of a processor are kept beside."""
    every = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = sum(map(busy_s, every))
    taken = clocked(work)
    busy.append(sum(map(busy_s, every)) - before)
    return taken


def all_columns(tree: Path, sort: bool) -> None:
    """Walk a tree and make every column of its files in memory, or, sorted, the tables of a catalog."""
    batches = walk(os.fsencode(tree), CORES)
    with duckdb.connect() as connection:
        staging = Staging(connection, Path(":memory:"))
        for batch in batches:
            staging.take(batch)
        staging.finish()
        if sort:
            build_tables(connection, A2D2)
        else:
            connection.execute(placed_statement(A2D2))
            connection.sql(columns_query(A2D2)).to_arrow_table()


def scan_rows(folder: Path, files: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """The walk alone, with all columns, and a whole first scan with indexes and publishing, against `find`."""
    tree = folder / "tree"
    make_tree(tree, files)
    homes = (folder / f"home{number}" for number in range(10_000))
    busy: dict[str, list[float]] = {"find": [], "walk": [], "columns": [], "sorted": [], "scan": [], "quick": []}
    known = Store(next(homes))
    scan(known, tree, "tree")
    with (folder / "listing").open("wb") as listing:
        command = ["find", str(tree), "-printf", FIELDS]
        works: dict[str, Callable[[], Any]] = {
            "find": partial(subprocess.run, command, stdout=listing, check=True),
            "walk": lambda: list(walk(os.fsencode(tree), CORES)),
            "columns": partial(all_columns, tree, sort=False),
            "sorted": partial(all_columns, tree, sort=True),
            "scan": lambda: scan(Store(next(homes)), tree, "tree"),
            "quick": lambda: rescan(known, "tree"),
        }
        arms = {name: partial(clocked_both, work, busy[name]) for name, work in works.items()}
        taken = alternate(arms, pairs)
    rows = [
        compare(f"walk of {files} files / find -printf", taken["walk"], taken["find"], WALK_GOAL),
        compare("walk / find -printf, busy processor", busy["walk"][-pairs:], busy["find"][-pairs:]),
        compare("walk, all columns / find -printf", taken["columns"], taken["find"]),
        compare("walk, all columns, busy processor", busy["columns"][-pairs:], busy["find"][-pairs:]),
        compare("walk, all columns, sorted / find -printf", taken["sorted"], taken["find"]),
        compare("scan, published / find -printf", taken["scan"], taken["find"], SCAN_GOAL),
        compare("scan, published, busy processor", busy["scan"][-pairs:], busy["find"][-pairs:]),
        compare("--quick, nothing changed / find -printf", taken["quick"], taken["find"]),
    ]
    return rows, {"wall": taken, "busy": busy}


def alone_rows(folder: Path, count: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """Each query on the catalog, the first time and warm, in milliseconds; beside it one answer of a plain table."""
    say(f"making {count} rows")
    made, store = folder / "made.json", Store(folder / "home")
    if not made.exists():
        _, making = make_catalog(folder, count)
        making["plain"] = clocked(partial(make_plain, folder, store))
        made.write_text(json.dumps({"rows": count, "seconds": making}))
    raw: dict[str, Any] = {"made": json.loads(made.read_text())}
    if raw["made"]["rows"] != count:
        raise SystemExit(f"{folder} holds {raw['made']['rows']} rows, not {count}")
    rival, plain = catalog_rival(store), plain_rival(folder)
    rows: list[Row] = []
    for name in [*QUERIES, "facets"]:
        began = time.perf_counter()
        theirs = plain.first(name)
        raw[f"{name}, plain DuckDB"] = time.perf_counter() - began
        if str(rival.first(name)) != str(theirs):
            raise SystemExit(f"{name}: the answers differ: {rival.first(name)}, {theirs}")
        raw[f"{name}, first"] = [clocked(partial(rival.first, name)) for _ in range(pairs)]
        opened = rival.open()
        raw[f"{name}, warm"] = [clocked(partial(rival.asked[name], opened)) for _ in range(pairs + 1)][1:]
        rival.close(opened)
        for kind in ("first", "warm"):
            milliseconds = [1000 * taken for taken in raw[f"{name}, {kind}"]]
            seen = f"plain DuckDB {seconds(raw[f'{name}, plain DuckDB'])}"
            estimate = bootstrap(milliseconds, mean_of_middle)
            rows.append(Row(f"{name}, {kind}, {count} rows", estimate, " ms", ALONE_GOALS.get((name, kind)), seen))
    return rows, {**raw, "bytes": sizes(folder, store)}


def query_rows(folder: Path, count: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """Each query on the catalog, on a plain table, and on SQLite; the first time, and warm."""
    say(f"making {count} rows")
    store, _ = make_catalog(folder, count)
    make_plain(folder, store)
    make_lite(folder, store)
    rivals = {"catalog": catalog_rival(store), "plain": plain_rival(folder), "sqlite": lite_rival(folder)}
    rows: list[Row] = []
    raw: dict[str, Any] = {}
    for name in [*QUERIES, "facets"]:
        answers = {arm: rival.first(name) for arm, rival in rivals.items()}
        if len(set(map(str, answers.values()))) != 1:
            raise SystemExit(f"{name}: the answers differ: {answers}")
        # Before anything is open: DuckDB would share what another connection has read.
        first = {arm: partial(clocked, partial(rival.first, name)) for arm, rival in rivals.items()}
        raw[f"{name}, first"] = alternate(first, pairs)
        opened = {arm: rival.open() for arm, rival in rivals.items()}
        warm = {arm: partial(clocked, partial(rival.asked[name], opened[arm])) for arm, rival in rivals.items()}
        raw[f"{name}, warm"] = alternate(warm, pairs)
        for arm, rival in rivals.items():
            rival.close(opened[arm])
        for kind in ("first", "warm"):
            taken = raw[f"{name}, {kind}"]
            rows.append(compare(f"{name}, {kind} / plain DuckDB", taken["catalog"], taken["plain"]))
            rows.append(compare(f"{name}, {kind} / SQLite", taken["catalog"], taken["sqlite"]))
    return rows, {**raw, "bytes": sizes(folder, store)}


def label_rows(folder: Path, images: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """Counting the classes of label images against decoding them, on the same number of threads."""
    classes = classes_of(A2D2, folder)
    files = [LabelFile(number, _label(folder, classes, number), "") for number in range(images)]
    busy: dict[str, list[float]] = {"decode": [], "count": [], "table": [], "masks": []}
    works: dict[str, Callable[[], Any]] = {
        "decode": lambda: _decode_all(files),
        "count": lambda: list(count_images(files, classes, CORES)),
        "table": lambda: _count_all(files, partial(_by_table, _places(classes))),
        "masks": lambda: _count_all(files, partial(_by_masks, classes)),
    }
    taken = alternate({name: partial(clocked_both, work, busy[name]) for name, work in works.items()}, pairs)
    what = f"classes of {images} labels of 1920x1208"
    rows = [
        compare(f"{what} / decoding alone", taken["count"], taken["decode"], LABEL_GOAL),
        compare(f"{what} / decoding, busy processor", busy["count"][-pairs:], busy["decode"][-pairs:], LABEL_GOAL),
        compare(f"{what} / Pillow and a lookup table", taken["count"], taken["table"]),
        compare(f"{what} / Pillow and a mask for each colour", taken["count"], taken["masks"]),
    ]
    return rows, {"wall": taken, "busy": busy}


def _label(folder: Path, classes: Sequence[Any], number: int) -> bytes:
    """A label image of A2D2's size: a few hundred areas of class colours."""
    chance = random.Random(number)
    picture = Image.new("RGB", (1920, 1208), "#ff00ff")
    draw = ImageDraw.Draw(picture)
    for _ in range(400):
        x, y = chance.randrange(1920), chance.randrange(1208)
        colour = chance.choice(chance.choice(classes).colours)
        draw.ellipse((x, y, x + chance.randrange(5, 200), y + chance.randrange(5, 120)), f"#{colour:06x}")
    path = folder / f"{number}.png"
    picture.save(path)
    return os.fsencode(path)


def _decode_all(files: Sequence[LabelFile]) -> None:
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(_decode, files))


def _decode(file: LabelFile) -> None:
    with Image.open(file.path) as image:
        image.load()


def _count_all(files: Sequence[LabelFile], count: Callable[[Any], Any]) -> None:
    """What a person would write: each image as an array, on as many threads."""

    def read(file: LabelFile) -> Any:
        with Image.open(file.path) as image:
            pixels = np.asarray(image.convert("RGB")).astype(np.uint32)
        return count(pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2])

    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(read, files))


def _places(classes: Sequence[Any]) -> Any:
    places = np.full(1 << 24, len(classes), np.uint8)
    for place, label in enumerate(classes):
        places[list(label.colours)] = place
    return places


def _by_table(places: Any, colours: Any) -> Any:
    return np.bincount(places[colours].ravel())


def _by_masks(classes: Sequence[Any], colours: Any) -> Any:
    return [sum(int((colours == colour).sum()) for colour in label.colours) for label in classes]


def main() -> int:
    """Measure all three parts."""
    made = parser("The catalog against find, DuckDB, SQLite and a PNG decoder.", pairs=7)
    made.add_argument("--files", type=int, default=100_000, help="files of the tree (default: %(default)s)")
    made.add_argument("--rows", type=int, default=1_000_000, help="rows that are asked (default: %(default)s)")
    made.add_argument("--images", type=int, default=24, help="label images (default: %(default)s)")
    made.add_argument("--alone", action="store_true", help="ask the catalog alone: for very many rows")
    made.add_argument("--keep", type=Path, help="with --alone: the folder in which rows are made, or were made before")
    options = made.parse_args()
    facts = machine()
    rows, raw = [], {}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        parts = {
            "scan": (scan_rows, options.files),
            "query": (alone_rows if options.alone else query_rows, options.rows),
            "label": (label_rows, options.images),
        }
        for part, (measured, size) in parts.items():
            if size == 0:
                continue
            folder = (options.keep or Path(name)) / part
            folder.mkdir(parents=True, exist_ok=bool(options.keep))
            found, raw[part] = measured(folder, size, options.pairs)
            rows += found
    conclude("catalog", rows, {"seconds": raw}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
