"""`data history` and `data revert`: the generations of a dataset that stay, and the way back to one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podwright.cli.commands.data.options import DatasetName, open_catalog
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output


def data_history_command(dataset: DatasetName, as_json: AsJson = False) -> None:
    """List the generations of a dataset that can be gone back to, the newest first."""
    history = open_catalog().history(dataset)
    if as_json:
        return output.print_json(history.as_json())
    rows = []
    for row in history.as_json():
        counts = [figures.NONE if row[key] is None else str(row[key]) for key in ("files", "changed")]
        rows.append((str(row["generation"]), row["at"], *counts, figures.size(row["bytes"])))
    return print("\n".join(output.table(("generation", "at", "files", "changed", "size"), rows)))


def data_revert_command(
    dataset: DatasetName,
    generation: Annotated[int, typer.Argument(metavar="GENERATION", help="One of `data history`.")],
    as_json: AsJson = False,
) -> None:
    """Go back to a generation; tags given since stay with files that both know."""
    reverted = open_catalog().revert(dataset, generation)
    if as_json:
        return output.print_json(reverted.as_json())
    news = f"as in generation {reverted.reverted_to}, now generation {reverted.generation}"
    return print("\n".join(output.aligned(dataset, news, sys.stdout)))
