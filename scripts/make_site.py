"""Builds docs/site: the pages of README and docs as HTML that needs no network.

A small renderer of our own, as all it takes is a Markdown parser, one template and the design tokens that the report
uses too; a site generator would bring its own theme, fonts and scripts.
"""

from __future__ import annotations

import html
import itertools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = DOCS / "site"
TOKENS = ROOT / "src" / "podwright" / "theme" / "assets" / "tokens.css"

# The order of the menu. A page that is missing here fails the build, so that none is unreachable.
MENU = {
    "Start": ("index", "getting-started"),
    "Guides": (
        "concepts",
        "watching",
        "coming-from",
        "design",
        "bring-up",
        "slurm",
        "kubernetes",
        "images",
        "data",
        "programs",
        "python-api",
        "predict",
        "capacity",
        "benchmarks",
        "cost",
        "troubleshooting",
        "security",
    ),
    "Reference": ("reference/workload", "reference/pod", "reference/library", "reference/cli"),
    "Inside": ("architecture", "dependencies"),
}

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - Podwright</title>
<link rel="stylesheet" href="{up}assets/tokens.css">
<link rel="stylesheet" href="{up}assets/site.css">
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<nav aria-label="Pages">
<p class="brand"><a href="{up}index.html">Podwright</a></p>
{menu}
</nav>
<main id="content">
{body}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """One page: its name without ending, its title, and its text parsed."""

    name: str
    title: str
    tokens: list[Token]

    @property
    def up(self) -> str:
        """The way from this page to the site's top."""
        return "../" * (len(PurePosixPath(self.name).parts) - 1)


def slug(text: str) -> str:
    """Makes the anchor of a heading, in the form that Markdown viewers use."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def read_page(name: str, markdown: MarkdownIt) -> Page:
    """Parses one page, gives its headings anchors and points its links at HTML files."""
    tokens = markdown.parse((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    title = name
    for token, inline in itertools.pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(inline.content))
            title = inline.content if token.tag == "h1" else title
        for child in token.children or []:
            href = str(child.attrGet("href") or "")
            if href and "://" not in href:
                child.attrSet("href", re.sub(r"\.md(?=#|$)", ".html", href))
    return Page(name, title, tokens)


def render_menu(pages: dict[str, Page], current: Page) -> str:
    """Renders the list of pages, the current one marked."""
    parts = []
    for heading, names in MENU.items():
        links = []
        for name in names:
            here = ' aria-current="page"' if name == current.name else ""
            links.append(f'<li><a href="{current.up}{name}.html"{here}>{html.escape(pages[name].title)}</a></li>')
        parts.append(f"<h2>{heading}</h2>\n<ul>\n" + "\n".join(links) + "\n</ul>")
    return "\n".join(parts)


def render_site() -> dict[str, str]:
    """Gives every page of the site by its file name."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    there = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if SITE not in path.parents}
    listed = {name for names in MENU.values() for name in names}
    if there != listed:
        raise SystemExit(f"make_site: the menu and docs/ differ in {', '.join(sorted(there ^ listed))}")
    pages = {name: read_page(name, markdown) for name in sorted(listed)}
    return {
        f"{page.name}.html": PAGE.format(
            title=html.escape(page.title),
            up=page.up,
            menu=render_menu(pages, page),
            body=markdown.renderer.render(page.tokens, markdown.options, {}),
        )
        for page in pages.values()
    }


def main() -> None:
    """Writes the site anew."""
    shutil.rmtree(SITE, ignore_errors=True)
    for folder in ("images", "assets"):
        shutil.copytree(DOCS / folder, SITE / folder)
    shutil.copy(TOKENS, SITE / "assets" / "tokens.css")
    files = render_site()
    for name, text in files.items():
        path = SITE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"docs/site/index.html   {len(files)} pages")


if __name__ == "__main__":
    main()
