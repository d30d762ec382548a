"""What a suite's newest round comes to: a row for each cell, for the terminal, programs and the report."""

from __future__ import annotations

from statistics import median
from typing import Any

from podwright.analysis.bootstrap import median_interval
from podwright.prove.suite_folder import Cell, SuiteFolder

METRIC = "duration_s"


def cell_json(cell: Cell) -> dict[str, Any]:
    """Return a cell as `bench run` lists it."""
    samples = cell.values(METRIC)
    interval = median_interval(samples)
    key = cell.key
    return {
        "workload": key.workload,
        "target": key.target,
        "runtime": key.runtime,
        "size": key.size,
        "n": len(samples),
        "median_s": median(samples) if samples else None,
        "interval": list(interval) if interval else None,
        "image": key.image or None,
        "failed": cell.failed,
        "runs": cell.runs,
        "version": cell.version or None,
    }


def suite_json(folder: SuiteFolder) -> dict[str, Any]:
    """Return the document of `bench run`."""
    return {"suite": folder.name, "cells": [cell_json(cell) for cell in folder.cells()], "round": folder.round()}
