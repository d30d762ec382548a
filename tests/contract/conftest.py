"""The sites the contract suite runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sites import LocalSite


@pytest.fixture(params=["local", "local-frames"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalSite]:
    site = LocalSite(request.param, tmp_path)
    yield site
    site.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalSite]:
    site = LocalSite("local", tmp_path)
    yield site
    site.close()
