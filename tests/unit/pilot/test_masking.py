"""Secrets are masked in every form in which a program may print them."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import subprocess
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


ODD = "s3cr3t/Va+lue&\"q<x>'é $HOME\\n=`end`"
ESCAPES: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: json.dumps({"key": text}),
    "JSON in UTF-8": lambda text: json.dumps({"key": text}, ensure_ascii=False),
    "JSON in a page": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON of Go": lambda text: json.dumps(text).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
    "HTML": lambda text: f'<b title="{html.escape(text)}">',
    "HTML between tags": lambda text: f"<b>{html.escape(text, quote=False)}</b>",
    "HTML by numbers": lambda text: html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "a word of a shell": lambda text: f"export KEY={shlex.quote(text)}",
    "a word in double quotes": lambda text: '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"',
    "Python": lambda text: repr({"key": text}),
    "Python beside a quote": lambda text: repr(f'"{text}'),
    "Python beside another": lambda text: repr(f"it's {text}"),
}


@pytest.mark.parametrize("secret", [ODD, ODD.replace("'", ""), ODD.replace('"', "")])
@pytest.mark.parametrize("escape", ESCAPES)
def test_a_secret_is_masked_in_each_escape(escape: str, secret: str) -> None:
    masked = Masker([secret]).text(ESCAPES[escape](secret))
    assert "***" in masked
    assert "s3cr3t" not in masked
    assert "end" not in masked


@given(st.text(min_size=4), st.sampled_from(sorted(ESCAPES)))
def test_any_text_is_masked_in_each_escape(secret: str, escape: str) -> None:
    escaped = ESCAPES[escape](secret)
    assert Masker([secret]).text(escaped) != escaped


@pytest.mark.parametrize("quoting", ["%q", "'%s'"])
def test_what_a_shell_quotes_is_masked(quoting: str) -> None:
    secret = "s3cr3t/Va+lue&q<x> $HOME`end`"
    said = subprocess.run(["bash", "-c", f'printf "{quoting}" "$1"', "-", secret], capture_output=True, check=True)
    assert Masker([secret])(said.stdout).strip(b"'") == b"***"


def test_a_file_of_a_key_is_masked_line_by_line_in_a_page() -> None:
    key = "-----BEGIN KEY-----\nabc&def<ghi>\n-----END KEY-----"
    assert Masker([key]).text("<p>abc&amp;def&lt;ghi&gt;</p>") == "<p>***</p>"


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
