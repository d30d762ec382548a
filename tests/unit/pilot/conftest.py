"""What several tests of the pilot are given."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.pilot.life.lease import Leases
from tests.unit.pilot.crowd import Crowd
from tests.unit.pilot.made import ORDER


@pytest.fixture
def crowd() -> Any:
    """Makes crowds whose leader sees their time."""

    def make(leases: Leases | None = None, restart: int = 0, **changes: Any) -> Crowd:
        made = Crowd(ORDER._replace(**changes), leases or Leases(None, "job"), restart)
        return made.begin()

    return make
