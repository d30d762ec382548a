"""What a pilot tells a rank's shim: names and values between NULs, which are read without importing anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes as long as Python's own start
    from typing import Iterable, Iterator, Tuple

END = b"\0\n"
"""Ends a message and is nowhere in it: a name follows each NUL."""


def pack(rows: Iterable[Tuple[str, object]]) -> bytes:
    """Return a message; a name may come several times."""
    return "".join(f"{name}={value}\0" for name, value in rows).encode("utf-8", "surrogateescape") + b"\n"


def unpack(message: bytes) -> Iterator[Tuple[str, str]]:
    """Yield the names and values of a message."""
    for row in message[: -len(END)].decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = row.partition("=")
        yield name, value
