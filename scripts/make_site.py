"""Builds docs/site: the pages of README and docs as HTML that needs no network.

A small renderer of our own, as all it takes is a Markdown parser, one template and the design tokens that the report
uses too; a site generator would bring its own theme, fonts and scripts.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

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
        "console",
        "many-runs",
        "goodput",
        "gpu-metrics",
        "coming-from",
        "design",
        "bring-up",
        "alerts",
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
    "Reference": ("reference/workload", "reference/pod", "reference/library", "reference/cli", "reference/metrics"),
    "Inside": ("architecture", "extending", "dependencies"),
}

PAGE = """<!doctype html>
<html lang="en" data-up="{up}">
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
<p class="search" hidden><label for="search">Search</label>
<input id="search" type="search" placeholder="press /" autocomplete="off"></p>
<ul id="found" aria-live="polite" hidden></ul>
{menu}
</nav>
<main id="content">
{body}
</main>
{contents}
<script src="{up}assets/pages.js"></script>
<script src="{up}assets/site.js"></script>
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


def coloured(code: str, language: str, _: str) -> str:
    """Renders a block of code with its words marked by what they are; the sheet has their colours."""
    try:
        lexer = get_lexer_by_name(language) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def render_contents(page: Page) -> str:
    """Renders the headings of a page; one or two need no list."""
    heads = [
        (str(token.attrGet("id")), inline.content)
        for token, inline in itertools.pairwise(page.tokens)
        if token.type == "heading_open" and token.tag == "h2"
    ]
    if len(heads) < 3:
        return ""
    rows = "\n".join(f'<li><a href="#{at}">{html.escape(plain(text))}</a></li>' for at, text in heads)
    return f'<aside class="contents" aria-label="On this page"><h2>On this page</h2>\n<ul>\n{rows}\n</ul></aside>'


def plain(text: str) -> str:
    """Takes the signs of Markdown out of a line."""
    return re.sub(r"!?\[([^]]*)\]\([^)]*\)|[`*]", lambda match: match[1] or "", text)


def search_index(pages: dict[str, Page]) -> str:
    """Gives a script that holds what is searched: a row for each heading, with the text below it."""
    rows: list[dict[str, str]] = []
    for page in pages.values():
        row = {"page": plain(page.title), "title": plain(page.title), "at": f"{page.name}.html", "text": ""}
        rows.append(row)
        for before, token in itertools.pairwise(page.tokens):
            if before.type == "heading_open" and before.tag != "h1":
                at = f"{page.name}.html#{before.attrGet('id')}"
                row = {"page": row["page"], "title": plain(token.content), "at": at, "text": ""}
                rows.append(row)
            elif token.type in ("inline", "fence") and before.type != "heading_open":
                row["text"] += " " + " ".join(plain(token.content).split())
    return f"const PAGES = {json.dumps(rows, ensure_ascii=False)};\n"


def read_pages(markdown: MarkdownIt) -> dict[str, Page]:
    """Reads all pages, in the order of their names; the menu must have each."""
    there = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md") if SITE not in path.parents}
    listed = {name for names in MENU.values() for name in names}
    if there != listed:
        raise SystemExit(f"make_site: the menu and docs/ differ in {', '.join(sorted(there ^ listed))}")
    return {name: read_page(name, markdown) for name in sorted(listed)}


def render_site() -> dict[str, str]:
    """Gives every page of the site by its file name, and the script that is searched."""
    markdown = MarkdownIt("commonmark", {"html": True, "highlight": coloured}).enable("table")
    pages = read_pages(markdown)
    rendered = {
        f"{page.name}.html": PAGE.format(
            title=html.escape(page.title),
            up=page.up,
            menu=render_menu(pages, page),
            body=markdown.renderer.render(page.tokens, markdown.options, {}),
            contents=render_contents(page),
        )
        for page in pages.values()
    }
    return rendered | {"assets/pages.js": search_index(pages)}


def write_site(target: Path) -> int:
    """Writes the site anew; gives how many pages it has."""
    shutil.rmtree(target, ignore_errors=True)
    for folder in ("images", "assets"):
        shutil.copytree(DOCS / folder, target / folder)
    shutil.copy(TOKENS, target / "assets" / "tokens.css")
    files = render_site()
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return len([name for name in files if name.endswith(".html")])


def main() -> None:
    """Writes docs/site."""
    print(f"docs/site/index.html   {write_site(SITE)} pages")


if __name__ == "__main__":
    main()
