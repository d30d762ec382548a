"""The system description, as MLPerf's own checker sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlperf_logging.system_desc_checker.system_desc_checker import check_system_desc

from podwright.cli.main import main
from tests.paths import ROOT


@pytest.mark.parametrize("ruleset", ["0.7.0", "4.1.0"])
def test_the_checker_accepts_it(ruleset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = ROOT / "examples" / "superpod-20.yaml"
    assert main(["bench", "system", str(pod), "--submitter", "ours", "--framework", "PyTorch 2.4"]) == 0
    path = tmp_path / "system.json"
    path.write_text(capsys.readouterr().out)
    valid, name, *_ = check_system_desc(str(path), "training", ruleset)
    assert valid
    document = json.loads(path.read_text())
    assert (name, document["number_of_nodes"]) == (document["system_name"], "20")
    assert (document["accelerators_per_node"], document["accelerator_model_name"]) == ("8", "A100-SXM4-40GB")
    assert (document["host_processor_model_name"], document["host_processor_core_count"]) == ("AMD EPYC 7742", "64")
    del document["cooling"]
    path.write_text(json.dumps(document))
    assert not check_system_desc(str(path), "training", ruleset)[0]
