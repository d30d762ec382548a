"""`data similar` and `data vectors`: images that are nearly the same, and what says so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podwright.cli.commands.data.options import DatasetName, complete_name, open_catalog, path_text, shown_progress
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

_SHOWN_GROUPS, _SHOWN_PATHS = 10, 5


def data_similar_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A dataset or a selection.", autocompletion=complete_name)
    ],
    distance: Annotated[
        str | None,
        typer.Option("--distance", metavar="D", help="Bits of 64, 6 if left out; of vectors 1 - cosine, 0.05."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List groups of near-duplicates; exit 1 where one lies in two splits of a selection."""
    with shown_progress() as progress:
        similar = open_catalog().similar(name, _number(distance), progress)
    if as_json:
        output.print_json(similar.as_json())
        return int(similar.crossing > 0)
    width = output.width_of(sys.stdout)
    for group in similar.groups[:_SHOWN_GROUPS]:
        where = f" in {', '.join(group.splits)}" if group.splits else ""
        print(f"{figures.count(group.size, 'image')}{where}")
        for path in group.paths[:_SHOWN_PATHS]:
            print(f"  {path_text(path, width and width - 2)}")
        if group.size > _SHOWN_PATHS:
            print(f"  and {group.size - _SHOWN_PATHS} more")
    if len(similar.groups) > _SHOWN_GROUPS:
        print(f"and {figures.count(len(similar.groups) - _SHOWN_GROUPS, 'group')} more")
    sentence = f"{figures.count(len(similar.groups), 'group')} among {figures.count(similar.images, 'image')}"
    if similar.unknown:
        sentence += f", {similar.unknown} of which nothing is known"
    print(f"{sentence}, by {similar.by}")
    if similar.crossing:
        output.say("leakage", f"{figures.count(similar.crossing, 'group')} in more than one split; --no-duplicates")
    return int(similar.crossing > 0)


def _number(text: str | None) -> float | None:
    from podwright.spec.problems import refuse

    try:
        return None if text is None else float(text)
    except ValueError:
        raise refuse(f'"{text}" is no number', hint="such as 4, or 0.05 of vectors", field="--distance") from None


def data_vectors_command(
    dataset: DatasetName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Parquet with the columns `path` and `vector`.")],
    as_json: AsJson = False,
) -> None:
    """Take a vector for each image, as any program computes it: near-duplicates are then told by these."""
    vectors = open_catalog().keep_vectors(dataset, file)
    if as_json:
        return output.print_json(vectors.as_json())
    return print(f"{figures.count(vectors.vectors, 'vector')} of {vectors.dimensions} numbers")
