"""Small Debian systems for labs, made by mmdebstrap from the package sources that this machine itself uses."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from podwright.spec.problems import refuse

_SOURCES = ("sources.list.d/debian.sources", "sources.list.d/ubuntu.sources", "sources.list")


class PackageSource(NamedTuple):
    """A place that apt takes packages from."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


def suite() -> str:
    """Return the name of this machine's release."""
    name = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    if not name:
        raise refuse("this system does not report the name of its release", hint="a lab runs on Debian or Ubuntu")
    return name


def sources_file(root: Path = Path("/etc/apt")) -> Path:
    """Return the file that names the package sources of this machine."""
    there = [path for name in _SOURCES if (path := root / name).is_file()]
    if not there:
        raise refuse("apt has no sources here", hint="a lab runs on Debian or Ubuntu")
    return there[0]


def sources(text: str) -> list[PackageSource]:
    """Return the sources of binary packages that a file of apt names, in either of its two forms."""
    if any(line.startswith(("deb ", "deb\t")) for line in text.splitlines()):
        return list(_from_lines(text))
    return list(_from_paragraphs(text))


def _from_lines(text: str) -> Iterator[PackageSource]:
    for line in text.splitlines():
        fields = shlex.split(line, comments=True)
        if fields[:1] != ["deb"]:
            continue
        # Options in brackets may hold blanks: [arch=amd64 signed-by=/usr/share/keyrings/x.gpg]
        while len(fields) > 1 and (fields[1].startswith("[") or fields[1].endswith("]")):
            del fields[1]
        _, uri, name, *components = fields
        yield PackageSource(uri, (name,), tuple(components))


def _from_paragraphs(text: str) -> Iterator[PackageSource]:
    for paragraph in text.split("\n\n"):
        rows = [line for line in paragraph.splitlines() if ":" in line and not line.startswith(("#", " "))]
        fields = dict(row.split(":", 1) for row in rows)
        values = {name.lower(): value.split() for name, value in fields.items()}
        if "deb" not in values.get("types", []) or values.get("enabled") == ["no"]:
            continue
        for uri in values["uris"]:
            yield PackageSource(uri, tuple(values["suites"]), tuple(values.get("components", ())))


def make(target: Path, release: str, packages: Iterable[str], left_out: Iterable[str], options: Sequence[str]) -> None:
    """Make a Debian with these packages: a folder, or a tar where the name of the target ends like one."""
    command = ["nice", "-n", "19", "mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}"]
    command += ['--aptopt=APT::Install-Recommends "false"', *options]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in left_out]
    line = [*command, release, str(target), str(sources_file())]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise refuse(
            f"no base image could be made: {done.stderr.strip()[-500:]}", hint="is the Debian mirror reachable?"
        )
