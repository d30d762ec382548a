"""`data select`, `diff`, `ls` and `forget`: what was chosen, and what there is to choose from."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.data.options import (
    AskThere,
    DatasetName,
    Print0,
    WithdrawFrom,
    complete_name,
    open_catalog,
    path_text,
    print_paths,
)
from podwright.cli.options import AsJson, Yes, complete_run
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data import CatalogListing, DatasetColumns, Selection

_MAX_VALUES = 8
_TEXT_WIDTH = 80 - output.WORD_WIDTH


Where = Annotated[str | None, typer.Option("--where", metavar="FILTER", help="Only samples with such a file.")]
Splits = Annotated[str | None, typer.Option("--split", metavar="SHARES", help="Such as train=0.8,validation=0.2.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="COLUMN", help="Never tear apart what has one value of it, as scene.")
]
Representative = Annotated[
    bool, typer.Option("--representative", help="Classes as in the whole; rare ones and whole scenes are kept.")
]
NoDuplicates = Annotated[
    bool, typer.Option("--no-duplicates", help="Of images that are near-duplicates, only the first.")
]
Confusion = Annotated[
    str | None,
    typer.Option(
        "--confusion",
        metavar="RUN",
        help="Samples of what it confused; no gain is proven.",
        autocompletion=complete_run,
    ),
]
Classes = Annotated[
    str | None, typer.Option("--classes", metavar="A,B", help="Of --confusion: not its worst two, but these.")
]
Uncertainty = Annotated[
    str | None,
    typer.Option("--uncertainty", metavar="RUN", help="What it was least sure of.", autocompletion=complete_run),
]


def data_select_command(
    dataset: DatasetName,
    name: Annotated[str, typer.Option("--name", metavar="SELECTION", help="What to call it.")],
    where: Where = None,
    size: Annotated[int | None, typer.Option("--size", metavar="N", min=1, help="So many samples.")] = None,
    split: Splits = None,
    folds: Annotated[int | None, typer.Option("--folds", metavar="K", help="K splits of equal size.")] = None,
    by: By = None,
    representative: Representative = False,
    confusion: Confusion = None,
    classes: Classes = None,
    uncertainty: Uncertainty = None,
    no_duplicates: NoDuplicates = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Decides what chance decides.")] = 0,
    catalog: AskThere = None,
    as_json: AsJson = False,
) -> None:
    """Choose samples of a dataset and freeze them under a name."""
    from podwright.data import Choice

    choice = Choice(
        name=name,
        where=where,
        size=size,
        split=split,
        folds=folds,
        by=by,
        representative=representative,
        confusion=confusion,
        classes=classes,
        uncertainty=uncertainty,
        seed=seed,
        no_duplicates=no_duplicates,
    )
    selection = open_catalog().select(dataset, choice, catalog)
    if as_json:
        return output.print_json(selection.as_json())
    return print("\n".join(_selected(selection)))


def _selected(selection: Selection) -> Iterator[str]:
    yield from output.aligned(
        "selection", f"{selection.name}, {selection.digest[:19]}, seed {selection.seed}", sys.stdout
    )
    yield from output.aligned("from", ", ".join(_origin(selection)), sys.stdout)
    rows = []
    for name, split in selection.splits.items():
        distance = figures.NONE if split.distance is None else f"{split.distance:.3f}"
        rows.append((name, f"{len(split.samples):>7}", distance))
    yield from output.table(("split", "samples", "distance to the whole"), rows)


def _origin(selection: Selection) -> Iterator[str]:
    lineage = selection.lineage
    yield f"{selection.dataset}, generation {lineage.get('generation')}"
    if lineage.get("catalog"):
        yield str(lineage["catalog"])
    if lineage.get("where"):
        yield str(lineage["where"])
    if lineage.get("representative"):
        yield "representative"
    if lineage.get("by"):
        yield f"by {lineage['by']}"
    if lineage.get("duplicates"):
        yield f"{lineage['duplicates']['count']} near-duplicates left out"
    for kind in ("confusion", "uncertainty"):
        if lineage.get(kind):
            yield f"{kind} of {lineage[kind]['run']} ({lineage[kind]['ranked_by']})"


def data_diff_command(
    first: Annotated[str, typer.Argument(metavar="SELECTION", autocompletion=complete_name, help="What was.")],
    second: Annotated[str, typer.Argument(metavar="SELECTION", autocompletion=complete_name, help="What is.")],
    as_json: AsJson = False,
) -> None:
    """Say how the second selection differs from the first, in samples."""
    answer = open_catalog().diff(first, second)
    if as_json:
        return output.print_json(answer.as_json())
    distance = figures.NONE if answer.distance is None else f"{answer.distance:.3f}"
    return print(f"{answer.added} added, {answer.removed} removed, {answer.kept} kept, distance {distance}")


def data_ls_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A dataset or a selection.", autocompletion=complete_name)
    ] = None,
    split: Annotated[str | None, typer.Option("--split", metavar="SPLIT", help="Of a selection: this split.")] = None,
    files: Annotated[bool, typer.Option("--files", help="Of a selection: all files of its samples.")] = False,
    runs: Annotated[bool, typer.Option("--runs", help="Of a selection: the runs that were given it.")] = False,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Of a selection: its classes and frames as a page.")
    ] = None,
    print0: Print0 = False,
    catalog: AskThere = None,
    as_json: AsJson = False,
) -> None:
    """List datasets and selections; of a selection the images, of a dataset what its columns hold."""
    from podwright.data import DatasetColumns, ShowRequest

    if name is None:
        listing = open_catalog().ls(catalog)
        return output.print_json(listing.as_json()) if as_json else _print_all(listing)
    answer = open_catalog().show(ShowRequest(name, split, files, runs or as_json, catalog))
    if isinstance(answer, DatasetColumns):
        return output.print_json(answer.as_json()) if as_json else _print_dataset(answer)
    if page:
        from podwright.report import write_selection_page

        write_selection_page(answer.selection, page)
    if print0:
        return print_paths(answer.whole_paths())
    if as_json:
        return output.print_json(answer.as_json())
    if page:
        return print("\n".join(output.aligned("page", page.resolve().as_uri(), sys.stdout)))
    if runs:
        cells = [(row["id"], row["input"], row["split"] or "all splits") for row in answer.runs]
        return print("\n".join(output.table(("run", "input", "split"), cells)))
    width = output.width_of(sys.stdout)
    for _, file in answer.files:
        print(path_text(file.path, width))
    return None


def _print_all(listing: CatalogListing) -> None:
    if not listing.datasets:
        return print("no dataset yet: podwright data scan PATH --name DATASET")
    width = output.width_of(sys.stdout)
    rows = []
    for row in listing.datasets:
        rows.append((row.name, str(row.files), figures.size(row.bytes), row.layout, row.root))
    print("\n".join(output.table(("dataset", "files", "size", "layout", "root"), rows, width)))
    if listing.selections:
        cells = []
        for selection in listing.selections:
            splits = ", ".join(f"{name} {len(split.samples)}" for name, split in selection.splits.items())
            cells.append((selection.name, selection.dataset, selection.digest[:19], splits))
        print("\n".join(["", *output.table(("selection", "dataset", "digest", "samples"), cells, width)]))
    return None


def _print_dataset(facts: DatasetColumns) -> None:
    summary = facts.summary
    sizes = f"{figures.count(summary.files, 'file')}, {figures.size(summary.bytes)}"
    lines = {summary.name: f"{sizes}, layout {summary.layout}", "root": summary.root}
    for column, values in facts.columns.items():
        shown = [f"{value} {count}" for value, count in list(values.items())[:_MAX_VALUES]]
        more = len(values) - len(shown)
        if more:
            shown.append(f"and {more} more")
        lines[column] = "\n".join(textwrap.wrap(", ".join(shown), _TEXT_WIDTH))
    if not facts.classes:
        lines["classes"] = f"not counted yet: podwright data stats {summary.name}"
    for word, text in lines.items():
        print("\n".join(output.aligned(word, text, sys.stdout)))


def data_forget_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A dataset or a selection.", autocompletion=complete_name)
    ],
    catalog: WithdrawFrom = None,
    yes: Yes = False,
) -> int:
    """Forget a dataset or a selection; no file of it is touched."""

    def agree(address: str | None) -> bool:
        if address is None:
            return output.confirm(f"Forget {name}?", yes)
        return output.confirm_destroying(f"Withdraw {name} from {address}?", yes)

    return int(not open_catalog().forget(name, catalog, agree))
