"""Fetches a file only to see whether it is what it should be."""

from __future__ import annotations

import hashlib
import re

from podwright.clients.http_client import HttpClient, HttpError, request_of
from podwright.spec.problems import refuse, short

_CHUNK = 1 << 20
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
    received = hashlib.sha256()
    try:
        with HttpClient("followed", TIMEOUT_S).open(request_of(url)) as answer:
            while chunk := answer.read(_CHUNK):
                received.update(chunk)
    except HttpError as error:
        raise refuse(f"{short(url)} cannot be fetched: {error}", field="--image") from None
    if digest != f"sha256:{received.hexdigest()}":
        raise refuse(f"{short(url)} is another file: sha256:{received.hexdigest()}", field="--digest")
