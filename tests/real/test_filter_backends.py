"""Random filters against plain Python, in ClickHouse as here: tests/unit/data/test_filter_meaning.py has the others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.store import Store
from podwright.data.clickhouse.publish import publish
from podwright.data.clickhouse.published import open_published
from tests.fixtures.clickhouse import debian_server
from tests.fixtures.filters import random_filter
from tests.unit.data.test_filter_meaning import MANY, home, rows_of

__all__ = ["home"]


@pytest.mark.xdist_group("clickhouse")
@pytest.mark.parametrize("count", MANY)
def test_filters_choose_in_clickhouse_what_plain_python_chooses(home: Store, tmp_path: Path, count: int) -> None:
    chance = random.Random(count)
    with debian_server(tmp_path / "server") as running:
        server = running.client()
        publish(home, "a2d2", server, everything=True)
        with open_dataset(home, "a2d2") as here, open_published(server, "a2d2") as there:
            rows = rows_of(here)
            for _ in range(count):
                text, test = random_filter(chance)
                wanted = [row["path"] for row in rows if test(row)]
                assert [match.path for match in there.find(there.condition(text))] == wanted, text
