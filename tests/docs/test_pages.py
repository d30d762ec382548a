"""The reference is what the code says, and the site holds together without a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import make_reference, make_site
from tests.paths import ROOT


@pytest.mark.parametrize("name", ["workload.md", "pod.md", "library.md", "cli.md", "metrics.md"])
def test_the_reference_is_fresh(name: str) -> None:
    fresh = make_reference.pages()[name]
    assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == fresh, f"{name} is stale: make docs"


@pytest.mark.parametrize("kind", ["workload", "pod"])
def test_every_field_says_what_it_means(kind: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", make_reference.file_page(kind), re.M)
    assert rows
    assert [field for field, meaning in rows if not meaning.strip()] == []


def links(page: str, text: str) -> list[tuple[Path, str]]:
    """Resolves a page's links and pictures that stay inside the site: the file and the anchor in it."""
    found = re.findall(r'(?:href|src)="([^":]*)"', text)
    parts = [link.partition("#") for link in found]
    here = Path(page)
    return [((here.parent / file if file else here), anchor) for file, _, anchor in parts]


def test_every_link_inside_the_site_leads_somewhere() -> None:
    site = make_site.render_site()
    images = {f"images/{path.name}" for path in (ROOT / "docs" / "images").iterdir()}
    assets = {"assets/tokens.css", "assets/site.css", "assets/site.js", *images}
    for page, text in site.items():
        for file, anchor in links(page, text):
            name = str(Path("/", file).resolve().relative_to("/"))
            assert name in site or name in assets, f"{page} links to {name}"
            assert not anchor or f'id="{anchor}"' in site[name], f"{page} links to {name}#{anchor}"


def test_no_page_loads_anything_from_a_network() -> None:
    for page, text in make_site.render_site().items():
        assert re.findall(r'(?:src|<link[^>]*href)="https?:', text) == [], page
