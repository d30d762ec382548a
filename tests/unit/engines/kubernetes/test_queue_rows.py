"""What waits in a cluster and why, from objects as a look at it brings them; and what its nodes have."""

from __future__ import annotations

from typing import Any

from podwright.engines.kubernetes.queue import ClusterSnapshot, SubmittedObject, node_rows, pod_gpus, queue_rows
from podwright.engines.usage import NodeUse, QueuedJob

QUOTA = (
    'Error creating: pods "toy-2222-0-x" is forbidden: exceeded quota: gpus, requested: '
    "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=60, limited: requests.nvidia.com/gpu=64"
)
UNSCHEDULABLE = "0/140 nodes are available: 140 Insufficient nvidia.com/gpu."


def metadata(name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    row = {"name": name, "uid": f"uid-{name}", "namespace": "lab", **more}
    if owner:
        row["ownerReferences"] = [{"uid": f"uid-{owner}", "kind": more.pop("of", "Job"), "controller": True}]
    return row


def pod_spec(gpus: int, **more: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"containers": [{"name": "pilot", "resources": {"limits": limits}}], **more}


def job(name: str, gpus: int = 8, nodes: int = 1, owner: str = "", **more: Any) -> SubmittedObject:
    spec = {"parallelism": nodes, "template": {"spec": pod_spec(gpus)}, **more.pop("spec", {})}
    return SubmittedObject("Job", {"metadata": metadata(name, owner, **more), "spec": spec, "status": {}})


def pod(name: str, owner: str, phase: str, gpus: int = 8, node: str = "", **status: Any) -> dict[str, Any]:
    place = {"nodeName": node} if node else {}
    return {
        "metadata": metadata(name, owner),
        "spec": pod_spec(gpus, activeDeadlineSeconds=60, **place),
        "status": {"phase": phase, **status},
    }


def unplaced(name: str, owner: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
    return pod(name, owner, "Pending", conditions=[condition])


def placed(name: str, owner: str, node: str, gpus: int = 8) -> dict[str, Any]:
    return pod(name, owner, "Running", gpus, node, startTime="2026-11-16T08:00:00Z")


def workload(owner: str, **messages: str) -> dict[str, Any]:
    rows = [{"type": name, "status": "False", "message": text} for name, text in messages.items()]
    return {
        "metadata": metadata(f"w-{owner}", owner),
        "spec": {"queueName": "research"},
        "status": {"conditions": rows},
    }


def reasons(snapshot: ClusterSnapshot) -> dict[str, str]:
    return {row.name: row.why for row in queue_rows(snapshot) if row.state == "waiting"}


def test_each_of_the_four_reasons_is_told() -> None:
    snapshot = ClusterSnapshot(
        jobs=(
            job("big", nodes=2),
            job("over"),
            job("queued", labels={"kueue.x-k8s.io/queue-name": "research"}, spec={"suspend": True}),
            job("held", annotations={"podwright.dev/held": "first-2222"}, spec={"suspend": True}),
            job("stopped", spec={"suspend": True}),
        ),
        pods=(unplaced("big-0", "big"), unplaced("big-1", "big")),
        events=({"involvedObject": {"uid": "uid-over"}, "reason": "FailedCreate", "message": QUOTA},),
        workloads=(workload("queued", QuotaReserved="insufficient unused quota for nvidia.com/gpu, 4 more needed"),),
    )
    assert reasons(snapshot) == {
        "big": "waits: 140 nodes, none with enough free GPUs",
        "over": "waits: the quota gpus is used up (asked requests.nvidia.com/gpu=8, used requests.nvidia.com/gpu=60, "
        "limit requests.nvidia.com/gpu=64)",
        "queued": "waits in the queue research: insufficient unused quota for nvidia.com/gpu, 4 more needed",
        "held": "waits for first-2222 to succeed",
        "stopped": "is suspended",
    }


def test_a_check_of_the_site_is_the_reason_once_kueue_has_kept_the_quota() -> None:
    row = workload("queued", Admitted="waits for the check provisioning")
    row["status"]["conditions"].append({"type": "QuotaReserved", "status": "True", "message": "reserved"})
    snapshot = ClusterSnapshot(jobs=(job("queued", spec={"suspend": True}),), workloads=(row,))
    assert reasons(snapshot) == {"queued": "waits in the queue research: waits for the check provisioning"}


def test_what_runs_says_where_since_when_and_until_when() -> None:
    pods = (placed("a-0", "a", "dgx002"), placed("a-1", "a", "dgx001"))
    (row,) = queue_rows(ClusterSnapshot(jobs=(job("a", nodes=2),), pods=pods))
    began = 1794816000.0
    assert row == QueuedJob(
        *("a", "a", "lab", "running", "", 2, 16), hosts="dgx[001-002]", starts_at=began, ends_at=began + 60
    )


def test_a_set_is_one_row_with_what_its_job_says() -> None:
    inner = job("set-node-0", owner="set")
    replicated = [{"name": "node", "replicas": 1, "template": {"spec": inner.item["spec"]}}]
    whole = SubmittedObject("JobSet", {"metadata": metadata("set"), "spec": {"replicatedJobs": replicated}})
    events = ({"involvedObject": {"uid": "uid-set-node-0"}, "reason": "FailedCreate", "message": QUOTA},)
    (row,) = queue_rows(ClusterSnapshot(jobs=(whole, inner), events=events))
    assert (row.name, row.nodes, row.gpus) == ("set", 1, 8)
    assert row.why.startswith("waits: the quota gpus is used up")


def test_an_mpi_job_counts_its_workers_and_not_its_launcher() -> None:
    workers = {"replicas": 2, "template": {"spec": pod_spec(4)}}
    item = {"metadata": metadata("mpi"), "spec": {"mpiReplicaSpecs": {"Worker": workers}}}
    launcher = placed("mpi-launcher-x", "mpi-launcher", "dgx009", gpus=0)
    launcher["metadata"]["labels"] = {"training.kubeflow.org/job-role": "launcher"}
    made = job("mpi-launcher", gpus=0, owner="mpi")
    pods = (launcher, placed("mpi-worker-0", "mpi", "dgx001", 4), placed("mpi-worker-1", "mpi", "dgx002", 4))
    (row,) = queue_rows(ClusterSnapshot(jobs=(SubmittedObject("MPIJob", item), made), pods=pods))
    assert (row.name, row.nodes, row.gpus, row.hosts) == ("mpi", 2, 8, "dgx[001-002]")


def test_a_training_job_says_itself_what_it_needs() -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "2"}}}
    item = {"metadata": metadata("train"), "spec": {"trainer": trainer, "suspend": True}}
    (row,) = queue_rows(ClusterSnapshot(jobs=(SubmittedObject("TrainJob", item),)))
    assert (row.nodes, row.gpus, row.why) == (3, 6, "is suspended")


def test_points_that_wait_for_the_same_reason_are_one_row() -> None:
    def point(number: int, **more: Any) -> SubmittedObject:
        labels = {"podwright.dev/run": f"sweep-2222-{number}", "podwright.dev/job": "sweep-2222"}
        return job(f"sweep-2222-{number}", gpus=1, labels=labels, **more)

    suspended = {"suspend": True}
    jobs = (point(1), point(2, spec=suspended), point(3, spec=suspended), point(4, spec=suspended))
    rows = queue_rows(ClusterSnapshot(jobs=jobs, pods=(placed("p", "sweep-2222-1", "dgx001", 1),)))
    assert [(row.name, row.state, row.tasks) for row in rows] == [
        ("sweep-2222-1", "running", 1),
        ("sweep-2222", "waiting", 3),
    ]


def test_others_are_shown_only_if_they_hold_gpus_or_wait_for_them() -> None:
    labels = {"podwright.dev/run": "toy-2222", "podwright.dev/job": "toy-2222"}
    snapshot = ClusterSnapshot(
        jobs=(job("backup", gpus=0), job("toy-2222", gpus=0, labels=labels)),
        pods=(placed("notebook", "", "dgx001", 1), placed("web", "", "dgx001", 0), unplaced("other", "")),
    )
    rows = queue_rows(snapshot)
    assert [(row.name, row.state, row.gpus) for row in rows] == [
        ("toy-2222", "waiting", 0),
        ("notebook", "running", 1),
        ("other", "waiting", 8),
    ]


def test_a_job_that_is_over_is_left_out() -> None:
    over = job("over")
    over.item["status"]["conditions"] = [{"type": "Complete", "status": "True"}]  # type: ignore[index]
    assert queue_rows(ClusterSnapshot(jobs=(over,))) == []


def node(name: str, gpus: int = 8, ready: str = "True", **spec: Any) -> dict[str, Any]:
    offered = {"cpu": "8", "nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "8"}
    conditions = [{"type": "Ready", "status": ready, "message": "kubelet stopped posting node status"}]
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100"} if gpus == 8 else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": offered, "conditions": conditions},
    }


def test_nodes_say_how_many_of_their_gpus_are_used_and_why_they_are_away() -> None:
    snapshot = ClusterSnapshot(
        nodes=(
            node("full"),
            node("half"),
            node("empty"),
            node("gone", ready="Unknown"),
            node("closed", unschedulable=True),
            node("plain", gpus=0),
            node("other", gpus=4),
            node("control", gpus=0, taints=[{"key": "node-role.kubernetes.io/control-plane"}]),
        ),
        pods=(placed("a", "j", "full"), placed("b", "j", "half", 4), placed("c", "j", "plain", 0)),
    )
    assert node_rows(snapshot) == [
        NodeUse("NVIDIA-A100", "full", "used", 8, 8),
        NodeUse("NVIDIA-A100", "half", "part", 8, 4),
        NodeUse("NVIDIA-A100", "empty", "free", 8, 0),
        NodeUse("NVIDIA-A100", "gone", "away", 8, 0, "kubelet stopped posting node status"),
        NodeUse("NVIDIA-A100", "closed", "away", 8, 0, "takes no new work (cordoned)"),
        NodeUse("cpu", "plain", "part", 0, 0),
        NodeUse("gpu", "other", "free", 4, 0),
    ]


def test_what_belongs_to_every_node_does_not_make_it_busy() -> None:
    plugin = placed("device-plugin", "", "plain", 0)
    plugin["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "d", "controller": True}]
    (row,) = node_rows(ClusterSnapshot(nodes=(node("plain", gpus=0),), pods=(plugin,)))
    assert row.state == "free"


def test_slices_and_shares_are_counted_as_the_cluster_gives_them_away() -> None:
    slices = {"limits": {"nvidia.com/mig-1g.10gb": 2, "cpu": 4}}
    shares = {"limits": {"nvidia.com/gpu.shared": 1, "amd.example/nvidia.com/mig-x": 7}}
    assert pod_gpus({"containers": [{"resources": slices}, {"resources": shares}]}) == 3
    before = [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]
    assert pod_gpus({"containers": [{}], "initContainers": before}) == 4
