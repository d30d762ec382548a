"""`design`: sizes, wires and places a pod, prints it as tables, writes all that is needed to build it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli import talk
from podwright.cli.options import AsJson, complete_file

if TYPE_CHECKING:
    from podwright.design.plan import Design
    from podwright.spec import Pod


def design_command(
    pod: Annotated[
        str | None, typer.Argument(metavar="[POD]", help="The pod's file.", autocompletion=complete_file)
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=1, help="Nodes, when there is no file.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="M", help="Their model in the library.")] = None,
    cables: Annotated[bool, typer.Option("--cables", help="Print every cable.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prints the design of a pod."""
    made = _designed(pod, nodes, model)
    if as_json:
        from podwright.design.document import cables_json, design_json

        return talk.print_json(cables_json(made) if cables else design_json(made))
    from podwright.cli.design_tables import cable_table, design_tables

    width = talk.width_of(sys.stdout)
    return print("\n".join(cable_table(made, width) if cables else design_tables(made, width)))


def _designed(pod: str | None, nodes: int | None, model: str | None) -> Design:
    """Designs what is named; problems are told with the file's name as it was given."""
    from dataclasses import replace

    from podwright.design.plan import design_pod
    from podwright.spec.problems import Refusal

    given = _pod(pod, nodes, model)
    try:
        made = design_pod(given)
        _ = made.floor
    except Refusal as refusal:
        file = pod or ""
        raise Refusal(replace(one, file=file) for one in refusal.problems) from None
    return made


def _pod(pod: str | None, nodes: int | None, model: str | None) -> Pod:
    from podwright.spec import load_pod
    from podwright.spec.problems import refuse

    if (pod is None) == (nodes is None) or (nodes is None) != (model is None):
        raise refuse(
            "needs a pod's file, or --nodes and --model",
            hint="`podwright design pod.yaml` or `podwright design --nodes 140 --model dgx-a100`",
        )
    if pod is not None:
        return load_pod(pod)
    return _plain_pod(nodes or 1, str(model))


def _plain_pod(nodes: int, model: str) -> Pod:
    """Makes the pod of so many nodes of a model, named as such machines mostly are."""
    from podwright.spec import Pod, fold_hosts, node_model

    name = node_model(model).name or "node"
    digits = max(3, len(str(nodes)))
    hosts = [f"{name.split('-')[0]}{number:0{digits}d}" for number in range(1, nodes + 1)]
    return Pod.model_validate({"name": "pod", "nodes": [{"hosts": fold_hosts(hosts), "model": model}]})
