"""Secrets are masked in every form in which a program may print them."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.masking import Masker

SECRET = "hush/hush+ und\nnoch eins?"
RAW = SECRET.encode()
PEM = "-----BEGIN KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 8 + "-----END KEY-----\n"
FORMS = {
    "as it is": lambda raw: raw,
    "base64": base64.b64encode,
    "base64 for addresses": base64.urlsafe_b64encode,
    "hex": lambda raw: raw.hex().encode(),
    "HEX": lambda raw: raw.hex().upper().encode(),
    "quoted": lambda raw: urllib.parse.quote(raw, safe="").encode(),
    "quoted as a path": lambda raw: urllib.parse.quote(raw).encode(),
    "quoted as a form": lambda raw: urllib.parse.quote_plus(raw).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_masked_in_each_form(form: str) -> None:
    encoded = FORMS[form](RAW)
    assert Masker([SECRET])(b"key: " + encoded + b" end") == b"key: *** end"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_base64_of_more_than_the_secret_shows_nothing_of_it(
    encode: Callable[[bytes], bytes], before: bytes, after: bytes
) -> None:
    """As in the header of `user:password`."""
    masked = Masker([SECRET])(encode(before + RAW + after))
    assert b"***" in masked
    ends = len(before) * 4 // 3 + len(after) * 4 // 3
    assert len(masked) <= ends + 3 + 8, "at most a character or two at either end, and padding"


def test_base64_in_lines_is_masked_line_by_line() -> None:
    lines = base64.encodebytes(PEM.encode()).splitlines()
    assert len(lines) > 3
    assert [Masker([PEM])(line) for line in lines] == [b"***"] * len(lines)


def test_bytes_that_are_no_utf8_are_masked_in_bytes_and_in_text() -> None:
    secret = b"caf\xe9-au-lait".decode("utf-8", "surrogateescape")
    assert Masker([secret])(b"key caf\xe9-au-lait") == b"key ***"
    assert Masker([secret]).text(f"key {secret}") == "key ***"
    assert Masker([secret]).text("odd \ud800 text") == "odd ? text"


def test_a_bracket_on_a_line_of_its_own_is_no_secret() -> None:
    account = '{\n  "a": {\n    "key": "hush-hush"\n    },\n}'
    assert Masker([account])(b'    },\n "key": "hush-hush"') == b"    },\n ***"
