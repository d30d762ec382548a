"""The README as a package shows it: it knows no files beside it, so of links to them the words stay."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^]]*\]\([^)]*\)\n\n?", re.M)
_LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)")


class ReadmeHook(MetadataHookInterface):
    """Hands the README to hatchling."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _LINK.sub(r"\1", _PICTURE.sub("", text))}
