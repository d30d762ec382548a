"""Bring-up on bad days: killed in every stage, a host that goes off in the middle, a controller that dies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podwright.bringup.stages import STAGES
from tests.real.clients import Client, until
from tests.real.hosts_bench import EXAMPLE, ON_HOSTS, Bench, is_installing, killed_up
from tests.real.labs import aloud, hosts_lab

pytestmark = [*ON_HOSTS, pytest.mark.nightly, pytest.mark.timeout(3600, func_only=True)]
HOSTS = ["n1", "n2", "n3", "n4"]


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Bare hosts: nothing is brought up yet."""
    with hosts_lab(say=aloud(pytestconfig), nodes=4) as lab:
        folder = tmp_path_factory.mktemp("faults")
        yield Bench(lab, Client(folder, lab.pod_file), folder)


def is_in(bench: Bench, stage: str, before: set[Path]) -> bool:
    """Whether a bring-up that was started after others is in a stage, by what Ansible told."""
    files = set((bench.home / "bringup").glob("*/runner/artifacts/*/stdout")) - before
    return any(f'"play": "{stage}.' in file.read_text(errors="replace") for file in files)


def test_up_is_killed_in_every_stage_and_the_next_one_completes_it(bench: Bench) -> None:
    """Stages that the pod has, one after the other, on hosts that have nothing."""
    for stage in [name for name in STAGES if name in ("base", "mirror", "registry", "slurm", "monitoring")]:
        before = set((bench.home / "bringup").glob("*/runner/artifacts/*/stdout"))
        killed_up(bench, partial(is_in, bench, stage, before))
    document = bench.up()
    assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
    assert [bench.on(host, "dpkg --audit") for host in HOSTS] == [""] * 4
    assert {host: entry["state"] for host, entry in bench.status().items()} == dict.fromkeys(HOSTS, "ok")


def test_a_host_that_goes_off_while_it_installs_is_named_and_completed_later(bench: Bench) -> None:
    bench.lab.wipe("n4")
    bench.lab.heal("n4")
    bench.client.ask("pod", "add", str(bench.lab.pod_file))
    killed_up(bench, partial(is_installing, bench, "n4"))
    bench.lab.kill_node("n4")
    said = bench.failing("up")
    assert "n4: base, look: " in said
    assert "is it on, and does ssh get there?" in said
    bench.lab.heal("n4")
    document = bench.up()
    assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
    assert bench.on("n4", "dpkg --audit") == ""


def test_the_second_controller_answers_when_the_first_is_killed(bench: Bench) -> None:
    text = EXAMPLE.read_text().replace("roles: {controller: n1,", "roles: {controller: n1, backup: n2,")
    bench.file = bench.folder / "backup.yaml"
    sooner = "      SlurmctldTimeout: 10\n      SlurmdParameters:"
    bench.file.write_text(text.replace("      SlurmdParameters:", sooner))
    bench.up()
    until(lambda: "backup) at n2 is UP" in bench.on("n1", "scontrol ping"), "the backup waits")
    bench.on("n1", "systemctl kill --signal=KILL slurmctld")
    until(lambda: bench.lab.run("n3", "srun -N3 --immediate=30 hostname").returncode == 0, "the backup starts a job")
