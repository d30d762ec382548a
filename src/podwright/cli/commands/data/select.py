"""`data select`, `diff`, `ls` and `forget`: what was chosen, and what there is to choose from."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.commands.data.catalogs import Catalog, WithdrawFrom, catalog_of, opened_for_reading
from podwright.cli.commands.data.scan import DatasetName, complete_name, open_store, path_text
from podwright.cli.options import AsJson, Yes, complete_run
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data.catalog.store import Store
    from podwright.data.selecting.selections import Selection

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
Confusion = Annotated[
    str | None,
    typer.Option("--confusion", metavar="RUN", help="Samples of what it confused.", autocompletion=complete_run),
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
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Decides what chance decides.")] = 0,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Choose samples of a dataset and freeze them under a name."""
    store = open_store()
    from podwright.data.selecting.select import Choice, make_selection

    wanted = Choice(
        name=name,
        where=where,
        size=size,
        split=split,
        folds=folds,
        by=by,
        representative=representative,
        confusion=_run(confusion),
        classes=classes,
        uncertainty=_run(uncertainty),
        seed=seed,
    )
    selection = make_selection(store, dataset, wanted, opened_for_reading(store, dataset, catalog))
    if as_json:
        return output.print_json(selection.as_json())
    return print("\n".join(_selected(selection)))


def _run(ref: str | None) -> tuple[str, Path] | None:
    """Return the id and the folder of the run that a user means."""
    if ref is None:
        return None
    from podwright.launch import Session, find

    with Session.open() as session:
        run = find(session, ref)
        return run.id, run.folder.path


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
    for kind in ("confusion", "uncertainty"):
        if lineage.get(kind):
            yield f"{kind} of {lineage[kind]['run']} ({lineage[kind]['ranked_by']})"


def data_diff_command(
    first: Annotated[str, typer.Argument(metavar="SELECTION", autocompletion=complete_name, help="What was.")],
    second: Annotated[str, typer.Argument(metavar="SELECTION", autocompletion=complete_name, help="What is.")],
    as_json: AsJson = False,
) -> None:
    """Say how the second selection differs from the first, in samples."""
    store = open_store()
    from podwright.data.selecting.select import difference
    from podwright.data.selecting.selections import load

    answer = difference(load(store, first), load(store, second))
    if as_json:
        return output.print_json(asdict(answer))
    distance = figures.NONE if answer.distance is None else f"{answer.distance:.3f}"
    print(f"{answer.added} added, {answer.removed} removed, {answer.kept} kept, distance {distance}")
    return None


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
    print0: Annotated[bool, typer.Option("--print0", help="Whole paths, a zero byte behind each: xargs -0.")] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """List datasets and selections; of a selection the images, of a dataset what its columns hold."""
    store = open_store()
    if name is None:
        return _list_all(store, catalog, as_json)
    if catalog or name in store.datasets():
        return _list_dataset(store, name, catalog, as_json)
    from podwright.data.selecting.selections import check_split, load

    known = [*store.datasets(), *store.selection_names()]
    if name not in known:
        raise store.unknown(name, known, "dataset or selection", "`podwright data ls` lists them")
    selection = load(store, name)
    if page:
        from podwright.report.selection import write_selection_page

        write_selection_page(selection, page)
    if page and not as_json:
        return print("\n".join(output.aligned("page", page.resolve().as_uri(), sys.stdout)))
    if runs and not as_json:
        return _list_runs(store, selection)
    return _list_selection(store, selection, check_split(selection, split), files, (print0, as_json))


def _list_all(store: Store, catalog: str | None, as_json: bool) -> None:
    from podwright.data.selecting.selections import load

    # A selection lies in its home, whatever it was chosen from.
    selections = [] if catalog else [load(store, name).as_json() for name in store.selection_names()]
    datasets = list(_published(catalog) if catalog else _scanned(store))
    if as_json:
        return output.print_json({"datasets": datasets, "selections": selections})
    if not datasets:
        return print("no dataset yet: podwright data scan PATH --name DATASET")
    width = output.width_of(sys.stdout)
    rows = [
        (row["name"], str(row["files"]), figures.size(row["bytes"]), row["layout"], row["root"]) for row in datasets
    ]
    print("\n".join(output.table(("dataset", "files", "size", "layout", "root"), rows, width)))
    if selections:
        cells = []
        for row in selections:
            splits = ", ".join(f"{name} {split['count']}" for name, split in row["splits"].items())
            cells.append((row["name"], row["lineage"]["dataset"], row["digest"][:19], splits))
        print("\n".join(["", *output.table(("selection", "dataset", "digest", "samples"), cells, width)]))
    return None


def _scanned(store: Store) -> Iterator[dict[str, Any]]:
    from podwright.data.catalog.dataset import open_dataset
    from podwright.data.query.conditions import EVERYTHING

    for name in store.datasets():
        with open_dataset(store, name) as opened:
            held = dict(zip(("files", "bytes"), opened.count(EVERYTHING), strict=True))
            yield {"name": name, **held, "layout": opened.layout.name, "root": opened.root}


def _published(catalog: str) -> Iterator[dict[str, Any]]:
    from podwright.data.clickhouse.published import published_datasets

    for name, entry in published_datasets(catalog_of(catalog)).items():
        yield {"name": name, **{key: entry.meta[key] for key in ("files", "bytes", "layout", "root")}}


def _list_dataset(store: Store, name: str, catalog: str | None, as_json: bool) -> None:
    from podwright.data.query.conditions import EVERYTHING

    with opened_for_reading(store, name, catalog) as opened:
        files, size_bytes = opened.count(EVERYTHING)
        facets = opened.facets()
        classes, root, layout = opened.classes, opened.root, opened.layout.name
    if as_json:
        held = {"name": name, "root": root, "layout": layout, "files": files, "bytes": size_bytes}
        return output.print_json({**held, "columns": facets, "classes": classes})
    lines = {name: f"{figures.count(files, 'file')}, {figures.size(size_bytes)}, layout {layout}", "root": root}
    for column, values in facets.items():
        shown = [f"{value} {count}" for value, count in list(values.items())[:_MAX_VALUES]]
        more = len(values) - len(shown)
        if more:
            shown.append(f"and {more} more")
        lines[column] = "\n".join(textwrap.wrap(", ".join(shown), _TEXT_WIDTH))
    if not classes:
        lines["classes"] = f"not counted yet: podwright data stats {name}"
    for word, text in lines.items():
        print("\n".join(output.aligned(word, text, sys.stdout)))
    return None


def _list_runs(store: Store, selection: Selection) -> None:
    from podwright.data.selecting.links import runs_with

    rows = [
        (row["id"], row["input"], row["split"] or "all splits") for row in runs_with(store.home / "runs", selection)
    ]
    print("\n".join(output.table(("run", "input", "split"), rows)))


def _list_selection(store: Store, selection: Selection, split: str | None, files: bool, how: tuple[bool, bool]) -> None:
    from podwright.data.selecting.links import runs_with
    from podwright.data.selecting.manifests import samples_of

    print0, as_json = how
    rows = []
    for name, sample in samples_of(selection, split):
        rows += [(name, file) for file in (sample.files if files else sample.files[:1])]
    if print0:
        for _, file in rows:
            sys.stdout.buffer.write(selection.root + b"/" + file.path_bytes + b"\0")
        sys.stdout.buffer.flush()
        return None
    if as_json:
        from podwright.data.tree.paths import as_json as path_json

        listed = []
        for name, file in rows:
            listed.append({"split": name, "role": file.role, **path_json(file.path, file.raw), "size": file.size})
        beside = {"root": selection.lineage.get("root"), "runs": runs_with(store.home / "runs", selection)}
        return output.print_json({**selection.as_json(), **beside, "files": listed})
    width = output.width_of(sys.stdout)
    for _, file in rows:
        print(path_text(file.path, width))
    return None


def data_forget_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A dataset or a selection.", autocompletion=complete_name)
    ],
    catalog: WithdrawFrom = None,
    yes: Yes = False,
) -> int:
    """Forget a dataset or a selection; no file of it is touched."""
    store = open_store()
    if catalog is not None:
        return _withdraw(name, catalog, yes)
    from podwright.data.selecting.selections import forget_selection

    known = [*store.datasets(), *store.selection_names()]
    if name not in known:
        raise store.unknown(name, known, "dataset or selection", "`podwright data ls` lists them")
    if not output.confirm(f"Forget {name}?", yes):
        return 1
    if name in store.selection_names():
        forget_selection(store, name)
    else:
        store.forget(name)
    return 0


def _withdraw(name: str, catalog: str, yes: bool) -> int:
    from podwright.data.clickhouse.publish import withdraw
    from podwright.data.clickhouse.published import check_published

    server = catalog_of(catalog)
    check_published(server, name)
    if not output.confirm_destroying(f"Withdraw {name} from {server.address}?", yes):
        return 1
    withdraw(server, name)
    return 0
