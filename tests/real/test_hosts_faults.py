"""Bring-up on bad days: killed in every stage, a host that goes off in the middle, a controller that dies.

Two hosts, as installing packages takes nearly all the time: a controller, and a node that gets its backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podwright.bringup.plan.stages import STAGES
from tests.real.clients import Client, until
from tests.real.hosts_bench import EXAMPLE, ON_HOSTS, Bench, is_installing, killed_up
from tests.real.labs import aloud, hosts_lab

# The first mark of a kind counts.
pytestmark = [pytest.mark.timeout(3600, func_only=True), *ON_HOSTS, pytest.mark.nightly]
HOSTS = ["n1", "n2"]
FEWER = EXAMPLE.read_text().replace("n[2-4]", "n2")


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Bare hosts: nothing is brought up yet."""
    with hosts_lab(say=aloud(pytestconfig), nodes=len(HOSTS)) as lab:
        folder = tmp_path_factory.mktemp("faults")
        file = folder / "pod.yaml"
        file.write_text(FEWER)
        yield Bench(lab, Client(folder, lab.pod_file), folder, file)


def outputs(bench: Bench) -> set[Path]:
    """Gives what Ansible told, a file for each time that it was run."""
    return set((bench.home / "bringup").glob("*/runner/artifacts/*/stdout"))


def is_at_work(bench: Bench, stage: str, before: set[Path]) -> bool:
    """Whether a bring-up that was started after others is in the middle of a stage, by what Ansible told.

    Packages were fetched and are being installed, or where a stage has none to install, its first files were written.
    """
    lines: list[str] = []
    for file in outputs(bench) - before:
        lines += file.read_text(errors="replace").splitlines()
    done = [line for line in lines if '"event": "runner_on_ok"' in line and f'"play": "{stage}.' in line]
    return any('"task": "Package downloads"' in line or '"changed": true' in line for line in done)


def test_up_is_killed_in_every_stage_and_the_next_one_completes_it(bench: Bench) -> None:
    """On hosts that have nothing: what one `up` did the next one only looks at; all take little longer than one."""
    for stage in [name for name in STAGES if name in ("base", "mirror", "registry", "slurm", "monitoring")]:
        killed_up(bench, partial(is_at_work, bench, stage, outputs(bench)))
    document = bench.up()
    assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
    assert [bench.on(host, "dpkg --audit") for host in HOSTS] == [""] * len(HOSTS)
    assert {host: entry["state"] for host, entry in bench.status().items()} == dict.fromkeys(HOSTS, "ok")


def test_a_host_that_goes_off_while_it_installs_is_named_and_completed_later(bench: Bench) -> None:
    bench.lab.wipe("n2")
    bench.lab.heal("n2")
    bench.client.ask("pod", "add", str(bench.lab.pod_file))
    killed_up(bench, partial(is_installing, bench, "n2"))
    bench.lab.kill_node("n2")
    said = bench.failing("up")
    assert "n2: base, look: " in said
    assert "is it on, and does ssh get there?" in said
    bench.lab.heal("n2")
    document = bench.up()
    assert not any(counts["failed"] or counts["unreachable"] for counts in document["hosts"].values())
    assert bench.on("n2", "dpkg --audit") == ""


def test_the_second_controller_answers_when_the_first_is_killed(bench: Bench) -> None:
    text = FEWER.replace("roles: {controller: n1,", "roles: {controller: n1, backup: n2,")
    bench.file = bench.folder / "backup.yaml"
    sooner = "      SlurmctldTimeout: 10\n      SlurmdParameters:"
    bench.file.write_text(text.replace("      SlurmdParameters:", sooner))
    bench.up()
    until(lambda: "backup) at n2 is UP" in bench.on("n1", "scontrol ping"), "the backup waits")
    bench.on("n1", "systemctl kill --kill-whom=main --signal=KILL slurmctld")
    until(lambda: bench.lab.run("n2", "srun -N1 --immediate=30 hostname").returncode == 0, "the backup starts a job")
