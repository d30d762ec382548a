"""The hardware library: data files that come with the package, one for each model of node, switch and storage."""

from __future__ import annotations

import csv
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from podwright.spec.check import checked
from podwright.spec.nearest import one_of
from podwright.spec.problems import Refusal, refuse, short
from podwright.spec.source import decode, read_source
from podwright.spec.types import Strict, wrong
from podwright.spec.yaml_document import Document, parse

_FOLDER = Path(__file__).with_name("library")


class HardwareKind(NamedTuple):
    """A kind of hardware: its folder in the library, what people call one, and the model that checks its files.

    As a mark of a field it lets the name of an entry stand in the place of one that is written out.
    """

    folder: str
    noun: str
    model: type[Strict]

    def entries(self) -> dict[str, Any]:
        """Return all entries by name."""
        return _entries(self)

    def find(self, name: str) -> Any:
        """Return the entry of this name."""
        entries = self.entries()
        if name not in entries:
            raise refuse(f'"{short(name)}" is not in the hardware library', hint=one_of(name, self.noun, entries))
        return entries[name]

    def resolve(self, value: Any) -> Any:
        """Return the library entry of a name; anything else goes on to the model check."""
        if not isinstance(value, str):
            return value
        try:
            return self.find(value)
        except Refusal as refusal:
            raise wrong(refusal.problems[0].message, refusal.problems[0].hint) from None

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        named = {"type": "string", "description": f"a name from the hardware library ({self.folder})"}
        return {"anyOf": [handler(core), named]}


@cache
def _entries(kind: HardwareKind) -> dict[str, Any]:
    files = sorted((_FOLDER / kind.folder).glob("*.yaml"))
    return {file.stem: _entry(kind.model, file) for file in files}


def _entry(model: type[Strict], file: Path) -> Any:
    document = _read(file)
    document.value["name"] = file.stem
    return checked(model, document)


def _read(file: Path) -> Document:
    """Read an entry; it has what another one has that it is `like`, but for what it says itself."""
    document = parse(decode(read_source(file), str(file)), str(file))
    like = document.value.pop("like", None)
    if like:
        document.value = {**_read(file.with_name(f"{like}.yaml")).value, **document.value}
    return document


@cache
def _peaks() -> dict[str, float]:
    with (_FOLDER / "gpu_peaks.csv").open(newline="", encoding="utf-8") as file:
        return {row["name"]: float(row["tflops"]) for row in csv.DictReader(file)}


def gpu_peak_tflops(name: str) -> float | None:
    """Return what a GPU, as its driver names it, can reach in bf16; None of one that is not listed."""
    return _peaks().get(name)


class Plug(NamedTuple):
    """What is plugged in, as the library's list of parts has it: where, into which cage, at which speed.

    `kind` is that of the fabric; a part that is listed without one is for both.
    """

    what: str
    place: str
    connector: str
    ports: int
    gbps: float
    mode: str
    kind: str


@cache
def _plugs() -> dict[tuple[str, ...], str]:
    with (_FOLDER / "plugs.csv").open(newline="", encoding="utf-8") as file:
        key_of = itemgetter(*Plug._fields)
        return {key_of(row): row["part"] for row in csv.DictReader(file)}


def plug_part(plug: Plug) -> str:
    """Return the part number of a transceiver or cable; nothing where none is listed."""
    known = _plugs()
    *key, kind = (str(value) for value in plug._replace(gbps=f"{plug.gbps:g}"))  # type: ignore[arg-type]
    return known.get((*key, kind)) or known.get((*key, ""), "")
