"""Nodes go out and come back in batches; schedulers' answers are those that their commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.playbook import ApplyProgress
from podwright.bringup.apply.rolling import KubernetesDrain, Roll, SlurmDrain, batches, drain_of, split
from podwright.bringup.plan.site import site_of
from podwright.bringup.progress import ignore
from podwright.spec import Refusal, load_pod
from tests.paths import CASES


def test_batches_keep_the_order() -> None:
    assert list(batches(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(batches([], 2)) == []


def test_what_runs_no_jobs_comes_first() -> None:
    site = site_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    assert split(site, ["g1", "m1", "g2"]) == (["m1"], ["g1", "g2"])
    cluster = site_of(load_pod(CASES / "bringup" / "kubeadm" / "pod.yaml"))
    assert split(cluster, ["g2", "m1", "m2"]) == (["m1", "m2"], ["g2"])


class FakeScheduler:
    """Answers as sinfo or kubectl do: jobs on a node end one question after another."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, line: str) -> str:
        self.asked.append(line)
        if line.startswith(("sinfo", "kubectl get")):
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ""


def test_a_node_is_empty_before_it_is_changed() -> None:
    slurm = FakeScheduler("n2 draining\nn3 drained\n", "n2 drained\nn3 drained\n")
    drain = SlurmDrain(slurm, every_s=0)
    drain.drain(["n2", "n3"])
    drain.resume(["n2", "n3"])
    updates = [line for line in slurm.asked if line.startswith("scontrol")]
    assert updates == [
        "scontrol update NodeName='n[2-3]' State=DRAIN Reason='podwright: rolling change'",
        "scontrol update NodeName='n[2-3]' State=RESUME",
    ]
    assert len(slurm.asked) == 4


def test_jobs_that_do_not_end_are_named() -> None:
    with pytest.raises(Refusal, match="jobs on n2 did not end within 0 s"):
        SlurmDrain(FakeScheduler("n2 draining\n"), patience_s=0, every_s=0).drain(["n2"])


def test_kubernetes_jobs_end_and_services_move() -> None:
    """What is started again for ever, or runs elsewhere, is not waited for."""
    cluster = FakeScheduler("g1 Always\ng1 Never\ng2 Never\n<none> Never\n", "g1 Always\ng2 Never\n")
    drain = KubernetesDrain(cluster, patience_s=60, every_s=0)
    drain.drain(["g1"])
    drain.resume(["g1"])
    assert [line for line in cluster.asked if not line.startswith("kubectl get")] == [
        "kubectl cordon g1",
        "kubectl drain --ignore-daemonsets --delete-emptydir-data --timeout=60s g1",
        "kubectl uncordon g1",
    ]
    assert len(cluster.asked) == 5


def test_each_scheduler_drains_its_own_nodes(tmp_path: Path) -> None:
    """A pod with both: a node of the one is none of the other's business."""
    text = (CASES / "bringup" / "kubeadm" / "pod.yaml").read_text()
    both = "  - {kind: slurm, hosts: g1}\n  - {kind: kubernetes, hosts: g2}\n"
    path = tmp_path / "pod.yaml"
    path.write_text(text.replace('  - {kind: kubernetes, hosts: "g[1-2]"}\n', both))
    asked: list[tuple[str, str]] = []

    def shell(host: str, line: str) -> str:
        asked.append((host, line))
        return "g1 drained\n" if "sinfo" in line else ""

    drain = drain_of(site_of(load_pod(path)), shell)
    drain.drain(["g1"])
    assert all("kubectl" not in line for _, line in asked)
    drain.drain(["g2"])
    admin = "export KUBECONFIG=/etc/kubernetes/admin.conf; "
    assert ("m1", f"{admin}kubectl cordon g2") in asked
    drain.resume(["g1", "g2"])
    assert asked[-2:] == [("m1", "scontrol update NodeName=g1 State=RESUME"), ("m1", f"{admin}kubectl uncordon g2")]


def test_what_a_user_has_in_the_way_ends_no_roll() -> None:
    scheduler = FakeScheduler("n2 drained\nn3 drained\n")

    def apply(hosts: list[str]) -> ApplyProgress:
        return ApplyProgress({}, faults=[Fault(hosts[0], "base", "folders of users", "a link", stops=False)])

    progress = Roll(SlurmDrain(scheduler, every_s=0), apply, lambda hosts: [], ignore).through(["n2", "n3"], 1)
    assert [fault.host for fault in progress.faults] == ["n2", "n3"]
    assert [line.split()[2:] for line in scheduler.asked if "RESUME" in line] == [
        ["NodeName=n2", "State=RESUME"],
        ["NodeName=n3", "State=RESUME"],
    ]
