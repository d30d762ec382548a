"""`capacity`: from cars and cameras to bandwidth, storage and nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.design.predict.capacity import CapacityPlan

_VERDICTS = (("data", "bytes_per_year", "{} a year"), ("ingest", "bytes_s", "{} in"), ("training", "nodes", "{}"))


def capacity_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capacity file.", autocompletion=complete_file)],
    as_json: AsJson = False,
) -> None:
    """Reckon and print every figure with how it came about."""
    from podwright.design.predict import capacity
    from podwright.design.predict.capacity_file import parse_capacity
    from podwright.spec.source import decode, read_source

    plan = capacity.reckon(parse_capacity(decode(read_source(file), str(file)), str(file)))
    if as_json:
        return output.print_json(capacity.as_json(plan))
    return print("\n".join(_lines(plan)))


def _lines(plan: CapacityPlan) -> Iterator[str]:
    from podwright.design.predict.capacity import shown

    figures = {(figure.section, figure.name): shown(figure) for figure in plan.figures}
    needs = [text.format(figures[section, name]) for section, name, text in _VERDICTS if (section, name) in figures]
    yield from output.aligned("needs", ", ".join(needs), sys.stdout)
    yield ""
    rows = []
    for section, group in groupby(plan.figures, key=lambda figure: figure.section):
        label = section
        for figure in group:
            rows.append([label, _spoken(figure.name), figures[section, figure.name], figure.how])
            label = ""
    yield from output.table(["", "what", "how much", "how"], rows, output.width_of(sys.stdout))
    yield ""
    if plan.assumptions:
        yield from output.aligned("assumed", "\n".join(plan.assumptions), sys.stdout)
    yield from output.aligned("origin", "modelled from what the file gives", sys.stdout)


def _spoken(name: str) -> str:
    """Return a figure's name as people say it; its unit stands beside the number."""
    return name.replace("_bytes_s", " rate").replace("bytes_s", "rate").replace("_", " ")
