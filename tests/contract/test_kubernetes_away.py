"""An API server that is away for seconds, or for longer than clients wait, while runs are given, followed and seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.kubernetes.outage import Patience
from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run, Session
from podwright.spec import Refusal
from tests.contract.sites import END_S, KubernetesSite, kubernetes_session
from tests.contract.test_kubernetes_ends import SMALL, at_request, ended_once, says
from tests.real.clients import Client
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES
SHORT_S, LONG_S = 5.0, 90.0
UNREACHABLE = 3


@pytest.fixture
def site(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[KubernetesSite]:
    site = KubernetesSite(kubernetes_cluster, tmp_path)
    yield site
    site.close()


class Outage:
    """An API server that goes away, and comes back after this long."""

    def __init__(self, lab: KubernetesLab, lasts_s: float) -> None:
        self.begun = threading.Event()
        self._lab, self._lasts_s = lab, lasts_s
        self._back = threading.Thread(target=self._heal)

    def begin(self) -> None:
        self._lab.kill_controller(stays=True)
        self.begun.set()
        self._back.start()

    def _heal(self) -> None:
        time.sleep(self._lasts_s)
        self._lab.heal()

    def wait(self) -> None:
        """Until it is over; nothing is left dead."""
        if self.begun.is_set():
            self._back.join()
        self._lab.heal()


def start_in_outage(site: KubernetesSite, session: Callable[[Outage], Session], outage: Outage) -> Run | None:
    """Gives a run to a server that goes away in the middle of it; None where the client gave up."""
    workload = site.workload("--steps 2", resources=SMALL)
    try:
        return launch.start(session(outage), workload, site.target)
    except Refusal as refusal:
        if refusal.exit_code != UNREACHABLE:
            raise
        return None


@pytest.mark.slow
def test_seconds_are_waited_for(site: KubernetesSite) -> None:
    """The clients here wait as long as a busy machine takes to start the server again, which is not what is tested."""
    living = site.start("--steps 20 --pause 0.5", resources=SMALL)
    site.wait_step(living, 1)
    outage = Outage(site.lab, SHORT_S)

    def patient(outage: Outage) -> Session:
        strikes = at_request(2, outage.begin)
        return kubernetes_session(site.home, strikes, END_S, Patience(come_back_s=END_S))

    try:
        with ThreadPoolExecutor(3) as pool:
            given = pool.submit(start_in_outage, site, patient, outage)
            assert outage.begun.wait(END_S)
            sessions = [kubernetes_session(site.home, budget_s=END_S) for _ in range(2)]
            followed = pool.submit(launch.find(sessions[0], living.id).wait, END_S)
            seen = pool.submit(launch.recent, sessions[1])
            assert {record.id: record.state for record in seen.result()}[living.id] in ("running", "succeeded")
            assert (followed.result().state, followed.result().attempts) == ("succeeded", 1)
            run = given.result()
        assert run is not None
        ended_once(site, site.adopt(run.id), 2)
    finally:
        outage.wait()


@pytest.mark.nightly
def test_what_takes_longer_is_said_and_made_up_for(site: KubernetesSite, tmp_path: Path) -> None:
    """As users meet it: their clients' own patience, of a minute for a submission and of seconds for all else."""
    client = Client(tmp_path)
    living = site.start("--steps 300 --pause 0.5", resources=SMALL)
    site.wait_step(living, 1)
    outage = Outage(site.lab, LONG_S)

    def usual(outage: Outage) -> Session:
        return kubernetes_session(site.home, at_request(2, outage.begin))

    try:
        with ThreadPoolExecutor(3) as pool:
            given = pool.submit(start_in_outage, site, usual, outage)
            assert outage.begun.wait(END_S)
            followed = pool.submit(says, client, f"wait {living.id}", 3)
            seen = pool.submit(says, client, "ps", 0)
            assert "not answered since" in seen.result()
            assert f"{site.target} has not answered" in followed.result()
            assert given.result() is None, "the server was away for longer than a submission waits"
        half_made = site.adopt(site.home.resolve("last"))
    finally:
        outage.wait()
    ended_once(site, half_made, 2)
    record = living.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), living.explain()
