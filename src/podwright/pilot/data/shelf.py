"""Which contents of a run are on a node, and which it is getting: what it serves other nodes from."""

from __future__ import annotations

import os
import random
import threading
from typing import BinaryIO, Iterable, List, Optional, Set

from ..system.plain_files import open_to_read
from .manifest import Content


class Shelf:
    """Which contents of a run are here, for this node and for the others, whose questions come in other threads."""

    def __init__(self, folder: str, lock: threading.Condition) -> None:
        self._folder, self._lock = folder, lock
        self.items: List[Content] = []
        self.missing: Set[int] = set()
        self.claimed: Set[int] = set()
        """Those that somebody here is getting, and those that have come so."""
        self._is_scanned = False

    def fill(self, items: List[Content], missing: Set[int]) -> None:
        """Take up what there is to be had, and what of it is not here."""
        with self._lock:
            self.items, self.missing, self._is_scanned = items, missing, True

    def have(self) -> Optional[bytes]:
        """Return a bit for each content, or None while that is not known yet."""
        with self._lock:
            if not self._is_scanned:
                return None
            bits = bytearray((len(self.items) + 7) // 8)
            for number in range(len(self.items)):
                if number not in self.missing:
                    bits[number >> 3] |= 1 << (number & 7)
            return bytes(bits)

    def open(self, number: int) -> Optional[BinaryIO]:
        """Open a content, where it is here."""
        with self._lock:
            if not 0 <= number < len(self.items) or number in self.missing:
                return None
            name, path = self.items[number].paths[0]
        folder = os.path.join(os.fsencode(self._folder), name.encode())
        try:
            return open_to_read(os.fsdecode(os.path.join(folder, path)))
        except OSError:
            return None

    def is_named_by_digest(self, number: int) -> bool:
        """Return whether everybody knows the SHA-256 of a content."""
        return bool(self.items[number].sha256)

    def claim(self, bits: bytes, count: int) -> List[int]:
        """Choose some of what another node has and nobody here is getting."""
        with self._lock:
            free = [number for number in self.missing - self.claimed if has(bits, number)]
            numbers = random.sample(free, min(count, len(free)))
            self.claimed.update(numbers)
            return numbers

    def release(self, numbers: Iterable[int]) -> None:
        """Leave to others what did not come."""
        with self._lock:
            self.claimed -= self.missing.intersection(numbers)
            self._lock.notify_all()


def has(bits: bytes, number: int) -> bool:
    """Return whether a content is on the shelf whose bits these are."""
    return number >> 3 < len(bits) and bool(bits[number >> 3] >> (number & 7) & 1)
