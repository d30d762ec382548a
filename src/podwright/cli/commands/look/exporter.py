"""`exporter`: this host's GPUs, ports and runs, as Prometheus reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from podwright import telemetry
from podwright.spec.problems import refuse


def exporter_command(
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where it is asked.")
    ] = "127.0.0.1:9835",
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="What this host is called; else its name.")] = "",
    names: Annotated[
        str, typer.Option("--vocabulary", metavar="WHICH", help="Names beside ours: dcgm-4, dcgm-4.9, both or none.")
    ] = "both",
    bridge: Annotated[
        str, typer.Option("--bridge", metavar="URL", help="A page of DCGM's exporter to pass on; auto, off.")
    ] = "auto",
    gpus: Annotated[
        int | None, typer.Option("--gpus", metavar="N", min=0, help="How many GPUs there should be.")
    ] = None,
    kernel_log: Annotated[
        str, typer.Option("--kernel-log", metavar="FILE", help="The kernel's log, where it is not in the journal.")
    ] = "",
    certificate: Annotated[
        str, typer.Option("--certificate", metavar="FILE", help="The certificate it is served by.")
    ] = "",
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The key of the certificate.")] = "",
    token: Annotated[str, typer.Option("--token", metavar="FILE", help="Has the token that a reader must show.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Print the page and end.")] = False,
) -> None:
    """Serve the page until it is ended."""
    if names not in telemetry.NAMES:
        raise refuse(f"{names} is no vocabulary", hint=f"one of {', '.join(telemetry.NAMES)}", field="--vocabulary")
    telemetry.serve_exporter(
        telemetry.ExporterWords(listen, host, names, bridge, gpus, kernel_log, certificate, key, token, once)
    )
