"""Takes what is its owner's affair out of texts that are given away: where they live, and values of secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.files.people import user_name
from podwright.launch.journal import masker_of
from podwright.pilot.masking import Masker


@dataclass(frozen=True)
class Scrubber:
    """Writes `~` for its owner's folders, and a mask for secrets whose values are known here."""

    places: re.Pattern[bytes]
    mask: Masker

    @classmethod
    def of(cls, home: Path, secrets: Iterable[str] = ()) -> Scrubber:
        """Return one for the folders of this user, and for the secrets of these names."""
        folders = {str(Path.home()), f"/home/{user_name()}", str(home), str(home.resolve())} - {"/", "/home/"}
        forms = folders | {json.dumps(folder)[1:-1] for folder in folders}
        longest_first = sorted(map(re.escape, forms), key=len, reverse=True)
        return cls(
            re.compile(rf"(?<![\w.~-])(?:{'|'.join(longest_first)})(?![\w.-])".encode()),
            masker_of(dict.fromkeys(secrets)),
        )

    def __call__(self, data: bytes) -> bytes:
        return self.mask(self.places.sub(b"~", data))

    def tree(self, value: Any) -> Any:
        """Return the same of whatever JSON holds."""
        if isinstance(value, str):
            return self(value.encode("utf-8", "replace")).decode("utf-8", "replace")
        if isinstance(value, dict):
            return {key: self.tree(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(inner) for inner in value]
        return value
