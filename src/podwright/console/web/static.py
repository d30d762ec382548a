"""Style sheets and scripts, each under a name with its digest in it: a browser asks for one once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from podwright import report

CSS, JS = "text/css", "text/javascript"
_SHEETS = ("uPlot.min.css", "tokens.css", "report.css", "sections.css")
_CHARTS = ("uPlot.iife.min.js", "words.js", "charts.js", "csv.js", "page.js")
_OWN = {"console.js": JS, "logs.js": JS, "theme.js": JS}


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served."""

    name: str
    body: bytes
    kind: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return all files by the plain names that templates use."""
    return {plain: StaticFile(_hashed(plain, text), text.encode(), kind) for plain, text, kind in _texts()}


@cache
def by_served_name() -> Mapping[str, StaticFile]:
    """Return all files by the names that browsers ask for."""
    return {file.name: file for file in static_files().values()}


def _texts() -> Iterator[tuple[str, str, str]]:
    sheets = [report.asset(name) for name in _SHEETS]
    yield "console.css", "\n".join([*sheets, _own("console.css"), _own("parts.css")]), CSS
    yield "charts.js", "\n".join(report.asset(name) for name in _CHARTS), JS
    for name, kind in _OWN.items():
        yield name, _own(name), kind


def _own(name: str) -> str:
    return (resources.files("podwright.console") / "static" / name).read_text("utf-8")


def _hashed(name: str, text: str) -> str:
    stem, _, kind = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{kind}"
