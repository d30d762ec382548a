"""The hardware library: data files that come with the package, one for each model of node, switch and storage."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from podwright.spec.check import checked
from podwright.spec.findings import one_of
from podwright.spec.hardware import NodeModel, StorageModel, SwitchModel
from podwright.spec.problems import refuse, short
from podwright.spec.source import decode, read_source
from podwright.spec.types import Strict
from podwright.spec.yaml_document import parse

_FOLDER = Path(__file__).with_name("library")
_KINDS: dict[str, tuple[type[Strict], str]] = {
    "nodes": (NodeModel, "node model"),
    "switches": (SwitchModel, "switch"),
    "storage": (StorageModel, "storage model"),
}


@cache
def library(kind: str) -> dict[str, Any]:
    """Gives all entries of a kind (`nodes`, `switches`, `storage`) by name."""
    if kind not in _KINDS:
        raise refuse(f'"{short(kind)}" is not a kind of hardware', hint=one_of(kind, "kind", _KINDS))
    files = sorted((_FOLDER / kind).glob("*.yaml"))
    return {file.stem: _entry(kind, file) for file in files}


def find(kind: str, name: str) -> Any:
    """Gives the entry of this name."""
    entries = library(kind)
    if name not in entries:
        noun = _KINDS[kind][1]
        raise refuse(f'"{short(name)}" is not in the hardware library', hint=one_of(name, noun, entries))
    return entries[name]


def node_model(name: str) -> NodeModel:
    """Gives the node model of this name."""
    model: NodeModel = find("nodes", name)
    return model


def _entry(kind: str, file: Path) -> Any:
    document = parse(decode(read_source(file), str(file)), str(file))
    if isinstance(document.value, dict):
        document.value.setdefault("name", file.stem)
    return checked(_KINDS[kind][0], document)
