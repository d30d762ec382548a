"""The sites the contract suite runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab import kubernetes
from podwright.lab.slurm import Lab
from tests.contract.sites import KubernetesSite, LocalSite, Site, SlurmSite
from tests.real.labs import kubernetes_lab, slurm_lab


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


def on_kubernetes(name: str) -> object:
    """Nightly: the lab's programs are built from source on a machine that has none of them yet."""
    marks = [pytest.mark.kubernetes, pytest.mark.nightly, pytest.mark.timeout(1800)]
    return pytest.param(name, marks=[*marks, pytest.mark.xdist_group("kubernetes")])


@pytest.fixture(scope="session")
def kubernetes_cluster() -> Iterator[kubernetes.Lab]:
    with kubernetes_lab(nodes=2) as lab:
        yield lab


KUBERNETES = [on_kubernetes("kubernetes"), on_kubernetes("kubernetes-frames")]
LABS = {"slurm": "slurm_without_accounting", "slurm-accounting": "slurm_with_accounting"}


def make(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> Iterator[Site]:
    if name.startswith("kubernetes"):
        cluster = request.getfixturevalue("kubernetes_cluster")
        site: Site = KubernetesSite(cluster, tmp_path, claim=name == "kubernetes")
    elif name in LABS:
        site = SlurmSite(request.getfixturevalue(LABS[name]), tmp_path)
    else:
        site = LocalSite(name, tmp_path)
    yield site
    site.close()


@pytest.fixture(params=["local", "local-frames", *SLURM, *KUBERNETES])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Every engine, with every carrier."""
    yield from make(request, request.param, tmp_path)


@pytest.fixture(params=["local", *SLURM, KUBERNETES[0]])
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
