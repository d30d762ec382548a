"""Looks at the packages that are locked: known faults, licences, and a list of all of them (SBOM, CycloneDX).

    make audit

Faults are asked for by pip-audit where its service answers; those of packages that it says nothing of are looked up in
the OSV records that requirements/osv.json keeps with their date; else they are not checked: said, and no success.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from scripts.checks import checker

ROOT = Path(__file__).resolve().parent.parent
LOCK, RECORDS, SBOM = "requirements/lock.txt", "requirements/osv.json", "dist/sbom.cdx.json"
CLEAN, FOUND, NOT_CHECKED = 0, 1, 3
PATIENCE_S = 120
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software|MPL|Mozilla|Zlib|0BSD|Unlicense|FreeBSD|NVIDIA|GPLv3|LGPL|public domain",
    re.IGNORECASE,
)
"""Licences that have been looked at; NVIDIA's is that of PyTorch's libraries."""


@dataclass(frozen=True)
class Locked:
    """One package as the lock pins it."""

    name: str
    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """What is known of the faults of packages: who was asked, what was found, and of which nothing is known."""

    by: str
    found: tuple[str, ...]
    unknown: tuple[str, ...]


def locked(text: str) -> list[Locked]:
    """Return the packages of a lock that this Python would get."""
    packages = []
    for entry in text.replace("\\\n", " ").splitlines():
        words, *hashes = entry.split("--hash=sha256:")
        if not words.strip() or words.startswith("#"):
            continue
        requirement = Requirement(words.strip())
        if requirement.marker is None or requirement.marker.evaluate():
            [pin] = requirement.specifier
            packages.append(Locked(canonicalize_name(requirement.name), pin.version, tuple(map(str.strip, hashes))))
    return packages


def by_records(packages: Iterable[Locked], kept: Mapping[str, Any] | None) -> Checked:
    """Look packages up in the OSV records that are kept; a package that they do not name is not checked."""
    if not kept:
        return Checked("no OSV records are kept", (), tuple(package.name for package in packages))
    found, unknown = [], []
    for package in packages:
        if package.name not in kept["packages"]:
            unknown.append(package.name)
            continue
        for record in kept["packages"][package.name]:
            if is_affected(package, record):
                found.append(f"{package.name} {package.version}: {record['id']} {record.get('summary', '')}".rstrip())
    return Checked(f"OSV records of {kept['date']}", tuple(found), tuple(unknown))


def is_affected(package: Locked, record: Mapping[str, Any]) -> bool:
    """Return whether a record of OSV is about this version: by its list of versions, or by its ranges."""
    if record.get("withdrawn"):
        return False
    for affected in record.get("affected", []):
        if canonicalize_name(affected["package"]["name"]) != package.name:
            continue
        ranges = [part for part in affected.get("ranges", []) if part["type"] == "ECOSYSTEM"]
        if package.version in affected.get("versions", []) or any(_is_in(package.version, part) for part in ranges):
            return True
    return False


def _is_in(version: str, given: Mapping[str, Any]) -> bool:
    is_in = False
    for event in given["events"]:
        for kind, place in event.items():
            try:
                if kind == "introduced" and (place == "0" or Version(version) >= Version(place)):
                    is_in = True
                passed = kind == "fixed" and Version(version) >= Version(place)
                passed = passed or (kind == "last_affected" and Version(version) > Version(place))
            except InvalidVersion:
                continue
            if passed:
                is_in = False
    return is_in


def by_service(packages: Iterable[Locked], command: Sequence[str]) -> Checked:
    """Ask pip-audit; what it names without having asked anybody is not checked, whatever it says of the whole."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
        rows = [row for row in json.loads(done.stdout)["dependencies"] if "vulns" in row and "skip_reason" not in row]
        found = [f"{row['name']} {row['version']}: {fault['id']}" for row in rows for fault in row["vulns"]]
        answered = {(canonicalize_name(row["name"]), row["version"]) for row in rows}
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        found, answered = [], set()
    unknown = [package.name for package in packages if (package.name, package.version) not in answered]
    return Checked("pip-audit", tuple(found), tuple(unknown))


def checked(root: Path, packages: Sequence[Locked], command: Sequence[str]) -> Checked:
    """Ask the service, and look up in the records what it did not answer."""
    asked = by_service(packages, command)
    if not asked.unknown:
        return asked
    records = root / RECORDS
    left = [package for package in packages if package.name in asked.unknown]
    kept = by_records(left, json.loads(records.read_text()) if records.exists() else None)
    by = kept.by if len(left) == len(packages) else f"pip-audit and {kept.by}"
    return Checked(by, asked.found + kept.found, kept.unknown)


def licence_of(name: str) -> str | None:
    """Return the licence that an installed package names; None for one that is not installed, or names none."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return None
    classified = [
        row.rpartition(" :: ")[2] for row in metadata.get_all("Classifier") or [] if row.startswith("License")
    ]
    named = [
        *(metadata.get_all("License-Expression") or []),
        " and ".join(classified),
        *(metadata.get_all("License") or []),
    ]
    given = next(filter(None, named), "")
    return given.strip().partition("\n")[0][:100] or None


def bill_of(packages: Iterable[Locked], version: str) -> dict[str, Any]:
    """Return the list of all packages as CycloneDX 1.6 has it; the same for the same lock."""
    components = []
    for package in packages:
        row: dict[str, Any] = {"type": "library", "name": package.name, "version": package.version}
        row["bom-ref"] = row["purl"] = f"pkg:pypi/{package.name}@{package.version}"
        if licence := licence_of(package.name):
            row["licenses"] = [{"license": {"name": licence}}]
        row["properties"] = [{"name": "podwright:sha256", "value": digest} for digest in package.hashes]
        components.append(row)
    ours = {"type": "application", "name": "podwright", "version": version, "bom-ref": "podwright"}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "metadata": {"component": ours}, "components": components}


def main(root: Path, pip_audit: Path) -> int:
    """Look at all packages, write the list, and return 0 only where all were checked and nothing was found."""
    from podwright.pilot import __version__

    packages = locked((root / LOCK).read_text())
    command = [str(pip_audit), "--requirement", str(root / LOCK), "--disable-pip", "--format", "json"]
    known = checked(root, packages, command)
    for fault in known.found:
        print(f"fault     {fault}")
    named = {package.name: licence_of(package.name) for package in packages}
    for name, licence in named.items():
        if licence is None or not FREE.search(licence):
            print(f"licence   {name}: {licence or 'not known here'}")
    bill = root / SBOM
    bill.parent.mkdir(exist_ok=True)
    bill.write_text(json.dumps(bill_of(packages, __version__), indent=1) + "\n")
    print(f"list      {SBOM}: {len(packages)} packages, CycloneDX 1.6")
    if known.unknown:
        print(f"faults    not checked: {len(known.unknown)} of {len(packages)} packages; {known.by}")
    else:
        print(f"faults    {len(known.found)} known in {len(packages)} packages, by {known.by}")
    if known.found:
        return FOUND
    return NOT_CHECKED if known.unknown else CLEAN


if __name__ == "__main__":
    sys.exit(main(ROOT, checker(ROOT, "pip-audit")))
