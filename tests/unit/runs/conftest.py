"""Homes and runs for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.runs import Home
from tests.unit.runs.made import asked


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def add(home: Home) -> Callable[..., str]:
    """Makes runs that nobody started."""

    def make(run_id: str, **changes: object) -> str:
        home.create(asked(run_id, **changes), {"job/order.json": b"{}\n"}, {})
        return run_id

    return make
