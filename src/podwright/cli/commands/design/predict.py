"""`predict`: what a job on some nodes of a pod will get of its wires, before anything is bought or started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import design
from podwright.cli.commands.design.series import print_series
from podwright.cli.commands.design.training import facts_of, training_lines
from podwright.cli.commands.pod.pods import read_pod
from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal import figures, output
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse
from podwright.spec.quantity import size_bytes

if TYPE_CHECKING:
    from podwright.design import AcceptanceSheet, JobPrediction

_BAR = 14


def predict_command(
    pod: Annotated[
        str | None,
        typer.Argument(metavar="[POD]", help="A pod's file, or a known pod's name.", autocompletion=complete_file),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", help="So many nodes, from the first.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", metavar="HOSTS", help="These nodes: dgx[001-016].")] = None,
    pods: Annotated[int, typer.Option("--pods", metavar="N", help="Spread over so many pods with one core.")] = 1,
    runs: Annotated[
        list[str],
        typer.Option("--from", metavar="RUN", help="Predict training from this run, or from two."),
    ] = [],  # noqa: B006 - the library makes a new list for each call
    batch: Annotated[int | None, typer.Option("--batch", metavar="N", help="The run's whole batch.")] = None,
    gradients: Annotated[
        str | None, typer.Option("--gradients", metavar="SIZE", help="Bytes all-reduced in a step: 51MB.")
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option("--series", metavar="FILE", help="Fit measured sizes: count,batch,minutes,epochs."),
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="With --series: draw it.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the acceptance sheet as CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the acceptance sheet of a job's nodes, and what a run's training would take on them."""
    if series is not None and pod is None:
        return print_series(series, as_json, svg)
    if series is not None or pod is None or svg is not None:
        raise refuse("say what to predict", hint="give either a pod and its nodes, or --series sizes.csv")
    facts = facts_of(runs) if runs and not as_csv else None
    reduced = size_bytes(gradients) if facts and gradients else None
    request = design.JobRequest(nodes, hosts, pods, facts, batch, reduced)
    return _print(design.JobPrediction.of(read_pod(pod), request), as_csv, as_json)


def _print(prediction: JobPrediction, as_csv: bool, as_json: bool) -> None:
    if as_csv:
        return print(prediction.sheet.as_csv(), end="")
    if as_json:
        return output.print_json(prediction.as_json())
    lines = [*_sheet(prediction.sheet)]
    if prediction.training is not None:
        lines += training_lines(prediction.training)
    return print("\n".join(lines))


def _sheet(sheet: AcceptanceSheet) -> Iterator[str]:
    """Lay out verdict, nodes, table and what breaks it, 80 columns wide."""
    verdict, placement = sheet.verdict, sheet.placement
    wires, count = placement.wires, len(placement.hosts)
    nodes, named = figures.count(count, "node"), fold_hosts(list(placement.hosts))
    speeds = f"NVLink {wires.family.nvlink_gb_s:.0f} GB/s"
    if count > 1:
        speeds += f", network {wires.nics} x {wires.nic_gb_s:.0f} GB/s = {wires.network_gb_s:.0f} GB/s a node"
    alarm = "no alarm at this size"
    if verdict.alarm_gb_s is not None:
        alarm = f"alarm under {verdict.alarm_gb_s:.0f}"
    lines = {
        "expect": f"{verdict.expected.bus_gb_s:.0f} GB/s bus bandwidth at 1 GiB, {alarm}",
        "job": f"{nodes}, {count * wires.gpus} GPUs, {placement.span}: {named}",
        "wires": speeds,
        "test": sheet.settings,
    }
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)
    yield ""
    yield from _table(sheet)
    yield ""
    yield from _broken(sheet)
    yield from output.aligned("origin", sheet.origin, sys.stdout)


def _table(sheet: AcceptanceSheet) -> list[str]:
    """Lay out a row for each size; the bar is the bus bandwidth against the best of the sheet."""
    rows = sheet.rows()
    top = max(row.expected.bus_gb_s for row in rows)
    names = [other.algorithm for other in rows[0].others]
    cells = []
    for row in rows:
        filled, _ = figures.bar(row.expected.bus_gb_s / top, _BAR)
        others = [f"{other.bus_gb_s:5.0f}" for other in row.others]
        figure = [f"{row.expected.bus_gb_s:6.0f}", f"{_rounded(row.alarm_gb_s):>5}", *others]
        cells.append([figures.size(row.expected.size_bytes), _time(row.expected.time_s), *figure, filled])
    return output.table(["size", "time", "expect", "alarm", *names, "GB/s bus"], cells)


def _broken(sheet: AcceptanceSheet) -> Iterator[str]:
    """Say what is left of the wires when ranks are scattered over units, and when something is broken."""
    scattered = sheet.scattered_share
    if scattered < 1:
        text = f"ranks that are scattered over units have {scattered * 100:.0f} % of the wires"
        yield from output.aligned("order", text, sys.stdout)
    lines = []
    for failure in sheet.failures:
        line = f"one {failure.what}: {failure.in_order * 100:.0f} % left"
        if failure.scattered != failure.in_order:
            line += f", scattered ranks {failure.scattered * 100:.0f} %"
        lines.append(line)
    if lines:
        yield from output.aligned("broken", "\n".join(lines), sys.stdout)


def _rounded(gb_s: float | None) -> str:
    if gb_s is None:
        return figures.NONE
    return f"{gb_s:.0f}"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms"
