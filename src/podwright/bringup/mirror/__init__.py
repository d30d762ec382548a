"""One archive that carries what a pod needs from outside to a site that has no network: packages and images.

These functions are the door: make an archive, look through one, serve one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.bringup.mirror.archive import ArchiveCheck
    from podwright.bringup.progress import OnProgress
    from podwright.spec import Pod

__all__ = ["make", "serve", "verify"]


def make(pod: Pod, out: Path, on_progress: OnProgress) -> ArchiveCheck:
    """Fetch all packages, Python packages and images of a pod and write them into one archive; return what it has."""
    import tempfile

    from podwright.bringup.mirror import archive, collect, wheels
    from podwright.bringup.progress import BringupProgress

    settings = pod.bringup
    with tempfile.TemporaryDirectory(prefix="podwright-mirror-", dir=out.absolute().parent) as name:
        folder = Path(name)
        names = collect.packages_of(pod)
        on_progress(BringupProgress("packages", f"{len(names)} with all that they need"))
        collect.fetch_packages(names, settings.os, folder)
        if settings.wheels:
            on_progress(BringupProgress("python", f"{len(settings.wheels)} with all that they need"))
            wheels.fetch_wheels(settings.wheels, settings.os, folder)
        images = {}
        for image in collect.images_of(pod):
            on_progress(BringupProgress("image", image))
            images[image] = collect.fetch_image(image, folder)
        index = archive.write_archive(out, pod.name, folder, images)
    return archive.ArchiveCheck(len(index.files), sum(entry.size for entry in index.files), ())


def verify(file: Path) -> ArchiveCheck:
    """Look through a whole archive: every file by its digest, and every image down to its last layer."""
    from podwright.bringup.mirror import archive

    return archive.verify(file)


def serve(file: Path, address: str, port: int, on_progress: OnProgress) -> None:
    """Serve an archive until it is interrupted, and say where; one that is not whole is refused."""
    from podwright.bringup.mirror.server import ArchiveServer
    from podwright.bringup.progress import BringupProgress
    from podwright.spec.problems import refuse

    checked = verify(file)
    if checked.bad:
        first = checked.bad[0]
        raise refuse(f"{file}: {first['path']} {first['what']}", hint="bring it over again, or make it again")
    with ArchiveServer(file, address, port) as server:
        on_progress(BringupProgress("serving", f"http://{address}:{server.server_port}"))
        server.serve_forever()
