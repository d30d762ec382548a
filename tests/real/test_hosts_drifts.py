"""A hundred changes of real hosts, drawn by a seed from what the plan writes or its checks ask: all are found.

PODWRIGHT_SEED repeats a night.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from podwright.bringup.plan.hosts import plan
from podwright.spec import load_pod
from tests.fixtures.drifts import drawn, is_told
from tests.real.clients import Client
from tests.real.hosts_bench import EXAMPLE, ON_HOSTS, Bench
from tests.real.labs import aloud, hosts_lab

# The first mark of a kind counts.
pytestmark = [pytest.mark.timeout(3600, func_only=True), *ON_HOSTS, pytest.mark.nightly]
HOSTS = ["n1", "n2"]
FEWER = EXAMPLE.read_text().replace("n[2-4]", "n2")
STRANGERS = {
    "user eve": "useradd --create-home --shell /bin/bash eve",
    "unit /etc/systemd/system/eve.service": "printf '[Service]\\nExecStart=true\\n' >/etc/systemd/system/eve.service",
    "sudo rule /etc/sudoers.d/eve": "umask 337; echo 'eve ALL=(ALL) ALL' >/etc/sudoers.d/eve",
}


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with hosts_lab(say=aloud(pytestconfig), nodes=len(HOSTS)) as lab:
        folder = tmp_path_factory.mktemp("drifts")
        file = folder / "pod.yaml"
        file.write_text(FEWER)
        bench = Bench(lab, Client(folder, lab.pod_file), folder, file)
        bench.first = bench.up()
        yield bench


def test_what_works_is_as_planned_after_up(bench: Bench) -> None:
    assert {host: entry["drift"] for host, entry in bench.status().items()} == {host: [] for host in HOSTS}


def test_what_is_not_ours_is_told_and_stays(bench: Bench) -> None:
    for line in STRANGERS.values():
        bench.on("n2", line)
    entry = bench.status()["n2"]
    assert (entry["state"], sorted(set(STRANGERS) - set(entry["foreign"]))) == ("ok", [])
    bench.up()
    assert sorted(set(STRANGERS) - set(bench.status()["n2"]["foreign"])) == []


def test_a_hundred_drifts_are_found_at_once_and_up_mends_what_is_ours(bench: Bench) -> None:
    seed = int(os.environ.get("PODWRIGHT_SEED") or random.randrange(10**6))
    plans = plan(load_pod(bench.home / "pods" / "lab-hosts.yaml"))
    drifts = drawn(plans, 100, seed)
    for host in HOSTS:
        lines = [drift.line for drift in drifts if drift.host == host]
        bench.on(host, "\n".join(f"{line} || echo {index} >&2" for index, line in enumerate(lines)))
    states = bench.status(code=1)
    whats = {host: [each["what"] for each in entry["drift"]] for host, entry in states.items()}
    missed = [drift for drift in drifts if not is_told(drift, whats[drift.host])]
    assert [(seed, drift.kind, drift.host, drift.line) for drift in missed] == []
    assert len(drifts) == 100
    for host in HOSTS:
        bench.on(host, "rm -f /etc/ssh/sshd_config.d/00-a.conf")
    bench.up()
    left = {host: [each["what"] for each in entry["drift"]] for host, entry in bench.status().items()}
    assert (seed, left) == (seed, {host: [] for host in HOSTS})
