"""`data scan`, `find` and `stats`: which files there are, and what their labels hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.data.catalogs import (
    Catalog,
    PublishTo,
    catalog_of,
    check_only_asks,
    opened_for_reading,
    publish_to,
    reached,
)
from podwright.cli.options import AsJson, Sets, complete_target
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.meter import Meter

if TYPE_CHECKING:
    from podwright.data.catalog.dataset import Dataset, Match
    from podwright.data.catalog.scan import Scanned
    from podwright.data.catalog.store import Store
    from podwright.data.clickhouse.publish import Published
    from podwright.data.clickhouse.published import PublishedDataset
    from podwright.data.labels.runs import LabelRun
    from podwright.data.labels.stats import Statistics
    from podwright.data.query.sql import QueryRows

_BAR = 16
_NAME_WIDTH = 24
SIZE_WIDTH = len("1023 KiB") + 2
SHOWN = 20
"""How many files a person is shown of what may be millions."""


def complete_name(incomplete: str) -> list[str]:
    """Return the datasets and selections that begin like this; it reads folder names only."""
    from podwright.runs.store import default_home
    from podwright.spec.problems import Refusal

    try:
        home = default_home()
        paths = [*(home / "catalog").iterdir(), *(home / "selections").glob("*")]
    except (OSError, Refusal):
        return []
    return sorted(path.name for path in paths if path.name.startswith(incomplete))


DatasetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="The name it was scanned under.", autocompletion=complete_name)
]
FilterText = Annotated[
    str | None, typer.Argument(metavar="FILTER", help='Such as `camera=front_center and Car>0`; "..." where needed.')
]


Quick = Annotated[
    bool, typer.Option("--quick", help="Look only into folders that changed; not at files written over in place.")
]


Whole = Annotated[bool, typer.Option("--whole", help="With --catalog: publish also what not everybody may read.")]


def data_scan_command(
    path: Annotated[str, typer.Argument(metavar="PATH|URL", help="The folder of the dataset, or its address.")],
    name: Annotated[str, typer.Option("--name", metavar="DATASET", help="What to call it.")],
    layout: Annotated[
        str | None, typer.Option("--layout", metavar="LAYOUT", help="Take it for this and do not look.")
    ] = None,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Read the files that have no SHA-256 yet, and keep it.")
    ] = False,
    quick: Quick = False,
    catalog: PublishTo = None,
    whole: Whole = False,
    as_json: AsJson = False,
) -> int:
    """Scan a tree; exit 1 where a folder could not be read."""
    store = open_store()
    server = reached(catalog_of(catalog)) if catalog else None
    from podwright.data.catalog.rescan import rescan
    from podwright.data.catalog.scan import MAX_NAMED, scan
    from podwright.data.policies.checksums import add_checksums

    if quick and name in store.datasets():
        scanned = rescan(store, name)
    else:
        with Meter("scan", "files") as meter:
            scanned = scan(store, path, name, layout, meter.show)
    if checksums:
        with Meter("checksums", "files") as meter:
            generation, summed = add_checksums(store, name, meter.show)
        scanned = replace(scanned, generation=generation, summed=summed)
    published = publish_to(store, name, server, whole) if server else None
    for folder, why in scanned.unread[:MAX_NAMED]:
        output.say("unread", f"{folder or '.'}: {why}")
    if as_json:
        beside = {"published": published.as_json()} if published else {}
        output.print_json({**scanned.as_json(), **beside})
    else:
        print("\n".join(_scanned(scanned, published)))
    return int(bool(scanned.unread))


def _scanned(scanned: Scanned, published: Published | None) -> Iterator[str]:
    held = f"{figures.count(scanned.files, 'file')} in {figures.count(scanned.directories, 'folder')}"
    kind = f"{figures.size(scanned.size_bytes)}, layout {scanned.layout}"
    news = f"{scanned.changed} changed, generation {scanned.generation}, {figures.duration(scanned.took_s)}"
    lines = {scanned.dataset: f"{held}, {kind}", "changed": news}
    if published:
        lines["published"] = f"{figures.count(published.files, 'file')}, {published.catalog}"
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)


def data_find_command(
    dataset: DatasetName,
    filter_text: FilterText = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help=f"At most so many files; else {SHOWN}, or all.")
    ] = None,
    print0: Annotated[bool, typer.Option("--print0", help="Whole paths, a zero byte behind each: xargs -0.")] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """List files that a filter chooses; a person is shown the first of them, a program gets all."""
    import time

    started = time.monotonic()
    with opened_for_reading(open_store(), dataset, catalog) as opened:
        condition = opened.condition(filter_text)
        if print0:
            return _print_paths(opened, opened.find(condition, limit))
        if opened.left_out:
            output.say("left out", f"{opened.left_out} files of the catalog that somebody has written over")
        if as_json:
            matches = list(opened.find(condition, limit))
            count = opened.count_files(condition)
            return output.print_json(_found_json(opened, matches, count, time.monotonic() - started))
        matches = list(opened.find(condition, SHOWN if limit is None else limit))
        files, size_bytes = opened.count(condition)
    return print("\n".join(_found(matches, files, size_bytes)))


def _found_json(opened: Dataset | PublishedDataset, matches: list[Match], count: int, took_s: float) -> dict[str, Any]:
    document = {"count": count, "root": opened.root, "files": [match.as_json() for match in matches]}
    if opened.left_out:
        document["left_out"] = opened.left_out
    return {**document, "took_s": round(took_s, 4)}


def _found(matches: list[Match], files: int, size_bytes: int) -> Iterator[str]:
    width = output.width_of(sys.stdout)
    rows = [(figures.size(match.size), path_text(match.path, width and width - SIZE_WIDTH)) for match in matches]
    if rows:
        yield from output.table(("size", "path"), rows)
    more = files - len(rows)
    if more:
        yield f"and {more} more"
    yield f"{figures.count(files, 'file')}, {figures.size(size_bytes)}"


def path_text(path: str, width: int | None) -> str:
    """Return a path on one line; of one that is too wide the end is shown, which tells files apart."""
    text = output.one_line(path)
    if width is None or len(text) <= width:
        return text
    return f"...{text[3 - width :]}"


def _print_paths(opened: Dataset | PublishedDataset, matches: Iterator[Match]) -> None:
    for match in matches:
        sys.stdout.buffer.write(opened.root_bytes + b"/" + match.path_bytes + b"\0")
    sys.stdout.buffer.flush()


def data_stats_command(
    dataset: DatasetName,
    per_image: Annotated[
        Path | None,
        typer.Option("--per-image", metavar="FILE", help="Write a row for each label image: .csv or .parquet."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="TARGET", help="Count as a run there.", autocompletion=complete_target),
    ] = None,
    nodes: Annotated[
        int, typer.Option("--nodes", metavar="N", min=1, help="With --on: nodes that share the work.")
    ] = 1,
    sets: Sets = [],  # noqa: B006 - the library makes a new list for each call
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Count the labels that are not counted yet, and print what all of them hold; of --catalog what is there."""
    from podwright.data.labels.stats import check_table

    store = open_store()
    if per_image is not None:
        check_table(per_image)
    if catalog is None:
        with _label_run(on, nodes, sets) as elsewhere:
            statistics = _counted(store, dataset, per_image, elsewhere)
    else:
        check_only_asks(on is not None or nodes > 1 or bool(sets))
        statistics = _published_statistics(dataset, catalog, per_image)
    for row in statistics.broken_files:
        output.say("broken", f"{output.one_line(row['path'])}: {row['why']}")
    if as_json:
        return output.print_json(statistics.as_json())
    return print("\n".join(_statistics(statistics)))


def _counted(store: Store, dataset: str, per_image: Path | None, elsewhere: LabelRun | None) -> Statistics:
    from podwright.data.catalog.dataset import open_dataset
    from podwright.data.labels.stats import count_labels, write_table
    from podwright.data.labels.stats import per_image as table_of

    with Meter("stats", "labels") as meter:
        statistics = count_labels(store, dataset, meter.show, elsewhere)
    if per_image is not None:
        with open_dataset(store, dataset) as opened:
            write_table(table_of(opened), per_image)
    return statistics


def _published_statistics(dataset: str, catalog: str, per_image: Path | None) -> Statistics:
    from podwright.data.clickhouse.published import open_published
    from podwright.data.labels.stats import write_table

    with open_published(catalog_of(catalog), dataset) as opened:
        if per_image is not None:
            write_table(opened.per_image(), per_image)
        return opened.statistics()


@contextmanager
def _label_run(on: str | None, nodes: int, sets: list[str]) -> Iterator[LabelRun | None]:
    """Give what counts labels on a target; `data` lies beneath `launch` and is handed what starts runs."""
    from podwright.spec.problems import refuse

    if on is None:
        for field, given in (("--nodes", nodes > 1), ("--set", sets)):
            if given:
                raise refuse("needs --on", hint="--on local counts here, as a run", field=field)
        yield None
        return
    from podwright.data.labels.runs import LabelRun
    from podwright.launch import Session, start

    with Session.open() as session:
        yield LabelRun(partial(start, session), on, nodes, sets, partial(output.say, "run"))


def _statistics(statistics: Statistics) -> Iterator[str]:
    """Lay out the classes that are there, the largest first; the rest by name."""
    head = f"{figures.count(statistics.images, 'label')}, {statistics.broken} broken"
    if statistics.unknown:
        head += f", {figures.count(statistics.unknown, 'pixel')} of colours that mean no class"
    yield head
    there = sorted((row for row in statistics.classes if row.pixels), key=lambda row: -row.pixels)
    rows = []
    for row in there:
        filled, _ = figures.bar(row.share / there[0].share, _BAR)
        rows.append(
            (output.clip(row.name, _NAME_WIDTH), f"{row.images:>7}", f"{row.pixels:>15}", f"{row.share:>7.2%}", filled)
        )
    if rows:
        yield from output.table(("class", " images", "         pixels", "  share", ""), rows)
    absent = [row.name for row in statistics.classes if not row.pixels]
    if absent:
        yield f"and {figures.count(len(absent), 'class', 'classes')} in no label"


def data_tag_command(
    dataset: DatasetName,
    filter_text: Annotated[str, typer.Argument(metavar="FILTER", help="Which files.")],
    tag_text: Annotated[str, typer.Argument(metavar="NAME=VALUE", help="An empty value takes the tag away.")],
    as_json: AsJson = False,
) -> None:
    """Give a tag to all files that a filter chooses."""
    store = open_store()
    from podwright.data.policies.tags import parse_tag, tag

    name, value = parse_tag(tag_text)
    tagged = tag(store, dataset, filter_text, name, value)
    if as_json:
        return output.print_json({"tagged": tagged})
    return print(figures.count(tagged, "file"))


def data_sql_command(
    dataset: DatasetName,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="Such as `select scene, count(*) from files group by all`.")
    ],
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Answer a query of the user's own."""
    store = open_store()
    from podwright.data.query.sql import MAX_ROWS

    answer = _answer(store, dataset, sql, catalog)
    if answer.cut:
        output.say("cut", f"there are more than {MAX_ROWS} rows")
    if as_json:
        return output.print_json({"columns": answer.columns, "rows": answer.rows})
    rows = []
    for row in answer.rows:
        rows.append([figures.NONE if value is None else output.one_line(str(value)) for value in row])
    return print("\n".join(output.table(answer.columns, rows, output.width_of(sys.stdout))))


def _answer(store: Store, dataset: str, sql: str, catalog: str | None) -> QueryRows:
    if catalog is None:
        from podwright.data.query.sql import query

        return query(store, dataset, sql)
    from podwright.data.clickhouse.published import open_published

    with open_published(catalog_of(catalog), dataset) as opened:
        return opened.query(sql)


def open_store() -> Store:
    """Return the datasets of the user's home; refuse where the packages that they need are missing."""
    from podwright.data.extra import need_packages

    need_packages()
    from podwright.data.catalog.store import open_store as open_catalog
    from podwright.runs import Home

    return open_catalog(Home.open().path)
