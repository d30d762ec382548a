"""The catalog against what people use instead: `find`, a plain DuckDB table, SQLite, and decoding label images alone.

    python benchmarks/catalog.py [--pairs 5] [--json OUT] [--files 100000] [--rows 1000000] [--images 24]
                                   [--alone [--keep FOLDER]]

Scan: `find -printf` with the same fields, warm, over a tree of empty files; the time a processor was busy beside that
of the wall, since a busy machine stretches both. Queries: the same rows as a catalog, as a DuckDB table of paths and
sizes in no order, and as a SQLite table with an index on each column; answers are compared before a clock starts.
`first` opens the file before it asks, with its pages in memory; `warm` has asked before. Labels: all images decoded by
as many threads and thrown away.

`--alone` is for very many rows: each query is asked once of plain DuckDB, which must give the same answer and whose
time is kept, and then of the catalog alone; SQLite, whose table and indexes would not fit on the disk, is left out.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from PIL import Image, ImageDraw

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
from podwright.data import bitmaps, schema
from podwright.data.classes import classes_of
from podwright.data.conditions import condition_of
from podwright.data.counting import LabelFile, count_images
from podwright.data.dataset import Dataset
from podwright.data.files import META
from podwright.data.filters import parse_filter
from podwright.data.layouts import A2D2, sort_columns
from podwright.data.scan import scan
from podwright.data.store import Store
from podwright.data.walk import walk

CAMERAS = ("front_center", "front_left", "front_right", "side_left", "side_right", "rear_center")
KINDS = (("camera", "png"), ("camera", "json"), ("label", "png"))
SCENES = 20
CORES = len(os.sched_getaffinity(0))
WALK_GOAL, LABEL_GOAL = 1.0, 1.3
ALONE_GOALS = {("scattered", "warm"): 50.0, ("scattered", "first"): 300.0}
"""Milliseconds, at 1e8 rows."""
MEMORY = "SET memory_limit = '8GB'"
"""For making rows: what does not fit goes to the disk."""
FIELDS = r"%p\0%m\0%s\0%T@\0%C@\0%i\0%U\0%G\0"

QUERIES = {
    "sort key": "scene=20180805_145028 and camera=side_left and kind=label and frame=77",
    "range of scenes": "scene>=20180803_145028 and scene<=20180804_145028 and camera=front_left",
    "scattered": "camera=rear_center and kind=camera and ext=json and size<100000",
    "rare + limit": "size=999983",
    "substring": "path~rearcenter_00000007",
}
"""Filters over columns that all three have; the plain table has them by regular expressions over its paths."""
LISTED = ("rare + limit",)
LIMIT = 100
ORDER = ", ".join([*sort_columns(A2D2), "path"])
"""In which the catalog gives files."""
VOCABULARY = schema.vocabulary_of("benchmark", A2D2, (), (), ())


def make_tree(root: Path, files: int) -> None:
    """A tree in A2D2's layout, of empty files."""
    per_folder = files // (SCENES * len(CAMERAS) * len(KINDS))
    for folder, stem, ext in _names(per_folder):
        path = root / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{stem}.{ext}").touch()


def _names(per_folder: int) -> Sequence[tuple[str, str, str]]:
    names = []
    for scene in range(SCENES):
        name = f"201808{scene + 1:02d}_145028"
        for camera in CAMERAS:
            for kind, ext in KINDS:
                stem = f"{name.replace('_', '')}_{kind}_{camera.replace('_', '')}"
                names += [(f"{name}/{kind}/cam_{camera}", f"{stem}_{frame:09d}", ext) for frame in range(per_folder)]
    return names


def clocked(work: Callable[[], Any]) -> float:
    """Seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


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


def scan_rows(folder: Path, files: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """The walk alone, and a whole first scan with sorting, indexes and publishing, against `find`."""
    tree = folder / "tree"
    make_tree(tree, files)
    homes = (folder / f"home{number}" for number in range(10_000))
    busy: dict[str, list[float]] = {"find": [], "walk": [], "scan": []}
    with (folder / "listing").open("wb") as listing:
        command = ["find", str(tree), "-printf", FIELDS]
        works: dict[str, Callable[[], Any]] = {
            "find": partial(subprocess.run, command, stdout=listing, check=True),
            "walk": lambda: list(walk(os.fsencode(tree), CORES)),
            "scan": lambda: scan(Store(next(homes)), tree, "tree"),
        }
        arms = {name: partial(clocked_both, work, busy[name]) for name, work in works.items()}
        taken = alternate(arms, pairs)
    rows = [
        compare(f"walk of {files} files / find -printf", taken["walk"], taken["find"], WALK_GOAL),
        compare("walk / find -printf, busy processor", busy["walk"][-pairs:], busy["find"][-pairs:]),
        compare("scan, published / find -printf", taken["scan"], taken["find"]),
    ]
    return rows, {"wall": taken, "busy": busy}


Ask = Callable[[Any], Any]


@dataclass(frozen=True)
class Rival:
    """One way to keep the rows: how it is opened, and how each query is asked of what is open."""

    open: Callable[[], Any]
    asked: dict[str, Ask]
    close: Callable[[Any], None]

    def first(self, name: str) -> Any:
        """Open, ask, close."""
        opened = self.open()
        answer = self.asked[name](opened)
        self.close(opened)
        return answer


def alone_rows(folder: Path, count: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """Each query on the catalog, the first time and warm, in milliseconds; beside it one answer of a plain table."""
    say(f"making {count} rows")
    made, store = folder / "made.json", Store(folder / "home")
    if not made.exists():
        _, making = _make_catalog(folder, count)
        making["plain"] = clocked(partial(_make_plain, folder, store))
        made.write_text(json.dumps({"rows": count, "seconds": making}))
    raw: dict[str, Any] = {"made": json.loads(made.read_text())}
    if raw["made"]["rows"] != count:
        raise SystemExit(f"{folder} holds {raw['made']['rows']} rows, not {count}")
    rival, plain = _catalog(store), _plain(folder)
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
    return rows, {**raw, "bytes": _sizes(folder, store)}


def query_rows(folder: Path, count: int, pairs: int) -> tuple[list[Row], dict[str, Any]]:
    """Each query on the catalog, on a plain table, and on SQLite; the first time, and warm."""
    say(f"making {count} rows")
    store, _ = _make_catalog(folder, count)
    _make_plain(folder, store)
    _make_lite(folder, store)
    rivals = {"catalog": _catalog(store), "plain": _plain(folder), "sqlite": _lite(folder)}
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
    return rows, {**raw, "bytes": _sizes(folder, store)}


def _sizes(folder: Path, store: Store) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (*folder.glob("*.*"), store.file("rows", 1))}


def _catalog(store: Store) -> Rival:
    def first_paths(text: str, opened: Dataset) -> list[str]:
        return [match.path for match in opened.find(opened.condition(text), LIMIT)]

    def count(text: str, opened: Dataset) -> int:
        return opened.count_files(opened.condition(text))

    asked: dict[str, Ask] = {}
    for name, text in QUERIES.items():
        asked[name] = partial(count, text)
        if name in LISTED:
            asked[name] = partial(first_paths, text)
    asked["facets"] = lambda opened: sorted(
        (k, v, n) for k, values in opened.facets().items() for v, n in values.items()
    )
    return Rival(lambda: Dataset(store, "rows", store.connect("rows")), asked, lambda opened: opened.connection.close())


COLUMNS = ("path", "size", "scene", "camera", "kind", "frame", "ext")


def _scattered(store: Store, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of the catalog without an order, in batches."""
    with duckdb.connect(str(store.file("rows", 1)), read_only=True) as opened:
        opened.execute(MEMORY)
        yield from opened.sql(f"SELECT {', '.join(columns)} FROM files ORDER BY hash(path)").to_arrow_reader(1 << 17)


def _make_plain(folder: Path, store: Store) -> None:
    """A table of paths and sizes, with the other columns by regular expressions."""
    with duckdb.connect(str(folder / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE walked (path VARCHAR, size BIGINT)")
        for batch in _scattered(store, COLUMNS[:2]):
            plain.register("listed", batch)
            plain.execute("INSERT INTO walked SELECT * FROM listed")
            plain.unregister("listed")
        columns = ["split_part(path, '.', 2) AS ext", "regexp_extract(path, '_(\\d+)\\.', 1)::BIGINT AS frame"]
        columns += ["regexp_extract(path, 'cam_(\\w+)/', 1) AS camera"]
        columns += [f"split_part(path, '/', {place}) AS {name}" for place, name in ((1, "scene"), (2, "kind"))]
        plain.execute(f"CREATE VIEW files AS SELECT *, {', '.join(columns)} FROM walked")


def _make_lite(folder: Path, store: Store) -> None:
    """A table of SQLite with an index on each column."""
    lite = sqlite3.connect(folder / "lite.sqlite")
    lite.execute("CREATE TABLE files (path TEXT, size INT, scene TEXT, camera TEXT, kind TEXT, frame INT, ext TEXT)")
    for batch in _scattered(store, COLUMNS):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lite.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    for column in COLUMNS[1:]:
        lite.execute(f"CREATE INDEX by_{column} ON files ({column})")
    lite.execute("ANALYZE")
    lite.commit()
    lite.close()


def _plain(folder: Path) -> Rival:
    opening = partial(duckdb.connect, str(folder / "plain.duckdb"), read_only=True)
    return Rival(opening, _in_sql("contains"), lambda opened: opened.close())


def _lite(folder: Path) -> Rival:
    return Rival(partial(sqlite3.connect, folder / "lite.sqlite"), _in_sql("instr"), lambda opened: opened.close())


def _in_sql(contains: str) -> dict[str, Ask]:
    asked: dict[str, Ask] = {}
    for name, text in QUERIES.items():
        condition = condition_of(parse_filter(text), VOCABULARY)
        where = condition.sql.replace("(d.path || f.name)", "path").replace("contains(", f"{contains}(")
        asked[name] = partial(_number, f"SELECT count(*) FROM files f WHERE {where}", condition.values)
        if name in LISTED:
            query = f"SELECT path FROM files f WHERE {where} ORDER BY {ORDER} LIMIT {LIMIT}"
            asked[name] = partial(_column, query, condition.values)
    columns = ("scene", "camera", "kind")
    union = " UNION ALL ".join(f"SELECT '{name}', {name}, count(*) FROM files GROUP BY {name}" for name in columns)
    asked["facets"] = lambda opened: sorted(opened.execute(union).fetchall())
    return asked


def _number(query: str, values: Sequence[object], opened: Any) -> Any:
    return opened.execute(query, list(values)).fetchone()[0]


def _column(query: str, values: Sequence[object], opened: Any) -> list[Any]:
    return [row[0] for row in opened.execute(query, list(values)).fetchall()]


def _make_catalog(folder: Path, count: int) -> tuple[Store, dict[str, float]]:
    """A published generation of made rows, and the seconds of making it; sizes are spread by a prime."""
    store = Store(folder / "home")
    per_folder = count // (SCENES * len(CAMERAS) * len(KINDS))
    staged = folder / "staging.duckdb"
    taken: dict[str, float] = {}

    def sort(catalog: Any) -> None:
        for statement in schema.build_statements("staging", A2D2):
            catalog.execute(statement)

    with store.writing("rows") as part:
        with store.building(part) as catalog:
            catalog.execute(MEMORY)
            catalog.execute(f"ATTACH '{staged}' AS staging")
            taken["staging"] = clocked(partial(_stage, catalog, per_folder))
            taken["sorting"] = clocked(partial(sort, catalog))
            catalog.execute("DETACH staging")
            staged.unlink()
            catalog.execute(schema.whole_view(A2D2, ()))
            taken["indexes"] = clocked(partial(bitmaps.build, catalog, A2D2, 0))
            meta = {"format": str(schema.FORMAT), "root": "/rows", "root_bytes": b"/rows".hex(), "layout": "a2d2"}
            catalog.execute(META)
            catalog.executemany("INSERT INTO meta VALUES (?, ?)", list({**meta, "scanned_at": "0"}.items()))
        taken["publishing"] = clocked(partial(store.publish, "rows", part))
    say(f"{count} rows: " + ", ".join(f"{name} {seconds(value)}" for name, value in taken.items()))
    return store, taken


def _stage(catalog: Any, per_folder: int) -> None:
    kinds = ", ".join(f"('{kind}', '{ext}')" for kind, ext in KINDS)
    cameras = ", ".join(f"('{camera}')" for camera in CAMERAS)
    catalog.execute(
        f"""CREATE TABLE staging.leaf AS SELECT row_number() OVER () - 1 AS folder,
            format('201808{{:02d}}_145028', s.s) AS scene, camera, kind, ext
            FROM range(1, {SCENES + 1}) s(s), (VALUES {cameras}) c(camera),
            (VALUES {kinds}) k(kind, ext)"""
    )
    numbers = "33188 AS mode, {size} AS size, 1 AS mtime_ns, 1 AS ctime_ns, 1 AS inode, 0 AS uid, 0 AS gid"
    facts = f"{numbers}, NULL::BLOB AS acl"
    catalog.execute(
        f"""CREATE TABLE staging.staged_folder AS SELECT scene || '/' || kind || '/cam_' || camera || '/' AS name,
            NULL::BLOB AS raw, folder, {facts.format(size=0)} FROM staging.leaf"""
    )
    size = "(folder * 7919 + n * 104729) % 1000003"
    catalog.execute(
        f"""CREATE TABLE staging.staged_file AS SELECT replace(scene, '_', '') || '_' || kind || '_' ||
            replace(camera, '_', '') || '_' || format('{{:09d}}', n) || '.' || ext AS name,
            NULL::BLOB AS raw, folder, {facts.format(size=size)} FROM staging.leaf, range({per_folder}) r(n)"""
    )
    for table in ("user_name", "group_name"):
        catalog.execute(f"CREATE TABLE staging.{table} AS SELECT 0 AS id, 'root' AS name")


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
