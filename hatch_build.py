"""The README as a package index shows it: it knows no files beside it, so links lead to the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

SITE = "https://podwright.dev/"
_LINK = re.compile(r"\]\((?:docs/)?([\w/.-]+?)(\.md)?(#[\w-]+)?\)")


def with_whole_links(text: str) -> str:
    """Return the text with links to pages, pictures and files of this folder as addresses of the site."""
    return _LINK.sub(_address, text)


def _address(link: re.Match[str]) -> str:
    path, is_page, anchor = link.groups()
    ending = ".html" if is_page else ""
    return f"]({SITE}{path}{ending}{anchor or ''})"


class ReadmeHook(MetadataHookInterface):
    """Hands the README to hatchling."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_whole_links(text)}
