"""Fetches a file only to see whether it is what it should be."""

from __future__ import annotations

import hashlib
import re
import urllib.request
from http.client import HTTPException

from podwright.clients.reasons import connection_reason
from podwright.spec.problems import refuse, short

_PIECE = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TIMEOUT_S = 60.0


def check_digest(url: str, digest: str) -> None:
    """Refuse a file that is not the one of this digest."""
    if not url.startswith(("http://", "https://")):
        raise refuse(
            f'"{short(url)}" is no URL', hint="write it like `https://files.example/bios.bin`", field="--image"
        )
    if not _DIGEST.fullmatch(digest):
        hint = "`sha256sum FILE` prints it; write `sha256:` before it"
        raise refuse(f'"{short(digest)}" is not a digest', hint=hint, field="--digest")
    reckoned = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            while piece := answer.read(_PIECE):
                reckoned.update(piece)
    except (OSError, HTTPException) as error:
        reason = connection_reason(getattr(error, "reason", None) or error)
        raise refuse(f"{short(url)} cannot be fetched: {reason}", field="--image") from None
    if digest != f"sha256:{reckoned.hexdigest()}":
        raise refuse(f"{short(url)} is another file: sha256:{reckoned.hexdigest()}", field="--digest")
