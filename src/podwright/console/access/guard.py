"""What holds for every request: whose name it calls, how often and how much, and what may be done with the answer."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable

MAX_BODY_BYTES = 1 << 20
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Of files that runs wrote and drawings of ours: nothing in them is run, whatever they are."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


def host_is_known(header: str, names: frozenset[str]) -> bool:
    """Return whether a Host header names this server: another name is a page elsewhere that was made to lead here."""
    host = header.strip().lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    return host in names


class Bucket:
    """So many requests at once from one place, and so many a second in the long run."""

    MAX_PLACES = 4096

    def __init__(self, most: float, per_s: float, monotonic: Callable[[], float]) -> None:
        self._most, self._per_s, self._monotonic = most, per_s, monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, place: str) -> bool:
        """Return whether one more from this place is let through."""
        now = self._monotonic()
        with self._lock:
            left, at = self._left.pop(place, (self._most, now))
            left = min(self._most, left + (now - at) * self._per_s)
            self._left[place] = (max(0.0, left - 1.0), now)
            if len(self._left) > self.MAX_PLACES:
                self._left.popitem(last=False)
            return left >= 1.0

    def is_empty(self, place: str) -> bool:
        """Return whether a place has nothing left, and take nothing."""
        now = self._monotonic()
        with self._lock:
            left, at = self._left.get(place, (self._most, now))
            return left + (now - at) * self._per_s < 1.0


def masked(csrf: str) -> str:
    """Return a form's proof so that it is another text on each page, which compression cannot betray."""
    mask = secrets.token_bytes(len(csrf) // 2)
    return mask.hex() + _crossed(bytes.fromhex(csrf), mask).hex()


def unmasked(text: str) -> str:
    """Return what `masked` was given; nothing for any other text."""
    half = len(text) // 2
    try:
        return _crossed(bytes.fromhex(text[half:]), bytes.fromhex(text[:half])).hex()
    except ValueError:
        return ""


def _crossed(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
