"""Gathers what an archive is made of: the packages of all hosts with all that they need, and images by digest."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.bringup.apply.signing import sign
from podwright.bringup.mirror.archive import blob_path, referenced
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.systems import SYSTEMS
from podwright.clients import registry
from podwright.clients.reasons import last_line
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Pod

Say = Callable[[str], None]
PACKAGES = "packages"
_TOO_LONG_S = 3600


def packages_of(pod: Pod) -> list[str]:
    """Return the packages that any host of the pod gets, each once."""
    names: dict[str, None] = {}
    for host in plan(pod).values():
        names |= dict.fromkeys(host.packages())
    return sorted(names)


def fetch_packages(names: Iterable[str], system: str, folder: Path) -> list[Path]:
    """Fetch packages with all that a bare system lacks of what they need, and write the list that apt reads.

    This machine's own apt fetches and checks them, so that it must run the same release as the hosts.
    """
    here = _release()
    if here != SYSTEMS[system].release:
        hint = "make the archive on a machine that runs what the hosts run"
        raise refuse(
            f"this machine runs {here or 'another system'}, and the pod's hosts {SYSTEMS[system].release}", hint=hint
        )
    place = folder / PACKAGES
    (place / "partial").mkdir(parents=True)
    status = folder / "status"
    status.touch()
    # As if nothing were installed: the closure is whole then, whatever this machine has.
    empty = [f"--option=Dir::State::status={status}", f"--option=Dir::Cache::archives={place}"]
    keep = [
        "--option=APT::Sandbox::User=root",
        "--option=Debug::NoLocking=1",
        "--option=APT::Keep-Downloaded-Packages=1",
    ]
    command = ["apt-get", "install", "--yes", "--quiet", "--download-only", "--no-install-recommends", *empty, *keep]
    run_program([*command, *names])
    (place / "partial").rmdir()
    (place / "lock").unlink(missing_ok=True)
    status.unlink()
    return write_list(place)


def write_list(place: Path) -> list[Path]:
    """Write the list that apt reads of the packages in a folder; return them."""
    debs = sorted(place.glob("*.deb"))
    (place / "Packages").write_text("\n".join(_stanza(path) for path in debs))
    return debs


def write_release(folder: Path, pod: str, keys: Mapping[str, str], made_s: float) -> None:
    """Write what says which list of packages is whole, signed as apt wants it."""
    content = (folder / PACKAGES / "Packages").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    date = formatdate(made_s, usegmt=True)
    head = f"Origin: podwright\nLabel: {pod}\nDate: {date}\n"
    text = f"{head}SHA256:\n {digest} {len(content)} Packages\n"
    (folder / PACKAGES / "InRelease").write_text(sign(keys["archive_key"], text, inline=True))


def _release() -> str:
    text = Path("/etc/os-release").read_text()
    named = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.MULTILINE)
    return named[1] if named else ""


def _stanza(deb: Path) -> str:
    """Return what the list says of a package; its digest is reckoned from what was fetched."""
    fields = run_program(["dpkg-deb", "--field", str(deb)]).rstrip("\n")
    with deb.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return f"{fields}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"


def run_program(command: list[str], name: str = "") -> str:
    """Return what a program printed; refuse with its reason where it failed."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_TOO_LONG_S
        )
    except FileNotFoundError:
        raise refuse(f"{command[0]} is not on this machine", hint="an archive is made on Debian") from None
    if done.returncode:
        raise refuse(f"{name or command[0]}: {_reason(done.stderr)}")
    return done.stdout


def _reason(said: str) -> str:
    """Return the last line that says that it is an error; pip adds digests below it."""
    marked = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    return last_line(marked[-1] if marked else said, "no reason was given")


def fetch_image(name: str, folder: Path) -> str:
    """Fetch an image with all its parts, each checked by its digest; return the digest of its manifest."""
    place = registry.parse(name)
    source = registry.Registry(place.host, place.repository)
    try:
        manifest = source.manifest(place.tag)
        if manifest is None:
            raise refuse(f"{place.host} has no image {place.repository}:{place.tag}")
        with registry.understood(place.host):
            _keep(source, manifest, folder)
    except registry.RegistryError as error:
        raise refuse(f"{name}: {error}") from None
    return manifest.digest


def _keep(source: registry.Registry, manifest: registry.Manifest, folder: Path) -> None:
    document = json.loads(manifest.raw)
    path = folder / blob_path(manifest.digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    for named in referenced(document):
        digest = registry.checked_digest(source.host, named)
        if document.get("manifests"):
            part = source.manifest(digest)
            if part is not None:
                _keep(source, part, folder)
        else:
            source.save_blob(digest, folder / blob_path(digest))
    path.write_bytes(manifest.raw)
