"""`mirror`: one archive that carries what a pod needs from outside to a site without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podwright.cli.commands.pod.pods import PodRef
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

ArchivePath = Annotated[Path, typer.Argument(metavar="FILE", help="An archive that `mirror make` wrote.")]


def mirror_make_command(
    pod: PodRef,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Write the archive here.")],
    as_json: AsJson = False,
) -> int:
    """Fetch all packages, Python packages and images of a pod and write them into one archive."""
    import tempfile

    from podwright.bringup.mirror import archive, collect, wheels
    from podwright.cli.commands.pod.hosts import bringup_pod

    wanted = bringup_pod(pod)
    with tempfile.TemporaryDirectory(prefix="podwright-mirror-", dir=out.absolute().parent) as name:
        folder = Path(name)
        names = collect.packages_of(wanted)
        output.say("packages", f"{len(names)} with all that they need")
        collect.fetch_packages(names, wanted.bringup.os, folder)
        if wanted.bringup.wheels:
            output.say("python", f"{len(wanted.bringup.wheels)} with all that they need")
            wheels.fetch_wheels(wanted.bringup.wheels, wanted.bringup.os, folder)
        images = {}
        for image in collect.images_of(wanted):
            output.say("image", image)
            images[image] = collect.fetch_image(image, folder)
        index = archive.write_archive(out, wanted.name, folder, images)
    checked = archive.ArchiveCheck(len(index.files), sum(entry.size for entry in index.files), ())
    if as_json:
        output.print_json(checked.as_json())
    output.say("written", f"{out}: {checked.files} files, {figures.size(checked.bytes)}")
    return 0


def mirror_verify_command(file: ArchivePath, as_json: AsJson = False) -> int:
    """Look through a whole archive and name what is not as it should be."""
    from podwright.bringup.mirror.archive import verify

    checked = verify(file)
    if as_json:
        output.print_json(checked.as_json())
    for entry in checked.bad:
        output.say("bad", f"{entry['path']} {entry['what']}")
    if not checked.bad:
        output.say("ok", f"{file}: {checked.files} files, {figures.size(checked.bytes)}")
    return int(bool(checked.bad))


def mirror_serve_command(
    file: ArchivePath,
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="Where hosts reach it; left out: this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="The port; 0: any that is free.")] = 3142,
) -> int:
    """Serve an archive until it is stopped; one that is not whole is refused."""
    from podwright.bringup.mirror.archive import verify
    from podwright.bringup.mirror.serve import ArchiveServer
    from podwright.spec.problems import refuse

    checked = verify(file)
    if checked.bad:
        first = checked.bad[0]
        raise refuse(f"{file}: {first['path']} {first['what']}", hint="bring it over again, or make it anew")
    with ArchiveServer(file, address, port) as server:
        place = f"http://{address}:{server.server_port}"
        output.say("serving", f"{place}; `deb [trusted=yes] {place}/packages ./`, images under {place}/v2/")
        output.say("python", f"pip install --index-url {place}/simple/ --trusted-host {address} NAME")
        print(place, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
    return 0
