"""The home's own settings, `settings.yaml`: what a person wants of every run. It may hold a secret."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podwright.spec.findings import Finding
from podwright.spec.forms import read_text
from podwright.spec.problems import refuse
from podwright.spec.source import decode, read_source
from podwright.spec.types import Line, Size, Strict

FILE = "settings.yaml"


class HistorySettings(Strict):
    """How much of a dataset's history stays."""

    keep: int = Field(default=3, ge=1, description="generations of a dataset that stay, with the one that is read")
    bytes: Size = Field(default=20 * 10**9, description="what they take together; the one that is read stays")


class Settings(Strict):
    """What is left out is not wanted."""

    history: HistorySettings = Field(default=HistorySettings(), description="how much of a dataset's history stays")
    webhook: Line | None = Field(default=None, description="an address that gets the record of each run that has ended")
    share: Literal["none", "team", "all"] = Field(
        default="none", description="who may see runs that have ended: a copy of each is published for them"
    )
    trust: list[Line] = Field(
        default=[], description="targets, or pods, whose values of functions are unpickled, which can run any code"
    )


def read_settings(home: Path) -> Settings:
    """Return the settings of a home; refuse a file that others can read, without a word of what is in it."""
    path = home / FILE
    if not path.exists():
        return Settings()
    if path.stat().st_mode & 0o077:
        raise refuse("can be read by others, and its address is a secret", f"`chmod 600 {path}`", file=str(path))
    return read_text(Settings, decode(read_source(path), str(path)), str(path), [_check_address])


def _check_address(tree: Mapping[str, Any]) -> Iterator[Finding]:
    """Want TLS, but on this machine. The address itself is not repeated: who has it can write there."""
    address = tree.get("webhook")
    if not isinstance(address, str):
        return
    try:
        parts = urllib.parse.urlsplit(address)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost"))
    except ValueError:
        is_safe = False
    if not is_safe:
        yield Finding(("webhook",), "is no https address", "write it like `webhook: https://...`")
