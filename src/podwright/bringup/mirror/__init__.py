"""One archive that carries what a pod needs from outside to a site that has no network: packages and images.

These functions are the door: make an archive, look through one, serve one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podwright.bringup.mirror.archive import ArchiveCheck
    from podwright.bringup.progress import OnProgress
    from podwright.spec import Pod

__all__ = ["make", "serve", "verify"]


def make(pod: Pod, out: Path, keys: Mapping[str, str], on_progress: OnProgress) -> ArchiveCheck:
    """Fetch all packages, Python packages and images of a pod and write them into one archive; return what it has.

    `keys`: `Bringup.archive_keys()`, which sign it.
    """
    import tempfile
    import time

    from podwright.bringup.mirror import archive, collect, wheels
    from podwright.bringup.plan.site import site_of
    from podwright.bringup.plan.wanted_images import images_of
    from podwright.bringup.progress import BringupProgress

    settings = pod.bringup
    with tempfile.TemporaryDirectory(prefix="podwright-mirror-", dir=out.absolute().parent) as name:
        folder = Path(name)
        names = collect.packages_of(pod)
        on_progress(BringupProgress("packages", f"{len(names)} with all that they need"))
        collect.fetch_packages(names, settings.os, folder)
        collect.write_release(folder, pod.name, keys, time.time())
        if settings.wheels:
            on_progress(BringupProgress("python", f"{len(settings.wheels)} with all that they need"))
            wheels.fetch_wheels(settings.wheels, settings.os, folder)
            wheels.write_requirements(folder, keys)
        images = {}
        for image in images_of(site_of(pod)):
            on_progress(BringupProgress("image", image))
            images[image] = collect.fetch_image(image, folder)
        index = archive.write_archive(out, pod.name, folder, images, keys)
    return archive.ArchiveCheck(len(index.files), sum(entry.size for entry in index.files), ())


def verify(file: Path) -> ArchiveCheck:
    """Look through a whole archive: who signed it, every file by its digest, every image down to its last layer.

    Where this home has the pod's vault its key counts, else the one that the archive names.
    """
    from podwright.bringup.mirror import archive

    return archive.verify(file, lambda pod: _secrets(pod).get("archive_public"))


def serve(file: Path, address: str, port: int, on_progress: OnProgress, plain: bool = False) -> None:
    """Serve an archive until it is interrupted, and say where; one that is not whole is refused.

    By TLS, known by the pod's authority; `plain`: by HTTP, for what trusts signatures alone.
    """
    import tarfile

    from podwright.bringup.apply import authority
    from podwright.bringup.mirror.archive import read_index
    from podwright.bringup.mirror.server import ArchiveServer, ServerCertificate
    from podwright.bringup.progress import BringupProgress
    from podwright.spec.problems import refuse

    checked = verify(file)
    if checked.bad:
        first = checked.bad[0]
        raise refuse(f"{file}: {first['path']} {first['what']}", hint="bring it over again, or make it again")
    certificate = None
    if not plain:
        with tarfile.open(file, "r:") as archive:
            pod = read_index(archive, file.name).index.pod
        secrets = _secrets(pod)
        if "ca_key" not in secrets:
            hint = f"serve where `podwright pod up {pod}` runs, or write --plain: apt and pip still check what they get"
            raise refuse(f"this home has no authority of {pod}", hint=hint)
        signed = authority.sign(secrets, "archive", [address])
        certificate = ServerCertificate(signed["archive_certificate"], signed["archive_key"])
    with ArchiveServer(file, address, port, certificate) as server:
        scheme = "http" if plain else "https"
        on_progress(BringupProgress("serving", f"{scheme}://{address}:{server.server_port}"))
        server.serve_forever()


def _secrets(pod: str) -> Mapping[str, str]:
    """Return the secrets of a pod that this home has, by the name that an archive gives: it may give any."""
    import re

    from podwright.bringup.apply.vault import vault_of
    from podwright.runs.store import default_home

    return vault_of(default_home(), pod).read().values if re.fullmatch(r"[a-z0-9][a-z0-9-]*", pod) else {}
