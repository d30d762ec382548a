"""`capacity` and the catalog meet: what days brought, what was kept and why, and how long storage lasts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.tags import put_tags
from tests.paths import ROOT

DAY_S = 86400
POD = """\
name: adas
nodes: [{hosts: "d[1-2]", model: dgx-a100}]
storage: [{name: fast, kind: nfs, capacity: 20kB}, {name: cold, kind: nfs, capacity: 1MB}]
"""


@pytest.fixture
def drives(store: Store, tmp_path: Path) -> Path:
    """Three days with 2, 4 and 6 kB; of the last, half was dropped."""
    tree = tmp_path / "drives"
    verdicts = {}
    for day in range(3):
        for number in range(2):
            path = tree / f"day{day}" / f"{number}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 1000 * (day + 1))
            os.utime(path, (day * DAY_S + 100, day * DAY_S + 100))
            verdicts[f"day{day}/{number}.bin".encode()] = {
                "keep": ("yes", "no")[number],
                "why": ("new", "near 0")[number],
            }
    scan(store, tree, "drives")
    put_tags(store, "drives", verdicts)
    return tree


def test_what_days_brought_stands_beside_what_was_reckoned(
    drives: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    fleet = ROOT / "tests" / "cases" / "capacity" / "fleet" / "capacity.yaml"
    pod = tmp_path / "pod.yaml"
    assert main(["capacity", str(fleet), "--dataset", "drives", "--on", str(pod), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    measured = document["dataset"]
    assert (measured["bytes_per_day"], measured["kept_share"], measured["kept_bytes_per_day"]) == (4000, 0.5, 2000)
    assert measured["share_of_model"] == pytest.approx(4000 / document["data"]["bytes_per_day"])
    assert document["how"]["dataset.kept_share"] == "by curation: 3 near, 3 new"
    assert measured["days_until_fast_is_full"] == (20_000 - 12_000) // 2000
    assert measured["days_until_cold_is_full"] == (1_000_000 - 12_000) // 2000
