"""A Kubernetes cluster on this machine: what it shows a user, what may be done to it, and what it leaves behind."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.lab import kubernetes, processes
from podwright.lab.kubernetes import Lab, cgroups
from podwright.lab.kubernetes.control import running
from podwright.spec import load_pod
from tests.real.labs import kubernetes_lab

# Nightly: building the cluster's programs from source takes ten minutes on a machine that has none of them yet.
pytestmark = [pytest.mark.kubernetes, pytest.mark.nightly, pytest.mark.timeout(1800), pytest.mark.xdist_group("lab")]

WAIT_S = 90.0
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_OF_THE_POD = ("volumes", "tolerations", "nodeSelector", "topologySpreadConstraints", "subdomain")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with kubernetes_lab(nodes=2, virtual_nodes=140) as made:
        yield made


def kubectl(lab: Lab, *words: str, admin: bool = False, give: Any = None) -> str:
    """Runs kubectl the way a user would, and gives what it printed."""
    done = lab.kubectl(*words, admin=admin, give="" if give is None else json.dumps(give))
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(lab: Lab, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl(lab, "get", *words, "-o", "json"))
    return found


def apply(lab: Lab, thing: dict[str, Any], admin: bool = False) -> None:
    kubectl(lab, "apply", "--server-side", "-f", "-", admin=admin, give=thing)


def word_of(lab: Lab, kind: str, name: str, admin: bool = False) -> str:
    """Gives the word for how a job ended; empty while it has not."""
    place = ("-n", "default") if admin else ()
    said = json.loads(kubectl(lab, "get", kind, name, "-o", "json", *place, admin=admin))
    held = [one["type"] for one in said.get("status", {}).get("conditions", []) if one["status"] == "True"]
    return next((word for word in held if word in ("Complete", "Completed", "Failed", "Succeeded")), "")


def end_of(lab: Lab, kind: str, name: str, admin: bool = False) -> str:
    """Waits for the end of a job, and gives its word."""
    processes.until(lambda: bool(word_of(lab, kind, name, admin)), WAIT_S, every_s=0.3)
    return word_of(lab, kind, name, admin)


def job(name: str, image: str, command: list[str], **more: Any) -> dict[str, Any]:
    """Gives a job as a user writes it under the strictest rules."""
    container = {"name": "main", "image": image, "command": command, "securityContext": RESTRICTED}
    container |= {key: more.pop(key) for key in ("volumeMounts", "resources") if key in more}
    pod = {"restartPolicy": "Never", "containers": [container]}
    pod |= {key: more.pop(key) for key in _OF_THE_POD if key in more}
    spec = {"backoffLimit": 0, "template": {"metadata": {"labels": {"of": name}}, "spec": pod}, **more}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def apart(name: str) -> list[dict[str, Any]]:
    """Gives what puts the Kubernetes pods of a job on different nodes."""
    same = {"labelSelector": {"matchLabels": {"of": name}}, "topologyKey": "kubernetes.io/hostname"}
    return [{**same, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]


def logs(lab: Lab, name: str) -> list[str]:
    return sorted(kubectl(lab, "logs", "-l", f"of={name}", "--tail=-1").splitlines())


def test_every_node_is_ready(lab: Lab) -> None:
    states = lab.node_states()
    assert {name: states[name] for name in ("n1", "n2")} == {"n1": "Ready", "n2": "Ready"}
    assert sum(state == "Ready" for name, state in states.items() if name.startswith("dgx")) == 140


def test_nodes_offer_what_a_dgx_has(lab: Lab) -> None:
    for node in ("n2", "dgx140"):
        room = get(lab, "node", node)["status"]["allocatable"]
        assert (room["nvidia.com/gpu"], room["rdma/shared_ib0"]) == ("8", "100")
    assert get(lab, "node", "dgx021")["metadata"]["labels"]["podwright.dev/unit"] == "su2"


def test_a_container_sees_the_devices_it_was_given(lab: Lab) -> None:
    line = "ls /dev/infiniband; ls /dev | grep -c nvidia; echo $NVIDIA_VISIBLE_DEVICES | tr , '\\n' | wc -l"
    limits = {"nvidia.com/gpu": 3, "rdma/shared_ib2": 1}
    apply(lab, job("devices", lab.image, ["sh", "-c", line], resources={"limits": limits}))
    assert end_of(lab, "job", "devices") == "Complete"
    assert logs(lab, "devices") == ["3", "3", "uverbs2"]


def test_the_lab_is_a_pod(lab: Lab) -> None:
    pod = load_pod(lab.pod_file)
    scheduler = pod.schedulers[0]
    assert (pod.name, scheduler.kind) == ("lab-kubernetes", "kubernetes")
    assert len(pod.compute_hosts()) == 142


def test_the_user_is_an_ordinary_one(lab: Lab) -> None:
    def may(*words: str) -> bool:
        return lab.kubectl("auth", "can-i", *words).stdout.strip() == "yes"

    assert may("create", "jobs")
    assert may("create", "mpijobs.kubeflow.org")
    assert may("list", "nodes")
    assert not may("create", "namespaces")
    assert not may("get", "secrets", "-n", "kube-system")
    assert lab.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_a_job_runs_with_this_machines_python_and_its_logs_are_read(lab: Lab) -> None:
    line = "import os, sys, podwright; print(sys.prefix, os.getuid())"
    apply(lab, job("python", lab.image, ["python", "-c", line]))
    assert end_of(lab, "job", "python") == "Complete"
    assert logs(lab, "python") == [f"{sys.prefix} 1000"]


def test_what_breaks_the_rules_is_refused(lab: Lab) -> None:
    thing = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "main", "image": lab.image, "securityContext": {"privileged": True}}]},
    }
    done = lab.kubectl("apply", "-f", "-", give=json.dumps(thing))
    assert 'violates PodSecurity "restricted:latest"' in done.stderr


FIND = """
import socket, time
for _ in range(300):
    try:
        print(socket.gethostbyname("meet-1.meet"), flush=True)
        break
    except OSError:
        time.sleep(0.1)
time.sleep(2)
"""


def test_members_find_each_other_by_name(lab: Lab) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "meet"},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"of": "meet"}},
    }
    both = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    where = {"subdomain": "meet", "topologySpreadConstraints": apart("meet")}
    apply(lab, service)
    apply(lab, job("meet", lab.image, ["python3", "-c", FIND], **where, **both))
    assert end_of(lab, "job", "meet") == "Complete"
    pods = get(lab, "pods", "-l", "of=meet")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"n1", "n2"}
    second = next(pod for pod in pods if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1")
    assert logs(lab, "meet") == [second["status"]["podIP"]] * 2


def test_a_dynamic_claim_is_bound_shared_and_taken_back(lab: Lab) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "lab",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    apply(lab, claim)
    volumes = {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    line = "echo here > /data/$HOSTNAME; until [ $(ls /data | wc -l) = 2 ]; do sleep 0.1; done; ls /data | wc -l"
    thing = job("share", lab.image, ["sh", "-c", line], topologySpreadConstraints=apart("share"), **volumes)
    thing["spec"] |= {"completions": 2, "parallelism": 2}
    apply(lab, thing)
    assert end_of(lab, "job", "share") == "Complete"
    assert logs(lab, "share") == ["2", "2"]
    volume = get(lab, "pvc", "shared")["spec"]["volumeName"]
    assert len(list((lab.folder / "volumes" / volume).iterdir())) == 2
    kubectl(lab, "delete", "job/share", "pvc/shared", "--wait=false")
    assert processes.until(lambda: not (lab.folder / "volumes" / volume).exists(), WAIT_S, every_s=0.2)
    assert get(lab, "pvc", "podwright")["status"]["phase"] == "Bound"


ALL_REDUCE = """
from mpi4py import MPI
import os
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
hosts = world.gather(os.uname().nodename)
if world.rank == 0:
    print(total, world.size, len(set(hosts)), flush=True)
"""


SERVE = "mkdir -p /run/sshd; ssh-keygen -A >/dev/null; exec /usr/sbin/sshd -De -o StrictModes=no"
LAUNCH = """
agent="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectionAttempts=10 -o LogLevel=ERROR"
for _ in $(seq 20); do
    mpirun --allow-run-as-root -n 4 --mca plm_rsh_args "$agent" -x PATH python -c "$CODE" && exit 0
    sleep 1
done
exit 1
"""


def mpi_job(image: str) -> dict[str, Any]:
    """Gives an MPI job whose launcher tries again: it may be there before its workers' names are."""

    def role(name: str, count: int, command: str, **pod: Any) -> dict[str, Any]:
        container = {"name": "main", "image": image, "command": ["sh", "-c", command]}
        container |= {"securityContext": {"runAsUser": 0}, "env": [{"name": "CODE", "value": ALL_REDUCE}]}
        labels = {"of": "reduce", "role": name}
        return {
            "replicas": count,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}},
        }

    roles = {
        "Launcher": role("launcher", 1, LAUNCH),
        "Worker": role("worker", 2, SERVE, topologySpreadConstraints=apart("reduce")),
    }
    spec = {"slotsPerWorker": 2, "runPolicy": {"cleanPodPolicy": "Running"}, "mpiReplicaSpecs": roles}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "reduce"}, "spec": spec}


def test_an_mpi_job_reduces_over_two_nodes_by_ssh(lab: Lab) -> None:
    kubectl(lab, "apply", "-n", "default", "-f", "-", admin=True, give=mpi_job(lab.image))
    assert end_of(lab, "mpijob", "reduce", admin=True) == "Succeeded"
    said = kubectl(lab, "-n", "default", "logs", "-l", "role=launcher", admin=True)
    assert "10 4 2" in said.splitlines()
    kubectl(lab, "-n", "default", "delete", "mpijob", "reduce", "--wait=false", admin=True)


def test_a_job_set_runs(lab: Lab) -> None:
    inner = job("ignored", lab.image, ["true"])["spec"]
    parts = [{"name": name, "replicas": 1, "template": {"spec": inner}} for name in ("left", "right")]
    thing = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set"},
        "spec": {"replicatedJobs": parts},
    }
    apply(lab, thing)
    assert end_of(lab, "jobset", "set") == "Completed"


def test_a_hundred_nodes_are_placed_by_the_scheduler(lab: Lab) -> None:
    played = {
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
        "nodeSelector": {"type": "kwok"},
        "resources": {"limits": {"nvidia.com/gpu": 8, "rdma/shared_ib0": 1}},
    }
    template = job("many", lab.image, ["true"], **played)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": 100, "selector": {"matchLabels": {"of": "many"}}, "template": template}
    apply(lab, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "many"}, "spec": spec})

    def running_on() -> list[str]:
        pods = get(lab, "pods", "-l", "of=many")["items"]
        return [pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"]

    assert processes.until(lambda: len(running_on()) == 100, WAIT_S, every_s=0.5)
    assert len(set(running_on())) == 100
    assert all(name.startswith("dgx") for name in running_on())
    kubectl(lab, "delete", "replicaset", "many", "--wait=false")


def test_a_second_up_changes_nothing(lab: Lab) -> None:
    def seen() -> dict[str, Any]:
        found: dict[str, Any] = {path.name: path.read_bytes() for path in (lab.folder / "pids").iterdir()}
        return found | {name: dict(running(lab.machines, name)) for name in ("control", "n1", "n2")}

    before = seen()
    again = kubernetes.up(lab.folder, nodes=2, virtual_nodes=140)
    assert again.shape == lab.shape
    for name, there in before.items():
        # A door that is being passed through, or a command that looks, comes and goes.
        assert seen()[name] == there or set(there) <= set(seen()[name])


def test_jobs_outlive_the_api_server(lab: Lab) -> None:
    apply(lab, job("long", lab.image, ["sleep", "600"]))
    assert processes.until(lambda: "Running" in kubectl(lab, "get", "pods", "-l", "of=long"), WAIT_S, every_s=0.3)
    uid = get(lab, "pods", "-l", "of=long")["items"][0]["metadata"]["uid"]
    lab.restart_controller()
    (pod,) = get(lab, "pods", "-l", "of=long")["items"]
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == (uid, "Running")
    kubectl(lab, "delete", "job", "long", "--wait=false")


def test_nodes_that_are_killed_or_cut_off_come_back(lab: Lab) -> None:
    pid = lab.machines.pid("n1")
    lab.cut_node("n1")
    lab.kill_node("n2")
    states = {row["machine"]: row["state"] for row in lab.status()}
    assert (states["n1"], states["n2"]) == ("cut", "off")

    def given_up() -> bool:
        found = lab.node_states()
        return found["n1"] == found["n2"] == "NotReady"

    assert processes.until(given_up, WAIT_S, every_s=0.5)
    assert lab.heal() == ["n1", "n2"]
    assert lab.machines.pid("n1") == pid
    assert (lab.node_states()["n1"], lab.node_states()["n2"]) == ("Ready", "Ready")
    assert get(lab, "node", "n2")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    apply(lab, job("after", lab.image, ["true"], nodeSelector={"kubernetes.io/hostname": "n2"}))
    assert end_of(lab, "job", "after") == "Complete"


def test_down_leaves_nothing_behind(lab: Lab) -> None:
    """The last test of the file: it ends the lab that all others used."""
    spaces = {space for pid in lab.machines.up().values() for space in namespaces(pid)} - set(namespaces(os.getpid()))
    assert len(spaces) == 3 * 4
    assert list(cgroups.ROOT.glob(f"**/{cgroups.tree(lab.folder)}"))
    lab.down()
    assert not lab.folder.exists()
    assert str(lab.folder) not in Path("/proc/self/mounts").read_text()
    assert not list(cgroups.ROOT.glob(f"**/{cgroups.tree(lab.folder)}"))
    living = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    assert not {space for pid in living if processes.born(pid) is not None for space in namespaces(pid)} & spaces
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", lab.ports.api)) != 0


def namespaces(pid: int) -> list[str]:
    """Names the pid, mount and network namespaces of a process; none when it has ended."""
    try:
        return [str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in ("pid", "mnt", "net")]
    except OSError:
        return []
