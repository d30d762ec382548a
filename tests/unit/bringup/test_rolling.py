"""Nodes go out and come back in batches; schedulers' answers are those that their commands print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from podwright.bringup.apply.changes import ChangeId, begin
from podwright.bringup.apply.faults import Fault
from podwright.bringup.apply.playbook import ApplyProgress
from podwright.bringup.apply.rolling import DrainRequest, KubernetesDrain, Roll, SlurmDrain, batches, drain_of, split
from podwright.bringup.plan.site import site_of
from podwright.bringup.progress import BringupProgress
from podwright.spec import Refusal, load_pod
from podwright.spec.hostlist import expand_hosts
from tests.paths import CASES

CHANGE = ChangeId("c2", frozenset({"c1"}))


def test_batches_keep_the_order() -> None:
    assert list(batches(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(batches([], 2)) == []


def test_what_runs_no_jobs_comes_first() -> None:
    site = site_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    assert split(site, ["g1", "m1", "g2"]) == (["m1"], ["g1", "g2"])
    cluster = site_of(load_pod(CASES / "bringup" / "kubeadm" / "pod.yaml"))
    assert split(cluster, ["g2", "m1", "m2"]) == (["m1", "m2"], ["g2"])


class FakeSlurm:
    """Keeps nodes with state and reason, and answers as sinfo does; jobs end from one question to the next."""

    def __init__(self, **nodes: str) -> None:
        self.nodes = {name: tuple(text.split("|")) for name, text in nodes.items()}
        self.asked: list[str] = []

    def __call__(self, line: str) -> str:
        self.asked.append(line)
        words = shlex.split(line)
        if words[0] == "squeue":
            return ""
        if words[0] == "scontrol":
            options = dict(word.split("=", 1) for word in words[2:])
            state = {"RESUME": "idle", "DRAIN": "draining"}[options["State"]]
            for name in expand_hosts(options["NodeName"]):
                self.nodes[name] = (state, options.get("Reason", "none"))
            return ""
        (asked,) = [word.partition("=")[2] for word in words if word.startswith("--nodes=")]
        nodes = {name: self.nodes[name] for name in expand_hosts(asked)}
        if "%E" in line:
            return "".join(f"{name}|{state}|{reason}\n" for name, (state, reason) in nodes.items())
        said = "".join(f"{name} {state}\n" for name, (state, _) in nodes.items())
        ended = {"draining": "drained"}
        self.nodes = {name: (ended.get(state, state), reason) for name, (state, reason) in self.nodes.items()}
        return said

    def updates(self) -> list[str]:
        return [line.removeprefix("scontrol update ") for line in self.asked if line.startswith("scontrol")]


def test_a_node_is_empty_before_it_is_changed() -> None:
    slurm = FakeSlurm(n2="allocated|none", n3="idle|none")
    drain = SlurmDrain(slurm, CHANGE, every_s=0)
    drain.drain(["n2", "n3"])
    assert {state for state, _ in slurm.nodes.values()} == {"drained"}
    assert drain.resume(["n2", "n3"]) == {}
    drained = "NodeName='n[2-3]' State=DRAIN Reason='podwright: rolling change c2'"
    assert slurm.updates() == [drained, "NodeName='n[2-3]' State=RESUME"]


def test_a_node_that_somebody_else_drained_keeps_its_reason_and_stays_drained() -> None:
    """Before the change by a person, and while it went on by the health check."""
    slurm = FakeSlurm(n2="idle|none", n3="drained|bad DIMM, do not use", n4="idle|none")
    drain = SlurmDrain(slurm, CHANGE, every_s=0)
    drain.drain(["n2", "n3", "n4"])
    slurm.nodes["n4"] = ("drained", "podwright: GPU 1 is gone: there is no /dev/nvidia1")
    assert drain.resume(["n2", "n3", "n4"]) == {
        "n3": "bad DIMM, do not use",
        "n4": "podwright: GPU 1 is gone: there is no /dev/nvidia1",
    }
    assert slurm.nodes["n2"] == ("idle", "none")
    assert slurm.nodes["n3"] == ("drained", "bad DIMM, do not use")
    assert slurm.updates()[-1] == "NodeName=n2 State=RESUME"


def test_what_a_roll_that_was_killed_had_drained_is_taken_back_by_the_next() -> None:
    slurm = FakeSlurm(n2="drained|podwright: rolling change c1")
    drain = SlurmDrain(slurm, CHANGE, every_s=0)
    drain.drain(["n2"])
    assert drain.resume(["n2"]) == {}
    assert slurm.nodes["n2"] == ("idle", "none")


def test_the_roll_of_another_operator_is_somebody_elses() -> None:
    theirs = "podwright: rolling change x9"
    slurm = FakeSlurm(n2=f"drained|{theirs}")
    drain = SlurmDrain(slurm, CHANGE, every_s=0)
    drain.drain(["n2"])
    assert (drain.resume(["n2"]), slurm.updates()) == ({"n2": theirs}, [])


def test_a_change_is_noted_before_anything_is_drained_and_known_to_the_next(tmp_path: Path) -> None:
    journal = tmp_path / "drains.jsonl"
    assert begin(journal, 1.0, lambda: "a1") == ChangeId("a1")
    assert begin(journal, 2.0, lambda: "b2") == ChangeId("b2", frozenset({"a1"}))


def test_jobs_that_are_waited_for_are_named_once() -> None:
    slurm, told, left = FakeSlurm(n2="idle|none"), list[str](), ["12|ada|3:20:00", "12|ada|3:19:55", "13|bob|0:10"]

    def shell(line: str) -> str:
        if line.startswith("squeue"):
            return f"{left.pop(0)}\n"
        if "%N %T" in line:
            return "n2 draining\n" if left else "n2 drained\n"
        return slurm(line)

    SlurmDrain(shell, CHANGE, told.append, every_s=0).drain(["n2"])
    assert told == ["n2: job 12 of ada, 3:20:00 left", "n2: job 13 of bob, 0:10 left"]


def test_jobs_that_do_not_end_are_named() -> None:
    with pytest.raises(Refusal, match="jobs on n2 did not end within 0 s"):
        SlurmDrain(FakeSlurm(n2="allocated|none"), CHANGE, patience_s=0, every_s=0).drain(["n2"])


class FakeCluster:
    """Answers as kubectl does, of nodes that are closed or not and whose mark they have, and of what runs there."""

    def __init__(self, nodes: dict[str, str], *running: str) -> None:
        self.nodes, self.running, self.asked = nodes, list(running), list[str]()

    def __call__(self, line: str) -> str:
        self.asked.append(line)
        if line.startswith("kubectl get nodes"):
            return "".join(f"{name} {self.nodes[name]}\n" for name in shlex.split(line)[5:])
        if line.startswith("kubectl get pods"):
            return self.running.pop(0) if len(self.running) > 1 else self.running[0]
        return ""

    def done(self) -> list[str]:
        return [line.removeprefix("kubectl ") for line in self.asked if not line.startswith("kubectl get")]


def test_kubernetes_jobs_end_and_services_move() -> None:
    """What is started again for ever, or runs elsewhere, is not waited for."""
    cluster = FakeCluster(
        {"g1": "<none> <none>"}, "g1 Always\ng1 Never\ng2 Never\n<none> Never\n", "g1 Always\ng2 Never\n"
    )
    drain = KubernetesDrain(cluster, CHANGE, patience_s=60, every_s=0)
    drain.drain(["g1"])
    cluster.nodes["g1"] = "true c2"
    assert drain.resume(["g1"]) == {}
    assert cluster.done() == [
        "annotate --overwrite node g1 podwright.dev/drained-by=c2",
        "cordon g1",
        "drain --ignore-daemonsets --delete-emptydir-data --timeout=60s g1",
        "uncordon g1",
        "annotate node g1 podwright.dev/drained-by-",
    ]
    assert sum(line.startswith("kubectl get pods") for line in cluster.asked) == 3


def test_a_node_that_somebody_else_closed_stays_closed() -> None:
    cluster = FakeCluster({"g1": "true <none>"}, "")
    drain = KubernetesDrain(cluster, CHANGE, patience_s=60, every_s=0)
    drain.drain(["g1"])
    assert drain.resume(["g1"]) == {"g1": "cordoned"}
    assert drain.closed(["g1"]) == {"g1": "cordoned"}
    assert cluster.done() == ["drain --ignore-daemonsets --delete-emptydir-data --timeout=60s g1"]


def test_each_scheduler_drains_its_own_nodes(tmp_path: Path) -> None:
    """A pod with both: a node of the one is none of the other's business."""
    text = (CASES / "bringup" / "kubeadm" / "pod.yaml").read_text()
    both = "  - {kind: slurm, hosts: g1}\n  - {kind: kubernetes, hosts: g2}\n"
    path = tmp_path / "pod.yaml"
    path.write_text(text.replace('  - {kind: kubernetes, hosts: "g[1-2]"}\n', both))
    asked: list[tuple[str, str]] = []

    def shell(host: str, line: str) -> str:
        asked.append((host, line))
        if "get nodes" in line:
            return "g2 true c2\n" if any("cordon g2" in each for _, each in asked) else "g2 <none> <none>\n"
        return "" if "%E" in line else "g1 drained\n" * ("sinfo" in line)

    drain = drain_of(DrainRequest(site_of(load_pod(path)), shell, CHANGE))
    drain.drain(["g1"])
    assert all("kubectl" not in line for _, line in asked)
    drain.drain(["g2"])
    admin = "export KUBECONFIG=/etc/kubernetes/admin.conf; "
    assert ("m1", f"{admin}kubectl cordon g2") in asked
    drain.resume(["g1", "g2"])
    assert ("m1", "scontrol update NodeName=g1 State=RESUME") in asked
    assert asked[-2] == ("m1", f"{admin}kubectl uncordon g2")


def rolled(slurm: FakeSlurm, *faults: Fault) -> tuple[ApplyProgress, list[tuple[str, list[str]]]]:
    seen: list[BringupProgress] = []

    def apply(hosts: list[str]) -> ApplyProgress:
        return ApplyProgress({}, faults=[fault for fault in faults if fault.host in hosts])

    progress = Roll(SlurmDrain(slurm, CHANGE, every_s=0), apply, lambda hosts: [], seen.append).through(["n2", "n3"], 1)
    return progress, [(each.kind, list(each.hosts)) for each in seen]


def test_what_a_user_has_in_the_way_ends_no_roll() -> None:
    faults = [Fault(host, "base", "folders of users", "a link", stops=False) for host in ("n2", "n3")]
    slurm = FakeSlurm(n2="idle|none", n3="idle|none")
    progress, _ = rolled(slurm, *faults)
    assert [fault.host for fault in progress.faults] == ["n2", "n3"]
    assert {state for state, _ in slurm.nodes.values()} == {"idle"}


def test_a_roll_says_which_nodes_stay_drained() -> None:
    slurm = FakeSlurm(n2="drained|bad DIMM", n3="idle|none")
    _, seen = rolled(slurm)
    assert seen == [("drain", ["n2"]), ("stays", ["n2"]), ("drain", ["n3"]), ("resumed", ["n3"])]
