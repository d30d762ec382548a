"""Recipes of root file systems: from the machine's own settings, named by what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scripts.debian_root import Recipe, settings, sources

INDEX = """\
Debian http://mirror.example/debian/ bookworm main
Debian http://mirror.example/debian/ bookworm-updates main
Debian http://mirror.example/debian-security/ bookworm-security main
Docker https://packages.example/linux/debian/ bookworm stable
$(ORIGIN) http://mirror.example/unread/ bookworm main
"""

DUMP = """\
Acquire "";
Acquire::Check-Valid-Until "false";
Acquire::http::Proxy "http://proxy.example:3142";
Acquire::https::Verify-Peer "true";
Acquire::cdrom::mount "/media/cdrom/";
Acquire::IndexTargets::deb::Packages::Optional "0";
DPkg::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb";
"""

RECIPE = Recipe("trixie", ("munge", "slurmd"), ("deb http://mirror.example/debian/ trixie main",), ('Retries "3";',))


def test_the_machines_own_archive_gives_another_suite() -> None:
    assert sources(INDEX, "bookworm", "trixie") == (
        "deb http://mirror.example/debian/ trixie main",
        "deb http://mirror.example/debian/ trixie-updates main",
        "deb http://mirror.example/debian-security/ trixie-security main",
    )


def test_only_what_fetching_needs_is_taken_of_the_machines_settings() -> None:
    assert settings(DUMP) == (
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.example:3142";',
        'Acquire::https::Verify-Peer "true";',
    )


def test_a_root_is_named_by_its_packages_and_not_by_its_mirror() -> None:
    assert RECIPE.key == replace(RECIPE, sources=("deb http://other.example/ trixie main",), settings=()).key
    assert RECIPE.key != replace(RECIPE, packages=("munge",)).key
    assert RECIPE.key != replace(RECIPE, suite="bookworm").key


def test_the_command_names_suite_folder_packages_and_sources() -> None:
    command = RECIPE.command(Path("/cache/x"))
    assert command[-3:] == ["trixie", "/cache/x", "deb http://mirror.example/debian/ trixie main"]
    assert {"--include=munge,slurmd", '--aptopt=Retries "3";'} <= set(command)
