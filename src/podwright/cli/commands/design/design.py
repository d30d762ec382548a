"""`design`: sizes, wires and places a pod, prints it as tables, writes all that is needed to build it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import design as designs
from podwright import spec
from podwright.cli.commands.pod.pods import POD_FILES, read_pod
from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal import output
from podwright.cli.terminal.files import write_files
from podwright.spec.hostlist import MAX_HOSTS, fold_hosts
from podwright.spec.problems import Refusal, refuse
from podwright.spec.quantity import bandwidth_bytes_s

if TYPE_CHECKING:
    from podwright.design import Checked, Design, Growth
    from podwright.spec import Pod

GpuRead = Annotated[
    str, typer.Option("--gpu-read", metavar="RATE", help="What one GPU must be able to read, for the verdict.")
]
AllowMoves = Annotated[bool, typer.Option("--allow-moves", help="Accept that cables in use are moved.")]
Steps = Annotated[bool, typer.Option("--steps", help="With --grow-from: the work leaf by leaf, with what still works.")]
Built = Annotated[
    Path | None,
    typer.Option(
        "--check", metavar="FILE", help="Compare with what `ibnetdiscover` printed, or LLDP on Ethernet switches."
    ),
]
Sizes = Annotated[
    str | None, typer.Option("--sweep", metavar="nodes=A..B", help="What each of these sizes takes, as a table.")
]


def design_command(
    pod: Annotated[
        str | None, typer.Argument(metavar="[POD]", help="A pod's file or name.", autocompletion=complete_file)
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=1, help="So many nodes, when there is no file.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="M", help="Their model in the library.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write all files into this folder.")] = None,
    cables: Annotated[bool, typer.Option("--cables", help="Print every cable.")] = False,
    grow_from: Annotated[
        str | None, typer.Option("--grow-from", metavar="OLD", help="List what it takes to grow from this pod.")
    ] = None,
    allow_moves: AllowMoves = False,
    steps: Steps = False,
    check: Built = None,
    gpu_read: GpuRead = "1GB/s",
    sweep: Sizes = None,
    as_json: AsJson = False,
) -> int:
    """Print the design of a pod; the exit code is 1 when `--check` finds a cable that is not where it belongs."""
    described = _pod(pod, nodes, model)
    if sweep is not None:
        return _sweep(described, sweep, out, as_json)
    design = _design(described, pod)
    if check is not None:
        return _check(design, check, out, as_json)
    growth = _growth(grow_from, design, allow_moves or steps, pod) if grow_from else None
    if steps:
        return _steps(growth, as_json)
    if out is not None:
        _write({**design.files(growth), "cables.xlsx": design.workbook()}, out)
    if not as_json:
        print("\n".join(_lines(design, growth, cables, _rate(gpu_read))))
    elif cables and growth is None:
        output.print_json(design.cables_json())
    else:
        output.print_json(design.as_json(_rate(gpu_read), growth))
    return 0


def _sweep(described: Pod, sizes: str, out: Path | None, as_json: bool) -> int:
    from podwright.cli.commands.design.tables import sweep_table

    sweep = designs.Sweep.of(described, sizes)
    if out is not None:
        _write(sweep.files(), out)
    if as_json:
        output.print_json(sweep.as_json())
    else:
        print("\n".join(sweep_table(sweep, output.width_of(sys.stdout))))
    return 0


def _steps(growth: Growth | None, as_json: bool) -> int:
    from podwright.cli.commands.design.tables import step_table

    if growth is None:
        raise refuse("steps of which growth?", hint="`podwright design pod.yaml --grow-from old.yaml --steps`")
    steps = designs.Design.steps(growth)
    if as_json:
        output.print_json({"steps": [step.as_json() for step in steps]})
    else:
        print("\n".join(step_table(steps, output.width_of(sys.stdout))))
    return 0


def _design(described: Pod, ref: str | None) -> Design:
    with _named_as(ref):
        design = designs.Design.of(described)
    return design


def _growth(old: str, design: Design, allow_moves: bool, ref: str | None) -> Growth:
    before = _design(read_pod(old), old)
    with _named_as(ref):
        growth = design.growth_from(before, allow_moves)
    return growth


def _write(files: Mapping[str, str | bytes], out: Path) -> None:
    write_files(files, out)
    output.say("wrote", f"{len(files)} files to {out}")


def _rate(text: str) -> int:
    try:
        return bandwidth_bytes_s(text)
    except Refusal as refusal:
        raise refuse(refusal.problems[0].message, refusal.problems[0].hint, field="--gpu-read") from None


def _lines(design: Design, growth: Growth | None, cables: bool, gpu_read: int) -> list[str]:
    from podwright.cli.commands.design.tables import cable_table, design_tables, growth_tables

    width = output.width_of(sys.stdout)
    if growth is not None:
        return growth_tables(growth, cables, width)
    if cables:
        return cable_table(design, width)
    return design_tables(design, gpu_read, width)


def _check(design: Design, path: Path, out: Path | None, as_json: bool) -> int:
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    checked = design.check({str(file): _text(file) for file in files}, str(path))
    if out is not None:
        write_files(checked.files(), out)
    if as_json:
        output.print_json(checked.as_json())
    else:
        _print_check(checked)
    return int(bool(checked.findings))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "write it with `ibnetdiscover`, or on each Ethernet switch with `lldpctl -f json`"
        raise refuse(f"cannot be read: {(error.strerror or '').lower()}", hint, file=str(path)) from None


def _print_check(checked: Checked) -> None:
    for finding in checked.findings:
        text = finding.message.replace("; ", "\n").replace(", ", "\n")
        print("\n".join(output.aligned(finding.kind, text, sys.stdout)))
    if checked.inferred:
        output.say("named", f"{len(checked.inferred)} switches by what they are joined to")
    verdict = "as designed"
    if checked.findings:
        verdict = f"{len(checked.findings)} not as designed"
    print(f"checked   {checked.cables:,} cables of {' and '.join(checked.fabrics)}: {verdict}")


@contextmanager
def _named_as(pod: str | None) -> Iterator[None]:
    """Name the file of a refusal as the user did; a pod that is known by name has one of its own."""
    try:
        yield
    except Refusal as refusal:
        if pod is not None and not pod.endswith(POD_FILES):
            raise
        raise Refusal(replace(problem, file=pod or "") for problem in refusal.problems) from None


def _pod(pod: str | None, nodes: int | None, model: str | None) -> Pod:
    if pod is not None and (nodes is not None or model is not None):
        raise refuse(
            "a pod's file and --nodes or --model were given: they say the same thing twice",
            hint="the file says how many nodes there are, and of which model",
        )
    if (pod is None) == (nodes is None) or (nodes is None) != (model is None):
        raise refuse(
            "needs a pod's file, or --nodes and --model",
            hint="`podwright design pod.yaml` or `podwright design --nodes 140 --model dgx-a100`",
        )
    if pod is None:
        return _plain_pod(nodes or 1, str(model))
    return read_pod(pod)


def _plain_pod(nodes: int, model: str) -> Pod:
    """Make the pod of so many nodes of a model, named as such machines mostly are."""
    if nodes > MAX_HOSTS:
        raise refuse(f"more than {MAX_HOSTS:,} nodes", hint="several pods can meet in one core", field="--nodes")
    name = spec.node_model(model).name or "node"
    digits = max(3, len(str(nodes)))
    hosts = [f"{name.split('-')[0]}{number:0{digits}d}" for number in range(1, nodes + 1)]
    return spec.Pod.model_validate({"name": "pod", "nodes": [{"hosts": fold_hosts(hosts), "model": model}]})
