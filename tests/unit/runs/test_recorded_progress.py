"""How far a training is, told from what programs of several frameworks wrote.

The first line of a recording says whether it was recorded from the framework itself or written in the form that its
public source prints, and what its total is. `steadied`: the times were moved so that each step takes as long as the
middle one did, since the machine that recorded was busy; pauses between epochs stand as they were.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.runs.recordings import Recording

CASES = Path(__file__).parents[2] / "cases" / "progress"
FILES = sorted(CASES.glob("*/*.jsonl"))
EARLY, SHARES = 0.2, (0.2, 0.5, 0.9)
MOST_OFF = 0.15


def test_there_are_fifteen_of_each_framework() -> None:
    assert sorted(Counter(path.parent.name for path in FILES).items()) == [
        ("hugging-face", 15),
        ("keras", 15),
        ("lightning", 15),
        ("line-loggers", 15),
        ("megatron-deepspeed", 15),
        ("nanogpt", 15),
        ("torchtitan", 15),
        ("tqdm", 15),
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_progress(path: Path, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    recording = Recording(path)
    moments = [recording.about["begin"] + share * recording.lasts_s for share in SHARES]
    records = list(recording.records(tmp_path, moments))
    rows = {f"at {share:.0%}": record.progress for share, record in zip(SHARES, records, strict=True)}
    expected = {**rows, "results": records[-1].results}
    golden(path.parent / "expected" / f"{path.stem}.json", json.dumps(expected, indent=1) + "\n")
    early, left_s = records[0].progress or {"eta_s": None}, recording.truth(moments[0])
    if left_s is None:
        assert all(row is None or row["eta_s"] is None for row in rows.values())
    else:
        # Of the run, where its total is known.
        assert (early["of"], early["eta_s"]) == (recording.about["total"], pytest.approx(left_s, rel=MOST_OFF))
