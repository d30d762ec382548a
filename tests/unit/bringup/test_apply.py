"""What Ansible's events mean for stages and hosts."""

from __future__ import annotations

from typing import Any

from podwright.bringup.apply import ApplyProgress, Fault, HostCount, reason_of


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def test_stages_hosts_and_faults_are_told() -> None:
    progress = ApplyProgress({"n1": HostCount(), "n2": HostCount()})
    events = [
        event("playbook_on_play_start", play="base.base"),
        event("playbook_on_task_start", play="base.base", task="Files"),
        event("runner_on_ok", host="n1", task="Files", res={"changed": True}),
        event("runner_on_ok", host="n2", task="Files", res={"changed": False}),
        event("playbook_on_play_start", play="slurm.database"),
        event("playbook_on_play_start", play="slurm.nodes"),
        event("runner_on_failed", host="n2", task="Packages", res={"msg": "Could not get lock\nheld by 77"}),
        event("runner_on_unreachable", host="n1", task="Look", res={"msg": "No route to host"}),
    ]
    for at, each in enumerate(events):
        progress.take(each, float(at))
    progress.close(10.0)
    assert [(run.name, run.state, run.changed) for run in progress.stages] == [
        ("base", "done", 1),
        ("slurm", "failed", 0),
    ]
    assert [run.took_s for run in progress.stages] == [4.0, 6.0]
    assert progress.hosts == {"n1": HostCount(1, 1, 0, 1), "n2": HostCount(0, 1, 1, 0)}
    assert progress.faults == [
        Fault("n2", "slurm", "packages", "held by 77"),
        Fault("n1", "slurm", "look", "No route to host"),
    ]


def test_the_reason_is_that_of_the_item_that_failed() -> None:
    items = [{"failed": False, "msg": "fine"}, {"failed": True, "stderr": "slurmd does not run: no such node\n"}]
    assert reason_of({"msg": "One or more items failed", "results": items}) == "slurmd does not run: no such node"
    assert reason_of({}) == "no reason was given"
