"""Workloads and homes; what a test starts it also ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.runs import Home

Load = Callable[..., spec.Workload]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home.open(tmp_path / "home")
    yield made
    for record in launch.recent(made, None):
        if not record.is_final:
            launch.find(made, record.id).cancel()
            launch.find(made, record.id).wait(60)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Makes workloads from a few lines; their folder is `work`, with code in `work/code`."""

    def make(text: str, name: str = "toy") -> spec.Workload:
        folder = tmp_path / "work"
        (folder / "code").mkdir(parents=True, exist_ok=True)
        path = folder / "workload.yaml"
        path.write_text(f"name: {name}\n{text}\n")
        return spec.load_workload(path)

    return make
