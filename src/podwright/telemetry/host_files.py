"""What is put on hosts as it is: all that the exporters need, in one file."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files  # novm: it runs here, and not on hosts
from typing import Mapping, Sequence

PROGRAM = "exporters.py"
"""What the file is called on hosts; its verbs are `gpu` and `slurm`."""
_HEAD = "#!/usr/bin/env python3\n"
_EMPTY = "SOURCES: Dict[str, str] = {}\n"
_ENTRY = "podwright.telemetry.__main__"
_MODULES = {
    "podwright.pilot": ("metrics",),
    "podwright.pilot.system": ("numbers", "plain_files"),
    "podwright.pilot.sensors": ("cgroup", "gpus", "hardware", "nvml", "proc", "xids"),
    "podwright.telemetry": ("__main__", "page", "server", "slurm_exporter"),
    "podwright.telemetry.exporter": (
        *("bridge", "cards", "ethtool", "expected", "gpus", "heads", "host", "jobs", "kernel_log"),
        *("main", "mounts", "pods", "ports", "readings", "sensors", "telling", "vocabulary", "words", "written"),
    ),
}
"""The modules that a host needs; packages are empty there, as those here load what a host has not."""


@lru_cache(maxsize=1)
def host_program() -> str:
    """Return the exporters' file: a program for Python 3.8 and newer that needs nothing beside it."""
    return carried_program(_MODULES, _ENTRY)


def carried_program(modules: Mapping[str, Sequence[str]], entry: str) -> str:
    """Return one file that carries modules, by the names of their packages, and calls `main` of one of them."""
    rows = []
    for package, names in modules.items():
        for name in names:
            text = (files(package) / f"{name}.py").read_text("utf-8")
            lines = "".join(f"        {line!r}\n" for line in text.splitlines(keepends=True))
            rows.append(f'    "{package}.{name}": (\n{lines}    ),\n')
    own = (files("podwright.telemetry") / "carried.py").read_text("utf-8")
    before, found, after = own.replace(_ENTRY, entry).partition(_EMPTY)
    if not found:
        raise ValueError("carried.py has no place for what is carried")
    return f"{_HEAD}{before}SOURCES: Dict[str, str] = {{\n{''.join(rows)}}}\n{after}"
