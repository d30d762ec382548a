"""A home with datasets in it, and the command line on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from podwright.data.catalog.store import Store
from podwright.runs import Home
from tests.fixtures.a2d2 import write_scenes

Say = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    return Store(Home.open(tmp_path / "home").path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_scenes(tmp_path / "a2d2")


@pytest.fixture
def ask(store: Store, capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs `podwright data ... --json` and gives its document; `code` is the exit code that is expected."""

    def run(*words: object, code: int = 0) -> Any:
        assert main(["data", *map(str, words), "--json"]) == code
        return json.loads(capfd.readouterr().out)

    return run


@pytest.fixture
def tell(store: Store, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Runs `podwright data ...` for a person and gives stdout and stderr."""

    def run(*words: object, code: int = 0) -> tuple[str, str]:
        assert main(["data", *map(str, words)]) == code
        printed = capfd.readouterr()
        return printed.out, printed.err

    return run
