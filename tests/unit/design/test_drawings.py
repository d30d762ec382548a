"""Drawings at 20, 140 and 1,024 nodes can be read on a page, and the pictures in the docs show them as they are now."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

from podwright import theme
from podwright.design import Design
from podwright.design.exports.fabric_drawing import fabric_svg
from podwright.design.exports.rack_drawing import racks_svg
from scripts.picture_sources import DIGESTS, digests, sources
from tests.unit.design.pods import designed

TOKENS = theme.asset("tokens.css")
SVG = "{http://www.w3.org/2000/svg}"
# Of a font's height; words are drawn with the width that drawings themselves reckon with.
CHARACTER = 0.6
# A3 without its margins, and the smallest letters that a crew reads from a sheet in its hand.
PAGE_MM, PAGE_HIGH_MM = 277, 400
POINT_MM = 25.4 / 72
SMALLEST_POINTS = 5.0


class Words(NamedTuple):
    """A line of text in a drawing."""

    left: float
    right: float
    base: float
    size: float
    text: str


def words_of(drawing: str) -> Iterator[Words]:
    for element in ElementTree.fromstring(drawing).iter(f"{SVG}text"):
        text, size = element.text or "", float(element.attrib["font-size"])
        wide = len(text) * size * CHARACTER
        x = float(element.attrib["x"])
        left = x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[element.attrib["text-anchor"]]
        yield Words(left, left + wide, float(element.attrib["y"]), size, text)


def overlaps(drawing: str) -> list[tuple[str, str]]:
    """Return lines of text of which one runs into the next; lines less than a letter apart count as one."""
    rows: dict[float, list[Words]] = defaultdict(list)
    for words in words_of(drawing):
        rows[round(words.base / 2)].append(words)
    clashes = []
    for row in rows.values():
        for before, after in pairwise(sorted(row)):
            if after.left < before.right:
                clashes.append((before.text, after.text))
    return clashes


def points(drawing: str) -> float:
    """Return the smallest letters of a drawing that fills a page of A3, whichever way the page is held."""
    root = ElementTree.fromstring(drawing)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    scale = max(
        min(PAGE_MM / width, PAGE_HIGH_MM / height),
        min(PAGE_HIGH_MM / width, PAGE_MM / height),
    )
    return min(words.size for words in words_of(drawing)) * scale / POINT_MM


def drawings(design: Design) -> dict[str, str]:
    return {name: fabric_svg(design, name, TOKENS) for name in design.wired} | racks_svg(design, TOKENS)


SIZES = [
    (20, "dgx-a100", {}),
    (140, "dgx-a100", {}),
    (380, "dgx-a100", {}),
    (41, "dgx-a100", {"compute": {"layout": "classic"}}),
    (3, "dgx-a100", {"compute": {"layout": "classic"}}),
    (1023, "dgx-h100", {}),
    (1024, "dgx-b200", {}),
    (576, "dgx-b300", {}),
    (190, "dgx-h200", {"compute": {"kind": "ethernet", "switch": "sn5600"}}),
    (256, "dgx-b300", {"compute": {"kind": "ethernet", "switch": "sn5600", "planes": 2}}),
    (399, "dgx-b300", {"compute": {"kind": "ethernet", "switch": "sn5600", "planes": 2}}),
]


@pytest.mark.parametrize(("nodes", "model", "fabrics"), SIZES)
def test_words_are_large_enough_and_none_runs_into_another(nodes: int, model: str, fabrics: dict[str, object]) -> None:
    system = {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "480GB/s"}
    for name, drawing in drawings(designed(nodes, model, fabrics=fabrics, storage=[system])).items():
        assert overlaps(drawing) == [], name
        assert points(drawing) >= SMALLEST_POINTS, name


def test_a_layout_without_rails_says_what_is_between_its_tiers() -> None:
    drawing = fabric_svg(designed(41, fabrics={"compute": {"layout": "classic"}}), "compute", TOKENS)
    assert "340 cables, 2 from a leaf to each spine" in drawing
    assert "nodes of a unit" not in drawing
    assert "a band is as wide" not in drawing


def test_a_drawing_that_is_too_wide_or_crowded_is_noticed() -> None:
    """What holds drawings would not hold anything if it could not fail."""
    drawing = fabric_svg(designed(20), "compute", TOKENS)
    assert points(drawing.replace('width="1218"', 'width="4000"', 1).replace('width="1216"', 'width="4000"', 1)) < 5
    assert overlaps(drawing.replace(">rail 1<", ">the first of all the rails there are<"))


def test_the_pictures_in_the_docs_show_what_is_drawn_now() -> None:
    """Pictures are made by a browser, so that their sources are compared; `make pictures` makes both anew."""
    assert digests(sources()) == DIGESTS.read_text(encoding="utf-8")
    for name in sources():
        assert (DIGESTS.parent / f"{name}.png").is_file(), name
