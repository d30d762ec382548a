"""The trees of a dataset: the first has bare paths, and those of each further one begin with its label."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.data.tree.paths import shown
from podwright.spec.problems import refuse

_LABEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the trees of a dataset lie: folders or addresses."""

    first: bytes
    labelled: tuple[tuple[str, bytes], ...] = ()
    """The further ones, with their labels."""

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        yield "", self.first
        yield from self.labelled

    @property
    def labels(self) -> list[str]:
        """Return the labels of the further ones."""
        return [label for label, _ in self.labelled]

    @property
    def has_address(self) -> bool:
        """Say whether one of them lies behind an address."""
        return any(is_address(root) for _, root in self)

    @property
    def folders(self) -> list[bytes]:
        """Return those that are folders."""
        return [root for _, root in self if not is_address(root)]

    @property
    def shown(self) -> str:
        """Return all of them as text, the further ones with their labels."""
        return ", ".join([shown(self.first), *(f"{label}={shown(root)}" for label, root in self.labelled)])

    @property
    def key(self) -> bytes:
        """Return what tells them from others; of one root that itself."""
        return b"\0".join([self.first, *(label.encode() + b"=" + root for label, root in self.labelled)])

    def place(self, path: bytes) -> tuple[bytes, bytes]:
        """Return the root of a path, and the path below that."""
        if self.labelled:
            label, _, below = path.partition(b"/")
            for known, root in self.labelled:
                if label == known.encode():
                    return root, below
        return self.first, path

    def whole(self, path: bytes) -> bytes:
        """Return the whole path of a file, or its address as it is shown."""
        root, below = self.place(path)
        return root + b"/" + below

    def below(self, whole: bytes) -> tuple[bytes, bytes]:
        """Return the root of a whole path, and the path below that."""
        for _, root in self.labelled:
            if whole.startswith(root + b"/"):
                return root, whole[len(root) + 1 :]
        return self.first, whole[len(self.first) + 1 :]

    def inside(self, whole: bytes) -> bytes:
        """Return the path in the dataset of a whole path."""
        root, below = self.below(whole)
        labels = [label.encode() for label, place in self.labelled if place == root]
        return b"/".join([*labels, below])

    def moved(self, old: Sequence[bytes], new: bytes) -> Roots | None:
        """Return them with a new place for one of these; None where none of them is."""
        if self.first in old:
            return Roots(new, self.labelled)
        for label, root in self.labelled:
            if root in old:
                moved = tuple((name, new if name == label else place) for name, place in self.labelled)
                return Roots(self.first, moved)
        return None

    def keeps(self, old: Roots) -> bool:
        """Say whether all roots of an older one are among them, under the same labels."""
        return self.first == old.first and set(old.labelled) <= set(self.labelled)

    def kept(self) -> dict[str, Any]:
        """Return what a document says of the further ones, nothing where there are none."""
        further = [[label, root.hex()] for label, root in self.labelled]
        return {"roots": further} if further else {}


def is_address(root: bytes) -> bool:
    """Say whether a root lies behind an address."""
    return b"://" in root


def roots_of(first: bytes, kept: Any = None) -> Roots:
    """Return roots of what a document says of them."""
    return Roots(first, tuple((label, bytes.fromhex(root)) for label, root in kept or ()))


def roots_of_meta(meta: Mapping[str, str]) -> Roots:
    """Return the roots of what a generation says of itself."""
    return roots_of(bytes.fromhex(meta["root_bytes"]), json.loads(meta.get("roots", "[]")))


def labelled(places: Sequence[bytes], labels: Sequence[str]) -> Roots:
    """Return roots of places, the further ones with these labels; refuse what does not fit together."""
    first, *further = places
    if len(labels) != len(further):
        named = " ".join(shown(place) for place in further) or "one root, whose paths are bare"
        hint = "give `--label NAME` once for each root but the first, in their order"
        raise refuse(f"{len(labels)} labels for {named}", hint=hint, field="--label")
    for number, label in enumerate(labels):
        if not _LABEL.fullmatch(label):
            hint = "a label has lower-case letters, digits, dots and dashes, 63 at most"
            raise refuse(f'"{label}" is no label', hint=hint, field="--label")
        if label in labels[:number]:
            both = f"{shown(further[labels.index(label)])} and {shown(further[number])}"
            raise refuse(f"{label} is the label of {both}", hint="give each its own", field="--label")
    for number, place in enumerate(places):
        for other in places[:number]:
            if (place + b"/").startswith(other + b"/") or (other + b"/").startswith(place + b"/"):
                raise refuse(f"{shown(other)} and {shown(place)} lie in each other", hint="give the outer one alone")
    return Roots(first, tuple(zip(labels, further, strict=True)))


def check_clash(roots: Roots, names: Sequence[bytes]) -> None:
    """Refuse names of the first root, of its files or folders, that are labels of others."""
    for label, root in roots.labelled:
        if label.encode() in names:
            message = f"{shown(roots.first)}/{label} and {shown(root)} have the same paths"
            raise refuse(message, hint=f"give {shown(root)} another label than {label}", field="--label")
