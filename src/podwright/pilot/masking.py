"""Takes the values of secrets out of what is written down: the logs of ranks, and the error texts of clients."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import Dict, Iterable, Set

MIN_SECRET = 4
"""Characters: a shorter one would be found in every other word."""
MIN_CORE = 8
"""Characters of base64 without its ends: fewer are found by chance."""
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Masker:
    """Replaces the values of secrets, so that a program that prints its environment does not put them on disk."""

    def __init__(self, secrets: Iterable[str], mask: str = "***") -> None:
        self._mask = mask.encode()
        forms: Set[bytes] = set()
        for secret in secrets:
            forms |= forms_of(secret)
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self.overlap = max((len(form) - 1 for form in forms), default=0)

    def __call__(self, data: bytes) -> bytes:
        for form in self._forms:
            if form in data:
                data = data.replace(form, self._mask)
        return data

    def text(self, text: str) -> str:
        """Return a text without secrets; bytes that are no UTF-8 are looked at as the bytes they are."""
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            data = text.encode("utf-8", "replace")
        return self(data).decode("utf-8", "replace")


def forms_of(secret: str) -> Set[bytes]:
    """Return a secret as it may be met: as it is, line by line since lines may come in pieces, and encoded."""
    value = secret.encode("utf-8", "surrogateescape")
    pieces = {value, *map(bytes.strip, value.splitlines())}
    forms = set(pieces)
    if len(value) >= MIN_SECRET:
        forms |= _base64(value) | _url(value) | _hex(value)
    for piece in [piece for piece in pieces if len(piece) >= MIN_SECRET]:
        text = piece.decode("utf-8", "surrogateescape")
        forms |= {form.encode("utf-8", "surrogateescape") for form in _json(text) | _html(text) | _quoted(text)}
    return {form for form in forms if len(form) >= MIN_SECRET}


def _base64(value: bytes) -> Set[bytes]:
    """Return base64 in both alphabets, whole, broken into lines, and as it stands inside something longer."""
    forms = {base64.b64encode(value)}
    forms |= {line for line in base64.encodebytes(value).splitlines() if len(line) >= MIN_CORE}
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value)
        # The characters at the ends hold bits of what stands beside the secret; those between are the same always.
        first, last = (before * 8 + 5) // 6, (before + len(value)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= MIN_CORE:
            forms.add(core)
    return forms | {form.translate(bytes.maketrans(b"+/", b"-_")) for form in forms}


def _url(value: bytes) -> Set[bytes]:
    """Return it as addresses and forms hold it: with and without the slash, a blank as %20 or as a plus."""
    forms = set()
    for safe in (UNRESERVED, UNRESERVED | {ord("/")}):
        quoted = b"".join(bytes([byte]) if byte in safe else b"%%%02X" % byte for byte in value)
        forms |= {quoted, quoted.replace(b"%20", b"+")}
    return forms


def _json(text: str) -> Set[str]:
    """Return it as it stands in a JSON string: in ASCII or not, and as writers do who escape more than they must."""
    forms = set()
    for dumped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        forms |= {dumped, dumped.replace("/", "\\/"), _escaped(dumped, _GO), _escaped(dumped, _GSON)}
        forms.add(_escaped(dumped.replace('\\"', '"'), _DOTNET))
    return forms


def _html(text: str) -> Set[str]:
    """Return it as pages and attributes hold it."""
    return {_escaped(text, table) for table in _HTML}


def _quoted(text: str) -> Set[str]:
    """Return it as words of a shell or of Python hold it: between quotes of either kind, or after backslashes."""
    words = {text.replace("'", other) for other in ("'\"'\"'", "'\\''")}
    words |= {_escaped(text, _IN_DOUBLE_QUOTES), _escaped(text, _BACKSLASHES)}
    of_python = repr('"' + text)[2:-1]
    return words | {of_python, of_python.replace("\\'", "'")}


def _escaped(text: str, table: Dict[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in text)


_GO = {letter: f"\\u{ord(letter):04x}" for letter in "&<>"}
_GSON = {letter: f"\\u{ord(letter):04x}" for letter in "&<>='"}
_DOTNET = {letter: f"\\u{ord(letter):04X}" for letter in "&<>'+`\""}
_HTML = [
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': double, "'": single}
    for double, single in product(('"', "&quot;", "&#34;"), ("'", "&#x27;", "&#39;", "&apos;"))
]
_IN_DOUBLE_QUOTES = {letter: f"\\{letter}" for letter in '\\"$`'}
_BACKSLASHES = {letter: f"\\{letter}" for letter in " \t!\"#$&'()*,;<>?[\\]^`{|}~"}


def _hex(value: bytes) -> Set[bytes]:
    text = value.hex()
    return {text.encode(), text.upper().encode()}
