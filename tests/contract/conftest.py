"""The sites the contract suite runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.slurm.lab import SlurmLab
from tests.contract.sites import KubernetesSite, LocalSite, Site, SlurmSite
from tests.real.labs import ON_KUBERNETES, slurm_lab


def on_slurm(name: str) -> object:
    """All tests of one lab run in one process: it is started once."""
    return pytest.param(name, marks=[pytest.mark.slurm, pytest.mark.xdist_group(name)])


SLURM = [on_slurm("slurm"), on_slurm("slurm-accounting")]


@pytest.fixture(scope="session")
def slurm_without_accounting() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=4, accounting=False, min_job_age_s=20) as lab:
        yield lab


@pytest.fixture(scope="session")
def slurm_with_accounting() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=4, accounting=True, min_job_age_s=20) as lab:
        yield lab


CORE = (
    "test_a_run_succeeds_and_leaves_its_record",
    "test_ranks_see_the_torchrun_contract",
    "test_a_failed_rank_fails_the_run_and_is_named",
    "test_one_node_retries_without_a_shared_folder",
    "test_cancel_asks_the_ranks_first",
    "test_a_run_outlives_its_client_and_any_other_finds_it",
)
IN_CI = {
    "kubernetes-frames": (*CORE, "test_without_a_claim_a_run_is_told_at_its_start_that_nothing_is_kept"),
    "kubernetes": (
        *CORE,
        "test_torchrun_starts_the_ranks",
        "test_mpirun_starts_the_ranks",
        "test_a_retry_goes_on_from_the_checkpoint",
        "test_a_hang_is_found_and_the_rank_named",
        "test_a_lost_node_comes_back_and_spends_no_retry",
        "test_a_leader_that_dies_is_replaced",
        "test_a_killed_rank_resumes",
        "test_a_run_from_the_checkpoint_of_another_goes_on_where_that_was",
        "test_a_client_that_dies_before_submitting_loses_nothing",
        "test_the_time_limit_ends_a_run",
        "test_a_matrix_is_one_run_with_points",
        "test_one_run_after_another",
        "test_a_program_that_knows_nothing_of_us_runs_and_what_it_leaves_is_pulled",
    ),
}
"""What of the suite every change is tested with, by site; the rest is nightly there. Sites not named run all of it."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        site = params.get("site") or params.get("shared")
        if site in IN_CI and item.originalname not in IN_CI[site]:
            item.add_marker(pytest.mark.nightly)
        if params.get("stamped", "local") != "local":
            item.add_marker(pytest.mark.nightly)


KUBERNETES = [pytest.param(name, marks=ON_KUBERNETES) for name in ("kubernetes", "kubernetes-frames")]
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
def slurm(slurm_without_accounting: SlurmLab, tmp_path: Path) -> Iterator[SlurmSite]:
    site = SlurmSite(slurm_without_accounting, tmp_path)
    yield site
    site.close()
