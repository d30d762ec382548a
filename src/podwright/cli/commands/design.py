"""`design`: sizes, wires and places a pod, prints it as tables, writes all that is needed to build it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.design.growth import Growth
    from podwright.design.plan import Design
    from podwright.spec import Pod


_FILE = (".yaml", ".yml")


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
    allow_moves: Annotated[bool, typer.Option("--allow-moves", help="Accept that cables in use are moved.")] = False,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", help="Compare with what `ibnetdiscover` printed.")
    ] = None,
    gpu_read: Annotated[
        str, typer.Option("--gpu-read", metavar="RATE", help="What one GPU must be able to read, for the verdict.")
    ] = "1GB/s",
    as_json: AsJson = False,
) -> int:
    """Prints the design of a pod; the exit code is 1 when `--check` finds a cable that is not where it belongs."""
    made = _designed(pod, nodes, model)
    if check is not None:
        return _check(made, check, as_json)
    growth = _growth(made, grow_from, allow_moves, pod) if grow_from else None
    if out is not None:
        _write(made, growth, out)
    if as_json:
        output.print_json(_document(made, growth, cables, _rate(gpu_read)))
    else:
        print("\n".join(_lines(made, growth, cables, _rate(gpu_read))))
    return 0


def _rate(text: str) -> int:
    from podwright.spec.problems import Refusal, refuse
    from podwright.spec.quantity import bandwidth_bytes_s

    try:
        return bandwidth_bytes_s(text)
    except Refusal as refusal:
        raise refuse(refusal.problems[0].message, refusal.problems[0].hint, field="--gpu-read") from None


def _lines(made: Design, growth: Growth | None, cables: bool, gpu_read: int) -> list[str]:
    from podwright.cli.commands.design_tables import cable_table, design_tables, growth_tables

    width = output.width_of(sys.stdout)
    if growth is not None:
        return growth_tables(growth, cables, width)
    return cable_table(made, width) if cables else design_tables(made, gpu_read, width)


def _document(made: Design, growth: Growth | None, cables: bool, gpu_read: int) -> Any:
    from podwright.design.document import cables_json, design_json, growth_json

    if growth is not None:
        return {**design_json(made, gpu_read), "growth": growth_json(growth)}
    return cables_json(made) if cables else design_json(made, gpu_read)


def _growth(made: Design, old: str, allow_moves: bool, pod: str | None) -> Growth:
    from podwright.design.growth import grow, refuse_moves

    before = _designed(old, None, None)
    growth = grow(before, made)
    if growth.disturbs and not allow_moves:
        raise _as_given(refuse_moves(growth, before, made), made, pod)
    return growth


def _check(made: Design, path: Path, as_json: bool) -> int:
    from podwright.design.check import check_fabric
    from podwright.spec.problems import refuse

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise refuse(f"cannot be read: {(error.strerror or '').lower()}", file=str(path)) from None
    checked = check_fabric(made, text, str(path))
    if as_json:
        found = [{"kind": one.kind, "message": one.message} for one in checked.findings]
        output.print_json({"fabrics": checked.fabrics, "cables": checked.cables, "findings": found})
    else:
        for one in checked.findings:
            told = one.message.replace("; ", "\n").replace(", ", "\n")
            print("\n".join(output.aligned(one.kind, told, sys.stdout)))
        verdict = "as designed" if not checked.findings else f"{len(checked.findings)} not as designed"
        print(f"checked   {checked.cables:,} cables of {' and '.join(checked.fabrics)}: {verdict}")
    return 1 if checked.findings else 0


def _write(made: Design, growth: Growth | None, out: Path) -> None:
    from podwright import theme
    from podwright.cli.terminal.files import write_files
    from podwright.design.exports.files import design_files
    from podwright.design.exports.tables import growth_plan

    files = design_files(made, theme.asset("tokens.css"))
    if growth is not None:
        files["growth.csv"] = growth_plan(growth, made)
    write_files(files, out)
    output.say("wrote", f"{len(files)} files to {out}")


def _designed(pod: str | None, nodes: int | None, model: str | None) -> Design:
    """Designs what is named; problems are told with the file's name as it was given."""
    from podwright.design.plan import design_pod
    from podwright.spec.problems import Refusal

    given = _pod(pod, nodes, model)
    try:
        made = design_pod(given)
        made.floor  # noqa: B018 - racks that cannot hold the pod are refused before anything is printed
    except Refusal as refusal:
        raise _renamed(refusal, pod) from None
    return made


def _as_given(refusal: Any, made: Design, pod: str | None) -> Any:
    """Gives a refusal of the design its place in the pod's file."""
    return _renamed(made.pod.refusal((one.field, one.message, one.hint) for one in refusal.problems), pod)


def _renamed(refusal: Any, pod: str | None) -> Any:
    """Names the file as the user did; a pod that is known by name has one of its own."""
    from dataclasses import replace

    from podwright.spec.problems import Refusal

    if pod is not None and not pod.endswith(_FILE):
        return refusal
    return Refusal(replace(one, file=pod or "") for one in refusal.problems)


def _pod(pod: str | None, nodes: int | None, model: str | None) -> Pod:
    from podwright.spec.problems import refuse

    if (pod is None) == (nodes is None) or (nodes is None) != (model is None):
        raise refuse(
            "needs a pod's file, or --nodes and --model",
            hint="`podwright design pod.yaml` or `podwright design --nodes 140 --model dgx-a100`",
        )
    if pod is None:
        return _plain_pod(nodes or 1, str(model))
    if pod.endswith(_FILE):
        from podwright.spec import load_pod

        return load_pod(pod)
    from podwright.launch import pods
    from podwright.runs import Home

    return pods.find(Home.open(), pod)


def _plain_pod(nodes: int, model: str) -> Pod:
    """Makes the pod of so many nodes of a model, named as such machines mostly are."""
    from podwright.spec import Pod, fold_hosts, node_model
    from podwright.spec.hostlist import MOST_HOSTS
    from podwright.spec.problems import refuse

    if nodes > MOST_HOSTS:
        raise refuse(f"more than {MOST_HOSTS:,} nodes", hint="several pods can meet in one core", field="--nodes")
    name = node_model(model).name or "node"
    digits = max(3, len(str(nodes)))
    hosts = [f"{name.split('-')[0]}{number:0{digits}d}" for number in range(1, nodes + 1)]
    return Pod.model_validate({"name": "pod", "nodes": [{"hosts": fold_hosts(hosts), "model": model}]})
