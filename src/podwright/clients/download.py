"""Fetches a file, and sees whether it is what it should be."""

from __future__ import annotations

import hashlib
import re

from podwright.clients.http_client import HttpClient, HttpError, request_of
from podwright.spec.problems import refuse, short

_MOST_BYTES = 1 << 30
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TIMEOUT_S = 60.0


def fetch_checked(url: str, digest: str) -> bytes:
    """Return a file; refuse one that is not the one of this digest."""
    if not url.startswith(("http://", "https://")):
        raise refuse(
            f'"{short(url)}" is no URL', hint="write it like `https://files.example/bios.bin`", field="--image"
        )
    if not _DIGEST.fullmatch(digest):
        hint = "`sha256sum FILE` prints it; write `sha256:` before it"
        raise refuse(f'"{short(digest)}" is not a digest', hint=hint, field="--digest")
    try:
        _, content = HttpClient("followed", TIMEOUT_S).ask(request_of(url), _MOST_BYTES)
    except HttpError as error:
        raise refuse(f"{short(url)} cannot be fetched: {error}", field="--image") from None
    found = hashlib.sha256(content).hexdigest()
    if digest != f"sha256:{found}":
        raise refuse(f"{short(url)} is another file: sha256:{found}", field="--digest")
    return content
