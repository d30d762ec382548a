"""Homes and runs for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from podwright.runs import Home
from tests.unit.runs.made import asked

# The machine may be busy with other things; a slow example is no wrong one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


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
