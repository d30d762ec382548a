"""Writes the kinds of the operators that bring-up applies, from the releases that the Kubernetes lab is built from.

Those have an explanation of every field, nine tenths of their bytes, which no API server needs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from podwright.lab.kubernetes import binaries

DEFINITIONS = Path(binaries.__file__).parents[2] / "bringup" / "plan" / "kubernetes" / "definitions"
KINDS = (binaries.JOB_SETS, binaries.MPI_JOBS)


def bare(node: Any) -> Any:
    """Return a schema without explanations; a field may be called `description`, too, and stays."""
    if isinstance(node, list):
        return [bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: bare(value) for key, value in node.items() if key != "description" or not isinstance(value, str)}


def line_of(name: str) -> str:
    """Return a kind as the package ships it, from what its release says."""
    whole = yaml.load((binaries.cache() / "manifests" / name).read_text(), Loader=yaml.CSafeLoader)
    return json.dumps(bare(whole), separators=(",", ":")) + "\n"


def file_of(name: str) -> Path:
    """Return where the package has a kind."""
    return (DEFINITIONS / name).with_suffix(".json")


if __name__ == "__main__":
    for kind in KINDS:
        file_of(kind).write_text(line_of(kind))
