"""The sites the contract suite runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.slurm import Lab
from tests.contract.sites import LocalSite, Site, SlurmSite
from tests.real.labs import slurm_lab


def on_slurm(name: str) -> object:
    """All tests of one lab run in one process: it is started once."""
    return pytest.param(name, marks=[pytest.mark.slurm, pytest.mark.xdist_group(name)])


SLURM = [on_slurm("slurm"), on_slurm("slurm-accounting")]


@pytest.fixture(scope="session")
def slurm_without_accounting() -> Iterator[Lab]:
    with slurm_lab(nodes=4, accounting=False, min_job_age_s=20) as lab:
        yield lab


@pytest.fixture(scope="session")
def slurm_with_accounting() -> Iterator[Lab]:
    with slurm_lab(nodes=4, accounting=True, min_job_age_s=20) as lab:
        yield lab


LABS = {"slurm": "slurm_without_accounting", "slurm-accounting": "slurm_with_accounting"}


def make(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> Iterator[Site]:
    site = SlurmSite(request.getfixturevalue(LABS[name]), tmp_path) if name in LABS else LocalSite(name, tmp_path)
    yield site
    site.close()


@pytest.fixture(params=["local", "local-frames", *SLURM])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Every engine, with every carrier."""
    yield from make(request, request.param, tmp_path)


@pytest.fixture(params=["local", *SLURM])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Engines whose nodes share the run's folder."""
    yield from make(request, request.param, tmp_path)


@pytest.fixture(params=["local", "local-frames"])
def keeping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalSite]:
    """The local engine, which has a keeper."""
    site = LocalSite(request.param, tmp_path)
    yield site
    site.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalSite]:
    site = LocalSite("local", tmp_path)
    yield site
    site.close()


@pytest.fixture
def slurm(slurm_without_accounting: Lab, tmp_path: Path) -> Iterator[SlurmSite]:
    site = SlurmSite(slurm_without_accounting, tmp_path)
    yield site
    site.close()
