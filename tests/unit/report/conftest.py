"""Runs made for the tests of the report, each once."""

from pathlib import Path

import pytest

from podwright.analysis.data import ReportData
from podwright.reading.run_data import gather
from tests.fixtures.run_folder import START, Shape, write_run

SHAPES = {
    "succeeded": Shape(),
    "missed": Shape(goal_missed=True, metrics=False, pictures=False),
    "failed": Shape(state="failed", retry_at=None, fail_at=60, seconds=62),
    "running": Shape(state="running", seconds=70, retry_at=None),
    "cancelled": Shape(state="cancelled", seconds=45, retry_at=None, gpus=0, ranks_per_node=1),
    "lost": Shape(state="lost", seconds=45, retry_at=None),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a run of every kind."""
    base = tmp_path_factory.mktemp("runs")
    return {name: write_run(base / name, shape) for name, shape in SHAPES.items()}


@pytest.fixture(scope="session")
def gathered(runs: dict[str, Path]) -> dict[str, ReportData]:
    """What the report reads of each, always at the same moment."""
    return {name: gather(folder, now=START + 400) for name, folder in runs.items()}
