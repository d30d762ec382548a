"""The suite file: which workloads are measured where, how often, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.forms import read_text
from podwright.spec.source import decode, read_source
from podwright.spec.types import Count, Line, Name, Strict, Whole

EXAMPLE = "examples/suite.yaml"
Order = Literal["alternate", "blocks"]
Runtime = Literal["bare", "container"]


class ExcludedCells(Strict):
    """Cells that are not run: all that have these values, where those left out mean any."""

    workload: Line | None = Field(default=None, description="name of a workload")
    target: Line | None = Field(default=None, description="`local`, or POD[:SCHEDULER]")
    runtime: Runtime | None = Field(default=None, description="bare, container")
    size: Count | None = Field(default=None, description="number of nodes")
    image: Line | None = Field(default=None, description="an image")

    def holds(self, cell: Mapping[str, object]) -> bool:
        """Tell whether a cell of these values is left out."""
        values = self.model_dump(exclude_none=True)
        return bool(values) and all(cell.get(name) == value for name, value in values.items())


class SuiteFile(Strict):
    """A matrix: every workload on every target, in every runtime, at every size, as often as asked."""

    name: Name = Field(description="results lie under it in the home's `suites`")
    workloads: tuple[Line, ...] = Field(min_length=1, description="files of workloads, relative to this file")
    targets: tuple[Line, ...] = Field(default=("local",), min_length=1, description="`local`, or POD[:SCHEDULER]")
    runtimes: tuple[Runtime, ...] = Field(default=(), description="bare, container; left out: what a workload says")
    sizes: tuple[Count, ...] = Field(default=(), description="numbers of nodes; left out: what a workload says")
    images: tuple[Line, ...] = Field(default=(), description="images; left out: what a workload says")
    exclude: tuple[ExcludedCells, ...] = Field(
        default=(), description="cells that are not run: `[{target: adas, runtime: container}]`"
    )
    repeats: Count = Field(default=5, description="runs of each cell that count; the rule of `compare` wants 4 or more")
    order: Order = Field(
        default="alternate",
        description="alternate: one run of every cell in turn, so that drift hits all alike; blocks",
    )
    warmup: Whole = Field(default=0, description="runs of each cell before those, which do not count")


def load_suite(path: Path) -> SuiteFile:
    """Read a suite's file, or refuse with every problem at once, each with its place."""
    return parse_suite(decode(read_source(path), str(path)), str(path))


def parse_suite(text: str, file: str) -> SuiteFile:
    """Return the suite of a text."""
    return read_text(SuiteFile, text, file, (_no_twins, _images), example=EXAMPLE)


def _no_twins(tree: dict[str, Any]) -> Iterator[Finding]:
    """Find what is listed twice: two cells of one name could not be told apart."""
    for name in ("workloads", "targets", "runtimes", "sizes", "images"):
        values = tree.get(name)
        if not isinstance(values, list):
            continue
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Finding((name, index), "is listed twice", "take one out; `repeats` says how often a cell is run")


def _images(tree: dict[str, Any]) -> Iterator[Finding]:
    runtimes = tree.get("runtimes")
    if tree.get("images") and isinstance(runtimes, list) and "bare" in runtimes:
        yield Finding(("images",), "mean nothing to `runtimes: bare`", "take `bare` out, or the images")
