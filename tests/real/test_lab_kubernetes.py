"""A Kubernetes cluster on this machine: what it shows a user, what may be done to it, and what it leaves behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.lab import cgroups, kubernetes, processes
from podwright.lab.kubernetes import KubernetesLab
from podwright.spec import load_pod
from tests.real.clients import PATIENCE_S
from tests.real.labs import ON_KUBERNETES, kubernetes_lab, lab_folder

pytestmark = ON_KUBERNETES

KINDS = ("pid", "mnt", "net")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_OF_THE_POD = ("volumes", "tolerations", "nodeSelector", "topologySpreadConstraints", "subdomain")


@pytest.fixture
def lab(kubernetes_cluster: KubernetesLab) -> KubernetesLab:
    return kubernetes_cluster


def kubectl(lab: KubernetesLab, *words: str, give: Any = None) -> str:
    """Runs kubectl the way a user would, and gives what it printed."""
    done = lab.kubectl(*words, give="" if give is None else json.dumps(give))
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(lab: KubernetesLab, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl(lab, "get", *words, "-o", "json"))
    return found


def apply(lab: KubernetesLab, thing: dict[str, Any]) -> None:
    kubectl(lab, "apply", "--server-side", "-f", "-", give=thing)


def word_of(lab: KubernetesLab, kind: str, name: str) -> str:
    """Gives the word for how a job ended; empty while it has not."""
    said = get(lab, kind, name)
    held = [one["type"] for one in said.get("status", {}).get("conditions", []) if one["status"] == "True"]
    return next((word for word in held if word in ("Complete", "Completed", "Failed", "Succeeded")), "")


def end_of(lab: KubernetesLab, kind: str, name: str) -> str:
    """Waits for the end of a job, and gives its word."""
    processes.until(lambda: bool(word_of(lab, kind, name)), PATIENCE_S, every_s=0.3)
    return word_of(lab, kind, name)


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


def logs(lab: KubernetesLab, name: str) -> list[str]:
    return sorted(kubectl(lab, "logs", "-l", f"of={name}", "--tail=-1").splitlines())


def test_every_node_is_ready(lab: KubernetesLab) -> None:
    """A machine that is busy with other things may let one miss its time, and it comes back."""
    assert set(lab.node_states()) == {*lab.shape.hosts(), *lab.shape.virtual_hosts()}
    assert processes.until(lambda: set(lab.node_states().values()) == {"Ready"}, PATIENCE_S, every_s=0.5)


def test_nodes_offer_what_a_dgx_has(lab: KubernetesLab) -> None:
    for node in ("n2", "dgx140"):
        room = get(lab, "node", node)["status"]["allocatable"]
        assert (room["nvidia.com/gpu"], room["rdma/shared_ib0"]) == ("8", "100")
    assert get(lab, "node", "dgx021")["metadata"]["labels"]["podwright.dev/unit"] == "su2"


def test_a_container_sees_the_devices_it_was_given(lab: KubernetesLab) -> None:
    line = "ls /dev/infiniband; ls /dev | grep -c nvidia; echo $NVIDIA_VISIBLE_DEVICES | tr , '\\n' | wc -l"
    limits = {"nvidia.com/gpu": 3, "rdma/shared_ib2": 1}
    apply(lab, job("devices", lab.image, ["sh", "-c", line], resources={"limits": limits}))
    assert end_of(lab, "job", "devices") == "Complete"
    assert logs(lab, "devices") == ["3", "3", "uverbs2"]


def test_the_lab_is_a_pod(lab: KubernetesLab) -> None:
    pod = load_pod(lab.pod_file)
    scheduler = pod.schedulers[0]
    assert (pod.name, scheduler.kind) == ("lab-kubernetes", "kubernetes")
    assert len(pod.compute_hosts()) == 142


def test_the_user_is_an_ordinary_one(lab: KubernetesLab) -> None:
    def may(*words: str) -> bool:
        return lab.kubectl("auth", "can-i", *words).stdout.strip() == "yes"

    assert may("create", "jobs")
    assert may("create", "mpijobs.kubeflow.org")
    assert may("list", "nodes")
    assert not may("create", "namespaces")
    assert not may("get", "secrets", "-n", "kube-system")
    assert lab.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_a_job_runs_with_this_machines_python_and_its_logs_are_read(lab: KubernetesLab) -> None:
    line = "import os, sys, podwright; print(sys.prefix, os.getuid())"
    apply(lab, job("python", lab.image, ["python", "-c", line]))
    assert end_of(lab, "job", "python") == "Complete"
    assert logs(lab, "python") == [f"{sys.prefix} 1000"]


def test_a_volume_does_not_cover_this_machines_python(lab: KubernetesLab) -> None:
    """As where the checkout lies in /tmp, and a Kubernetes pod brings a /tmp of its own."""
    line = "import os, sys, podwright; print(sys.prefix, bool(os.statvfs(sys.prefix).f_flag & os.ST_RDONLY))"
    volumes = {
        "volumes": [{"name": "over", "emptyDir": {}}],
        "volumeMounts": [{"name": "over", "mountPath": str(Path(sys.prefix).parent)}],
    }
    apply(lab, job("covered", lab.image, [sys.executable, "-c", line], **volumes))
    assert end_of(lab, "job", "covered") == "Complete"
    assert logs(lab, "covered") == [f"{sys.prefix} True"]


def test_what_breaks_the_rules_is_refused(lab: KubernetesLab) -> None:
    thing = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "main", "image": lab.image, "securityContext": {"privileged": True}}]},
    }
    done = lab.kubectl("apply", "-f", "-", give=json.dumps(thing))
    assert 'violates PodSecurity "restricted:latest"' in done.stderr


FIND = """
import os, socket, time

def again(what, *words):
    while True:
        try:
            return what(*words)
        except OSError:
            time.sleep(0.1)

other = 1 - int(os.environ["JOB_COMPLETION_INDEX"])
listening = socket.create_server(("", 7000))
with again(socket.create_connection, (f"meet-{other}.meet", 7000)):
    listening.accept()  # neither ends before both have met: a name goes with its Kubernetes pod
print(again(socket.gethostbyname, "meet-1.meet"), flush=True)
with again(socket.create_connection, (f"meet-{other}.meet", 7000)):
    listening.accept()
"""


def test_members_find_each_other_by_name(lab: KubernetesLab) -> None:
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


def test_a_dynamic_claim_is_bound_shared_and_taken_back(lab: KubernetesLab) -> None:
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
    assert processes.until(lambda: not (lab.folder / "volumes" / volume).exists(), PATIENCE_S, every_s=0.2)
    assert get(lab, "pvc", "podwright")["status"]["phase"] == "Bound"


def test_a_job_set_runs(lab: KubernetesLab) -> None:
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


def test_a_second_up_changes_nothing(lab: KubernetesLab) -> None:
    def seen() -> dict[str, Any]:
        found: dict[str, Any] = {path.name: path.read_bytes() for path in (lab.folder / "pids").iterdir()}
        return found | {name: dict(lab.machines.running(name)) for name in ("control", "n1", "n2")}

    before = seen()
    again = kubernetes.up(lab.folder, nodes=2, virtual_nodes=140, grace_s=60)
    assert again.shape == lab.shape
    for name, there in before.items():
        # A door that is being passed through, a command that looks, and the shim of a container come and go.
        assert seen()[name] == there or set(there) - {"containerd-shim"} <= set(seen()[name])


def test_jobs_outlive_the_api_server(lab: KubernetesLab) -> None:
    apply(lab, job("long", lab.image, ["sleep", "600"]))
    assert processes.until(lambda: "Running" in kubectl(lab, "get", "pods", "-l", "of=long"), PATIENCE_S, every_s=0.3)
    uid = get(lab, "pods", "-l", "of=long")["items"][0]["metadata"]["uid"]
    lab.restart_controller()
    (pod,) = get(lab, "pods", "-l", "of=long")["items"]
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == (uid, "Running")
    kubectl(lab, "delete", "job", "long", "--wait=false")


@pytest.mark.nightly
def test_nodes_that_are_killed_or_cut_off_come_back(lab: KubernetesLab) -> None:
    pid = lab.machines.pid("n1")
    lab.cut_node("n1")
    lab.kill_node("n2")
    states = {row["machine"]: row["state"] for row in lab.status()}
    assert (states["n1"], states["n2"]) == ("cut", "off")

    def given_up() -> bool:
        found = lab.node_states()
        return found["n1"] == found["n2"] == "NotReady"

    assert processes.until(given_up, PATIENCE_S, every_s=0.5)
    assert lab.heal() == ["n1", "n2"]
    assert lab.machines.pid("n1") == pid
    assert (lab.node_states()["n1"], lab.node_states()["n2"]) == ("Ready", "Ready")
    assert get(lab, "node", "n2")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    apply(lab, job("after", lab.image, ["true"], nodeSelector={"kubernetes.io/hostname": "n2"}))
    assert end_of(lab, "job", "after") == "Complete"


@pytest.fixture
def small(kubernetes_cluster: KubernetesLab) -> Iterator[KubernetesLab]:
    """A second lab beside the one that all tests use: neither is in the other's way."""
    with kubernetes_lab(nodes=1) as made:
        yield made
    assert set(kubernetes_cluster.machines.up()) == {"hub", "control", "n1", "n2"}


def test_down_leaves_nothing_behind(small: KubernetesLab) -> None:
    with remains(small) as left:
        assert left()
        small.down()
        assert left() == []


ASKER = """
import os, sys
from pathlib import Path
from podwright.lab import kubernetes
kubernetes.up(Path(sys.argv[1]), ends_with=os.getpid(), nodes=1, virtual_nodes=0)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.nightly
def test_a_lab_ends_with_the_process_that_asked_for_it(kubernetes_cluster: KubernetesLab) -> None:
    with lab_folder() as folder:
        command = [sys.executable, "-c", ASKER, str(folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asker:
            assert asker.stdout is not None
            assert asker.stdout.readline() == "up\n"
            lab = kubernetes.find(folder)
            assert lab is not None
            with remains(lab) as left:
                assert left()
                asker.kill()
                assert processes.until(lambda: left() == [], PATIENCE_S), left()


@contextmanager
def remains(lab: KubernetesLab) -> Iterator[Callable[[], list[str]]]:
    """Gives what names all that is there of a lab: folder, mounts, groups, processes, ports.

    The namespaces are held open: the kernel gives the number of one that is gone to the next, perhaps elsewhere.
    """
    with ExitStack() as held:
        machines = lab.machines.up().values()
        for path in (Path(f"/proc/{pid}/ns/{kind}") for pid in machines for kind in KINDS):
            held.enter_context(path.open("rb"))
        spaces = {space for pid in machines for space in namespaces(pid)} - set(namespaces(os.getpid()))
        assert len(spaces) == 3 * 3
        yield lambda: [*traces(lab), *members(spaces)]


def traces(lab: KubernetesLab) -> list[str]:
    """Names what of a lab can be seen without looking at any process."""
    found = [str(path) for path in cgroups.ROOT.glob(f"**/{cgroups.tree(lab.folder)}")]
    if lab.folder.exists():
        found.append(str(lab.folder))
    if str(lab.folder) in Path("/proc/self/mounts").read_text():
        found.append("a mount")
    with socket.socket() as tried:
        if tried.connect_ex(("127.0.0.1", lab.ports.api)) == 0:
            found.append("the API server's port")
    return found


def members(spaces: set[str]) -> list[str]:
    """Names the processes that live in one of these namespaces."""
    living = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return [f"process {pid}" for pid in living if processes.born(pid) is not None and spaces & set(namespaces(pid))]


def namespaces(pid: int) -> list[str]:
    """Names the pid, mount and network namespaces of a process; none when it has ended."""
    try:
        return [str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in KINDS]
    except OSError:
        return []
