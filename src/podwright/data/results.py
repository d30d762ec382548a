"""What the front door answers where no room of its own does: lists of files, datasets and selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.data.tree.paths import as_json

if TYPE_CHECKING:
    from podwright.data.catalog.dataset import Match
    from podwright.data.catalog.history import PastGeneration
    from podwright.data.selecting.pool import SampleFile
    from podwright.data.selecting.selections import Selection


@dataclass(frozen=True)
class Found:
    """The files that a filter chose."""

    root: str
    count: int
    """How many it chose; the list of them may be shorter."""
    size_bytes: int | None
    """Of all of them, where that was asked for."""
    files: Sequence[Match]
    left_out: int
    """Files of the catalog that somebody has written over."""
    took_s: float

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data find`."""
        document = {"count": self.count, "root": self.root, "files": [match.as_json() for match in self.files]}
        if self.left_out:
            document["left_out"] = self.left_out
        return {**document, "took_s": round(self.took_s, 4)}


@dataclass(frozen=True)
class Tagged:
    """How many files were given a tag, or lost it."""

    tagged: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data tag`."""
        return asdict(self)


@dataclass(frozen=True)
class GenerationHistory:
    """The generations of a dataset that are there, the newest first."""

    generations: Sequence[PastGeneration]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the document of `data history`."""
        return [past.as_json() for past in self.generations]


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset as one of many."""

    name: str
    files: int
    bytes: int
    layout: str
    root: str


@dataclass(frozen=True)
class CatalogListing:
    """All datasets and selections."""

    datasets: Sequence[DatasetSummary]
    selections: Sequence[Selection]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data ls`."""
        return {
            "datasets": [asdict(dataset) for dataset in self.datasets],
            "selections": [selection.as_json() for selection in self.selections],
        }


@dataclass(frozen=True)
class DatasetColumns:
    """What the columns of a dataset hold."""

    summary: DatasetSummary
    columns: Mapping[str, Mapping[str, int]]
    classes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data ls DATASET`."""
        origin = {key: getattr(self.summary, key) for key in ("name", "root", "layout", "files", "bytes")}
        return {**origin, "columns": self.columns, "classes": self.classes}


@dataclass(frozen=True)
class SelectionFiles:
    """The files of a selection, each with its split, and where it was asked for the runs that were given it."""

    selection: Selection
    files: Sequence[tuple[str, SampleFile]]
    runs: Sequence[Mapping[str, Any]]

    def whole_paths(self) -> Iterator[bytes]:
        """Yield where each file lies."""
        for _, file in self.files:
            yield self.selection.roots.whole(file.path_bytes)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data ls SELECTION`."""
        rows = []
        for split, file in self.files:
            rows.append({"split": split, "role": file.role, **as_json(file.path, file.raw), "size": file.size})
        lineage = {"root": self.selection.lineage.get("root"), "runs": self.runs}
        return {**self.selection.as_json(), **lineage, "files": rows}
