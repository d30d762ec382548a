"""How a workload scales: what the smallest size tells of the larger ones, and where it tells nothing any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.cli.commands.prove.suites import scale_page
from podwright.prove.scale import ScalingCurve, scaling_curve
from podwright.prove.suite_folder import CellKey, SuiteFolder

LAB = {1: 0.76, 2: 2.20, 4: 5.51}
"""Seconds of an all-reduce over nodes that share two cores (benchmarks/results/lab_scaling.md): it turns at once."""


def curve_of(folder: Path, medians: dict[int, float], kind: str) -> ScalingCurve:
    suite = SuiteFolder(folder / "scale")
    suite.note("round", round=1, file="suite.yaml")
    for size, median in medians.items():
        key = CellKey("toy", "lab", "bare", size)
        for number, factor in enumerate((0.99, 1.0, 1.01)):
            run = f"toy-{size}-{number}"
            suite.note("asked", round=1, cell=vars(key), warmup=False, run=run)
            suite.note("done", run=run, state="succeeded", values={"duration_s": median * factor})
    return scaling_curve(suite.cells(), kind)


@pytest.mark.parametrize(
    ("medians", "kind", "last"),
    [
        (LAB, "weak", 1),
        ({1: 1.53, 2: 0.90, 4: 1.55}, "strong", 2),
        ({1: 10.0, 2: 5.6, 4: 3.3}, "strong", None),
        ({1: 10.0}, "strong", None),
    ],
    ids=["turns at once", "turns at the largest", "as told", "one size"],
)
def test_a_curve_that_contradicts_its_smallest_size_is_told(
    medians: dict[int, float], kind: str, last: int | None, tmp_path: Path
) -> None:
    curve = curve_of(tmp_path, medians, kind)
    assert curve.no_prediction_beyond == curve.as_json()["no_prediction_beyond"] == last
    shown = "\n".join(scale_page(curve))
    assert (f"no prediction beyond {last} node" in shown) is (last is not None)


def test_what_is_contradicted_is_said_with_its_times(tmp_path: Path) -> None:
    shown = "\n".join(scale_page(curve_of(tmp_path, LAB, "weak")))
    assert "2 nodes took 2.20 s, and 1 node had told 0.61 s to 0.95 s" in " ".join(shown.split())
