"""A DGX SuperPOD of 140 nodes and 1,120 GPUs under a real Slurm: a run is kept inside one scalable unit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.sites import SlurmSite, until
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("lab")]

PODWRIGHT = Path(sys.executable).parent / "podwright"
RUN_S = 200.0
WORKLOAD = """\
name: wide
command: hostname
nodes: 20
ranks_per_node: 1
resources: {gpus: 8}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSite]:
    with slurm_lab(nodes=140) as lab:
        made = SlurmSite(lab, tmp_path_factory.mktemp("scale"))
        yield made
        made.close()


def podwright(site: SlurmSite, *words: str) -> Any:
    environ = {**os.environ, "PODWRIGHT_HOME": str(site.home.path)}
    command = [str(PODWRIGHT), *words, "--json"]
    done = subprocess.run(
        command, cwd=site.folder, env=environ, capture_output=True, text=True, check=False, timeout=RUN_S
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_gpus_are_there(site: SlurmSite) -> None:
    (found,) = podwright(site, "queue", site.target)
    (gpu,) = [one for one in found["partitions"] if one["name"] == "gpu"]
    assert (gpu["nodes"], gpu["gpus"], gpu["gpus_free"]) == (140, 1120, 1120)


def test_a_run_goes_to_the_one_unit_that_is_free(site: SlurmSite) -> None:
    """One node of every other unit is taken: twenty nodes are free in many places, but only once side by side."""
    taken = "n[10,30,50,70,90,110]"
    options = ["--exclusive", "--nodes=6", f"--nodelist={taken}", "--output=/dev/null"]
    site.slurm("sbatch", *options, "--wrap=sleep 600")
    until(lambda: site.slurm("squeue", "--noheader", "--states=RUNNING"), "the others' job runs")
    (site.folder / "wide.yaml").write_text(WORKLOAD)
    run = podwright(site, "run", "wide.yaml", "--on", site.target)
    assert (run["state"], run["world_size"]) == ("succeeded", 20)
    assert sorted(run["hosts"]) == sorted(f"n{number}" for number in range(121, 141))
