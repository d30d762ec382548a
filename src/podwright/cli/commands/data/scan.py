"""`data scan`, `find` and `stats`: which files there are, and what their labels hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.data.options import (
    SIZE_WIDTH,
    AskThere,
    DatasetName,
    FilterText,
    Print0,
    PublishTo,
    open_catalog,
    path_text,
    print_paths,
    shown_progress,
)
from podwright.cli.options import AsJson, Sets, complete_target
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data import Found, Scanned, Statistics

_BAR = 16
_NAME_WIDTH = 24
_SHOWN = 20
"""How many files a person is shown of what may be millions."""
Quick = Annotated[
    bool, typer.Option("--quick", help="Look only into folders that changed; not at files written over in place.")
]


Emptied = Annotated[bool, typer.Option("--emptied", help="Take it although nothing of last time is there.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Give the name to another tree; what is known of the old one goes.")
]
Sort = Annotated[
    str | None, typer.Option("--sort", metavar="COLUMN", help="The least first; with a dash before it the greatest.")
]
Labels = Annotated[
    list[str],
    typer.Option("--label", metavar="NAME", help="Of each further root, in their order: its paths begin with it."),
]
Whole = Annotated[bool, typer.Option("--whole", help="With --catalog: publish also what not everybody may read.")]


def data_scan_command(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH|URL", help="The folder of the dataset, or its address; further ones.")
    ],
    name: Annotated[str, typer.Option("--name", metavar="DATASET", help="What to call it.")],
    label: Labels = [],  # noqa: B006 - the library makes a new list for each call
    layout: Annotated[
        str | None, typer.Option("--layout", metavar="NAME|FILE.yaml", help="Take it for this and do not look.")
    ] = None,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Read the files that have no SHA-256 yet, and keep it.")
    ] = False,
    quick: Quick = False,
    catalog: PublishTo = None,
    whole: Whole = False,
    emptied: Emptied = False,
    replace: Replace = False,
    as_json: AsJson = False,
) -> int:
    """Scan a tree; exit 1 where a folder could not be read."""
    from podwright.data import Accept, FurtherRoots, ScanRequest

    accept = Accept(emptied, replace)
    root, *further = path
    more = FurtherRoots(tuple(further), tuple(label))
    request = ScanRequest(root, name, layout, checksums, quick, catalog, whole, accept, more)
    with shown_progress() as progress:
        scanned = open_catalog().scan(request, progress)
    return _print_scanned(scanned, as_json)


def data_move_command(
    dataset: DatasetName,
    old: Annotated[str, typer.Argument(metavar="OLD", help="Where it lay.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The folder or address where it lies now.")],
    as_json: AsJson = False,
) -> int:
    """Say that a dataset lies elsewhere; no file is moved, and what is known of them stays."""
    with shown_progress() as progress:
        scanned = open_catalog().move(dataset, old, new, progress)
    return _print_scanned(scanned, as_json)


def _print_scanned(scanned: Scanned, as_json: bool) -> int:
    published = scanned.published
    if published and published.left_out:
        left_out = figures.count(published.left_out, "file")
        output.say("left out", f"{left_out} that not everybody may see; --whole publishes all of them")
    for folder, reason in scanned.named_unread:
        output.say("unread", f"{output.one_line(folder) or '.'}: {reason}")
    if scanned.other_device:
        output.say("note", f"{scanned.root} lies on another device than last time")
    if as_json:
        output.print_json(scanned.as_json())
    else:
        print("\n".join(_scanned(scanned)))
    return int(bool(scanned.unread))


def _scanned(scanned: Scanned) -> Iterator[str]:
    tree = f"{figures.count(scanned.files, 'file')} in {figures.count(scanned.directories, 'folder')}"
    kind = f"{figures.size(scanned.size_bytes)}, layout {scanned.layout}"
    renamed = f", of them {scanned.renamed} renamed" if scanned.renamed else ""
    news = f"{scanned.changed} changed{renamed}, generation {scanned.generation}, {figures.duration(scanned.took_s)}"
    lines = {scanned.dataset: f"{tree}, {kind}", "changed": news}
    if scanned.published:
        files = figures.count(scanned.published.files, "file")
        lines["published"] = f"{files}, {scanned.published.catalog}"
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)


def data_find_command(
    dataset: DatasetName,
    filter_text: FilterText = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help=f"At most so many files; else {_SHOWN}, or all.")
    ] = None,
    sort: Sort = None,
    count: Annotated[bool, typer.Option("--count", help="How many they are, and nothing else.")] = False,
    print0: Print0 = False,
    catalog: AskThere = None,
    as_json: AsJson = False,
) -> None:
    """List files that a filter chooses; a person is shown the first of them, a program gets all."""
    if print0 and not count:
        with open_catalog().open(dataset, catalog) as opened:
            matches = opened.find(opened.condition(filter_text), limit, opened.order(sort))
            return print_paths(opened.roots.whole(match.path_bytes) for match in matches)
    from podwright.data import FindRequest

    if count:
        limit = 0
    elif limit is None and not as_json:
        limit = _SHOWN
    sizes = not (as_json or count)
    found = open_catalog().find(FindRequest(dataset, filter_text, limit, sizes, catalog, sort))
    if found.left_out:
        output.say("left out", f"{found.left_out} files of the catalog that somebody has written over")
    if as_json:
        return output.print_json(found.as_json())
    if count:
        return print(found.count)
    return print("\n".join(_found(found, (sort or "size").removeprefix("-"))))


def _found(found: Found, sorted_by: str) -> Iterator[str]:
    """Lay out files with their sizes, and with what they are sorted by where that is something else."""
    values = [] if sorted_by in ("size", "path") else [match.as_json().get(sorted_by) for match in found.files]
    shown = [figures.NONE if value is None else output.one_line(str(value)) for value in values]
    head, taken = ["size", "path"], SIZE_WIDTH
    if shown:
        head, taken = ["size", sorted_by, "path"], SIZE_WIDTH + 2 + max(map(len, [sorted_by, *shown]))
    width = output.width_of(sys.stdout)
    rows = []
    for at, match in enumerate(found.files):
        path = path_text(match.path, width and max(width - taken, SIZE_WIDTH))
        rows.append((figures.size(match.size), *shown[at : at + 1], path))
    if rows:
        yield from output.table(head, rows)
    more = found.count - len(rows)
    if more:
        yield f"and {more} more"
    yield f"{figures.count(found.count, 'file')}, {figures.size(found.size_bytes or 0)}"


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
    catalog: AskThere = None,
    as_json: AsJson = False,
) -> int:
    """Count the labels that are not counted yet, and print what all of them hold; exit 1 where one was not read."""
    from podwright.data import StatsRequest

    request = StatsRequest(dataset, per_image, on, nodes, sets, catalog)
    with shown_progress() as progress:
        statistics = open_catalog().stats(request, progress)
    for row in [*statistics.broken_files, *statistics.unknown_files]:
        word = "unknown" if row in statistics.unknown_files else "broken"
        output.say(word, f"{output.one_line(row['path'])}: {row['why']}")
    for row in statistics.not_read_files:
        output.say("not read", f"{output.one_line(row['path'])}: {row['why']}")
    if as_json:
        output.print_json(statistics.as_json())
    else:
        print("\n".join(_statistics(statistics)))
    return int(bool(statistics.not_read))


def _statistics(statistics: Statistics) -> Iterator[str]:
    """Lay out the classes that are there, the largest first; the rest by name."""
    head = f"{figures.count(statistics.images, 'label')}, {statistics.broken} broken"
    if statistics.not_read:
        head += f", {statistics.not_read} not read"
    if statistics.unknown_images:
        head += f", {statistics.unknown_images} wholly of unknown colours"
    if statistics.unknown:
        head += f", {figures.count(statistics.unknown, 'pixel')} of colours that mean no class"
    yield head
    present = sorted((row for row in statistics.classes if row.pixels), key=lambda row: -row.pixels)
    rows = []
    for row in present:
        filled, _ = figures.bar(row.share / present[0].share, _BAR)
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
    tagged = open_catalog().tag(dataset, filter_text, tag_text)
    if as_json:
        return output.print_json(tagged.as_json())
    return print(figures.count(tagged.tagged, "file"))


def data_sql_command(
    dataset: DatasetName,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="Such as `select scene, count(*) from files group by all`.")
    ],
    catalog: AskThere = None,
    as_json: AsJson = False,
) -> None:
    """Answer a query of the user's own."""
    answer = open_catalog().sql(dataset, sql, catalog)
    if answer.cut:
        output.say("cut", f"there are more than {len(answer.rows)} rows")
    if as_json:
        return output.print_json(answer.as_json())
    rows = []
    for row in answer.rows:
        rows.append([figures.NONE if value is None else output.one_line(str(value)) for value in row])
    return print("\n".join(output.table(answer.columns, rows, output.width_of(sys.stdout))))
