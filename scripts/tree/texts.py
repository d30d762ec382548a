"""Rules for every text file: words that say that something is unfinished, names of registries, sizes in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from scripts.tree.sources import Finding, Source

MAX_FILE_BYTES = 1_000_000

# Written in two halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
VAGUE = re.compile(r"\bfor" + r" now\b|\bin a real (?:system|implementation)\b", re.IGNORECASE)
# A committed file that names a package index or an image registry works only where that one is reachable.
REGISTRIES = re.compile(
    r"\b(pypi\."
    + r"org|pythonhosted\."
    + r"org|registry\.npmjs\."
    + r"org|docker\."
    + r"io|quay\."
    + r"io|nvcr\."
    + r"io|"
    r"ghcr\." + r"io|download\.pytorch\." + r"org)\b"
)
VAGUE_NAMES = {"utils", "helpers", "common", "manager"}


def large_files(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find files too large for a repository."""
    for source in sources:
        if source.size_bytes > MAX_FILE_BYTES:
            yield source.finding(1, f"{source.size_bytes} bytes, at most {MAX_FILE_BYTES}")


def unfinished_words(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find what was left unfinished, names of package registries, and file names that say nothing."""
    for source in sources:
        if source.path.stem in VAGUE_NAMES:
            yield source.finding(1, f"`{source.path.stem}` says nothing: name the noun")
        # Most files hold none of the words: one search over the whole text is quicker than one a line.
        if any(pattern.search(source.text) for pattern in (UNFINISHED, VAGUE, REGISTRIES)):
            yield from _words_by_line(source)


def _words_by_line(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        if match := UNFINISHED.search(line) or VAGUE.search(line):
            yield source.finding(number, f"`{match[0]}`: finish it or leave it out")
        if match := REGISTRIES.search(line):
            yield source.finding(number, f"`{match[0]}`: the machine's own settings say where packages come from")
