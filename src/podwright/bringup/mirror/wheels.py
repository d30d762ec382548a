"""Python packages of an archive: fetched by pip, and listed as every installer of them reads it (PEP 503)."""

from __future__ import annotations

import hashlib
import html
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from podwright.bringup.apply.signing import sign
from podwright.bringup.mirror.archive import ArchiveFile
from podwright.bringup.mirror.collect import run_program
from podwright.bringup.plan.systems import SYSTEMS

PYTHON = "python"
REQUIREMENTS = f"{PYTHON}/requirements.txt"
INDEX_PATH = "/simple/"
# The Python that each operating system has.


def fetch_wheels(names: Iterable[str], system: str, folder: Path) -> list[Path]:
    """Fetch Python packages with all that they need, ready-made for the hosts' Python; pip checks them by digest."""
    place = folder / PYTHON
    place.mkdir(parents=True)
    ready = ["--only-binary=:all:", f"--python-version={SYSTEMS[system].python}"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *quiet, *ready, f"--dest={place}", "--", *names]
    run_program(command, "pip")
    return sorted(place.iterdir())


def write_requirements(folder: Path, keys: Mapping[str, str]) -> None:
    """Write all Python packages with their digests as pip wants them, and who says so."""
    lines = []
    for path in sorted((folder / PYTHON).glob("*.whl")):
        name, version = path.name.split("-")[:2]
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        lines.append(f"{project_of(name)}=={version} --hash=sha256:{digest}\n")
    text = "".join(lines)
    (folder / REQUIREMENTS).write_text(text)
    (folder / f"{REQUIREMENTS}.asc").write_text(sign(keys["archive_key"], text))


def pages(files: Iterable[ArchiveFile]) -> dict[str, bytes]:
    """Return the pages of the index by their paths: one that names all projects, and one of each with its files."""
    projects: dict[str, list[ArchiveFile]] = {}
    for file in files:
        folder, _, name = file.path.partition("/")
        if folder == PYTHON and name.endswith(".whl"):
            projects.setdefault(project_of(name), []).append(file)
    listed = {f"{INDEX_PATH}{project}/": _page(map(_link, given)) for project, given in projects.items()}
    return {INDEX_PATH: _page((f"{INDEX_PATH}{project}/", project) for project in projects), **listed}


def project_of(file: str) -> str:
    """Return the project of a wheel, by the name that an index knows it by."""
    return re.sub(r"[-_.]+", "-", file.partition("-")[0]).lower()


def _link(file: ArchiveFile) -> tuple[str, str]:
    return f"/{quote(file.path)}#sha256={file.digest}", file.path.rpartition("/")[2]


def _page(links: Iterable[tuple[str, str]]) -> bytes:
    rows = "".join(f'<a href="{html.escape(place)}">{html.escape(name)}</a><br>\n' for place, name in links)
    return f"<!DOCTYPE html>\n<title>Packages</title>\n{rows}".encode()
