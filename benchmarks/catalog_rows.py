"""Rows for benchmarks/catalog.py: made as a catalog, as a plain DuckDB table and in SQLite, and asked the same."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from measure import say, seconds
from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset
from podwright.data.catalog.files import META
from podwright.data.catalog.scan import build_tables
from podwright.data.catalog.store import Store
from podwright.data.query import bitmaps
from podwright.data.query.conditions import condition_of
from podwright.data.tree.layouts import A2D2, sort_columns
from podwright.spec.filters import parse_filter

CAMERAS = ("front_center", "front_left", "front_right", "side_left", "side_right", "rear_center")
KINDS = (("camera", "png"), ("camera", "json"), ("label", "png"))
SCENES = 20
MEMORY = "SET memory_limit = '8GB'"
"""For making rows: what does not fit goes to the disk."""

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


def clocked(work: Callable[[], Any]) -> float:
    """Seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


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


def sizes(folder: Path, store: Store) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (*folder.glob("*.*"), store.file("rows", 1))}


def catalog_rival(store: Store) -> Rival:
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
        opened.execute(schema.whole_view(A2D2, ()))
        yield from opened.sql(f"SELECT {', '.join(columns)} FROM files ORDER BY hash(path)").to_arrow_reader(1 << 17)


def make_plain(folder: Path, store: Store) -> None:
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


def make_lite(folder: Path, store: Store) -> None:
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


def plain_rival(folder: Path) -> Rival:
    opening = partial(duckdb.connect, str(folder / "plain.duckdb"), read_only=True)
    return Rival(opening, _in_sql("contains"), lambda opened: opened.close())


def lite_rival(folder: Path) -> Rival:
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


def make_catalog(folder: Path, count: int) -> tuple[Store, dict[str, float]]:
    """A published generation of made rows, and the seconds of making it; sizes are spread by a prime."""
    store = Store(folder / "home")
    per_folder = count // (SCENES * len(CAMERAS) * len(KINDS))
    staged = folder / "staging.duckdb"
    taken: dict[str, float] = {}

    with store.writing("rows") as part:
        with store.building(part) as catalog:
            catalog.execute(MEMORY)
            catalog.execute(f"ATTACH '{staged}' AS staging")
            taken["staging"] = clocked(partial(_stage, catalog, per_folder))
            taken["sorting"] = clocked(partial(build_tables, catalog, A2D2))
            catalog.execute("DETACH staging")
            staged.unlink()
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
    for table in ("staged_folder", "staged_file", "user_name", "group_name"):
        catalog.execute(f"CREATE TEMP VIEW {table} AS FROM staging.{table}")
