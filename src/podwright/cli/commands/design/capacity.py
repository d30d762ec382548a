"""`capacity`: from cars and cameras to bandwidth, storage and nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import design
from podwright.cli.commands.pod.pods import read_pod
from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.design import CapacityPlan, DatasetFacts

_VERDICTS = (("data", "bytes_per_year", "{} a year"), ("ingest", "bytes_s", "{} in"), ("training", "nodes", "{}"))


def capacity_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capacity file.", autocompletion=complete_file)],
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="DATASET", help="Beside it, what this dataset brought and kept."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--on", metavar="POD", help="With --dataset: how long this pod's storage lasts."),
    ] = None,
    pod: Annotated[
        Path | None, typer.Option("--pod", metavar="FILE", help="Write the pod that carries the chain to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute and print every figure with how it came about."""
    from podwright.spec.source import decode, read_source

    plan = design.CapacityPlan.read(decode(read_source(file), str(file)), str(file))
    if pod is not None:
        _write_pod(plan, file, pod)
    if dataset is not None:
        plan = plan.beside(_facts(dataset), _storage(target) if target else {})
    if as_json:
        return output.print_json(plan.as_json())
    return print("\n".join(_lines(plan)))


def _write_pod(plan: CapacityPlan, file: Path, path: Path) -> None:
    """Write the pod that carries the chain; a file that is there already is somebody's."""
    try:
        text = plan.pod_text()
    except Refusal as refusal:
        raise Refusal(replace(problem, file=str(file)) for problem in refusal.problems) from None
    if path.exists():
        raise refuse(f"{path} is there already", hint="name a new file; it is not written over")
    with in_words(path), path.open("x", encoding="utf-8") as stream:
        stream.write(text)
    output.say("wrote", f"{path}; next: podwright design {path}")


def _facts(dataset: str) -> DatasetFacts:
    from podwright import catalog

    seen = catalog().growth(dataset)
    return design.DatasetFacts(dataset, seen.days, seen.size_bytes, seen.bytes_per_day, seen.kept_share, seen.reasons)


def _storage(pod: str) -> dict[str, int]:
    storage = read_pod(pod).storage
    return {system.name: system.capacity_bytes for system in storage if system.capacity_bytes}


def _lines(plan: CapacityPlan) -> Iterator[str]:
    figures = {(figure.section, figure.name): figure.shown for figure in plan.figures}
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
    if plan.file.assumptions:
        yield from output.aligned("assumed", "\n".join(plan.file.assumptions), sys.stdout)
    yield from output.aligned("origin", "modelled from what the file gives", sys.stdout)


def _spoken(name: str) -> str:
    """Return a figure's name as people say it; its unit stands beside the number."""
    return name.replace("_bytes_s", " rate").replace("bytes_s", "rate").replace("_", " ")
