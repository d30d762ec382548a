"""The programs of futures on a real Slurm: the same values, errors, states and order as on threads."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import podwright
from tests.contract.sites import SlurmSite
from tests.unit.launch.test_executor import BY_NIGHT, QUICK

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.xdist_group("slurm")]
PROGRAMS = {**QUICK, **BY_NIGHT}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_on_slurm(name: str, slurm: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two pools each has the site's session; the folder is one that the nodes share."""
    folder = slurm.lab.shared / f"futures-{os.getpid()}-{name.replace(' ', '-')}"
    outcomes = []
    for kind in ("threads", "runs"):
        place = folder / kind
        place.mkdir(parents=True)
        for path in (folder, place):
            os.chown(path, slurm.lab.user.uid, slurm.lab.user.gid)
        make = ThreadPoolExecutor if kind == "threads" else _maker(slurm)
        monkeypatch.chdir(slurm.folder)
        outcomes.append(PROGRAMS[name](make, place))
    assert outcomes[0] == outcomes[1]


def _maker(site: SlurmSite) -> type[podwright.Executor]:
    class OnSlurm(podwright.Executor):
        """As many calls at once as the program asks for, with the Python of this test."""

        def __init__(self, max_workers: int) -> None:
            fields = {"cpus": 1, "python": sys.executable}
            super().__init__(site.target, max_workers, trust=True, session=site.session, **fields)

    return OnSlurm


def test_a_hundred_futures_have_their_values_in_order(slurm: SlurmSite) -> None:
    with _maker(slurm)(50) as pool:
        futures = [pool.submit(pow, number, 2) for number in range(100)]
        assert [future.result(1800) for future in futures] == [number**2 for number in range(100)]
    assert len({future.runs[0].id for future in futures}) == 100
