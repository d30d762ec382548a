"""`mirror`: one archive that carries what a pod needs from outside to a site without a network."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.pod.pods import PodRef
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.bringup import BringupProgress

ArchivePath = Annotated[Path, typer.Argument(metavar="FILE", help="An archive that `mirror make` wrote.")]


def mirror_make_command(
    pod: PodRef,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Write the archive here.")],
    as_json: AsJson = False,
) -> int:
    """Fetch all packages, Python packages and images of a pod and write them into one archive that its key signs."""
    from podwright import bringup_of
    from podwright.bringup import mirror

    bringup = bringup_of(pod)
    keys = bringup.archive_keys()
    checked = mirror.make(bringup.pod, out, keys, lambda progress: output.say(progress.kind, progress.text))
    if as_json:
        output.print_json(checked.as_json())
    output.say("written", f"{out}: {checked.files} files, {figures.size(checked.bytes)}")
    return 0


def mirror_verify_command(file: ArchivePath, as_json: AsJson = False) -> int:
    """Look through a whole archive and name what is not as it should be."""
    from podwright.bringup import mirror

    checked = mirror.verify(file)
    if as_json:
        output.print_json(checked.as_json())
    for entry in checked.bad:
        output.say("bad", f"{entry['path']} {entry['what']}")
    if not checked.is_known:
        output.say("unknown", "who signed it: this home has no vault of its pod; only its own key was asked")
    if not checked.bad:
        output.say("ok", f"{file}: {checked.files} files, {figures.size(checked.bytes)}")
    return int(bool(checked.bad))


def mirror_serve_command(
    file: ArchivePath,
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="Where hosts reach it; left out: this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="The port; 0: any that is free.")] = 3142,
    plain: Annotated[bool, typer.Option("--plain", help="By HTTP, for installers: what they get is signed.")] = False,
) -> int:
    """Serve an archive by TLS of the pod's authority until it is stopped; one that is not whole is refused."""
    from podwright.bringup import mirror

    def show(progress: BringupProgress) -> None:
        url = progress.text
        output.say("serving", f"packages: {url}/packages/, images: {url}/v2/")
        output.say("hosts", f"`archive: {url}` under `bringup:` of the pod's file" if not plain else "installers alone")
        if not plain:
            words = "--cert CA --require-hashes --requirement requirements.txt"
            output.say("python", f"pip install --index-url {url}/simple/ {words}")
        print(url, flush=True)

    with suppress(KeyboardInterrupt):
        mirror.serve(file, address, port, show, plain)
    sys.stderr.write("\n")
    return 0
