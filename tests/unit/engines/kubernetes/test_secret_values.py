"""A Secret holds the bytes that the user's environment has."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from podwright.engines.kubernetes.objects import HOLDS
from podwright.engines.kubernetes.submit import _filled
from podwright.runs import Home
from tests.unit.runs.made import asked

RAW = b"-----BEGIN KEY-----\ncaf\xe9\n\n-----END KEY-----\n"


def test_values_of_any_bytes_are_given_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", os.fsdecode(RAW))
    folder = Home.open(tmp_path / "home").create(asked("toy-2222"), {"token": b"join\n"}, {})
    secret = {"kind": "Secret", "metadata": {"annotations": {HOLDS: "token env.KEY"}}}
    data = _filled(secret, folder)["data"]
    assert {key: base64.b64decode(value) for key, value in data.items()} == {"token": b"join", "env.KEY": RAW}
