"""Two users of one Kubernetes, a namespace each: neither sees, reads, changes nor stops what is the other's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab, pki
from tests.paths import ROOT
from tests.real.clients import BIN, Client, kubectl, pod_of, pods, until
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES
OTHER, SPACE = "lab-other", "other"
SECRET = "secret-that-is-named-5b8"


@pytest.fixture(scope="module")
def config(kubernetes_cluster: KubernetesLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The way in of a second user, whom an administrator gave a namespace and the same rights in it."""
    lab = kubernetes_cluster
    entry = json.loads(lab.kubeconfig.read_text())
    pki.make_all(lab.folder / "pki", [pki.Certificate("other", OTHER, "lab-users")])
    text = pki.kubeconfig(lab.folder / "pki", "other", entry["clusters"][0]["cluster"]["server"])
    file = tmp_path_factory.mktemp("other") / "kubeconfig"
    file.write_text(text.replace('"namespace": "lab"', f'"namespace": "{SPACE}"'))
    file.chmod(0o600)
    who = [{"kind": "User", "name": OTHER, "apiGroup": "rbac.authorization.k8s.io"}]
    version, role = "rbac.authorization.k8s.io/v1", {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io"}
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    things = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": {"name": "edit", "namespace": SPACE},
            "subjects": who,
            "roleRef": {**role, "name": "edit"},
        },
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "other-look"},
            "subjects": who,
            "roleRef": {**role, "name": "lab-look"},
        },
    ]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
    done = lab.kubectl("apply", "--filename=-", admin=True, give=given)
    assert done.returncode == 0, done.stderr
    account = ("get", "serviceaccount", "default", f"--namespace={SPACE}")
    until(lambda: lab.kubectl(*account, admin=True).returncode == 0, "the namespace has its account")
    yield file
    lab.kubectl("delete", "namespace", SPACE, "--wait=false", admin=True)
    lab.kubectl("delete", "clusterrolebinding", "other-look", admin=True)


def typed(client: Client, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "podwright"), *words]
    return subprocess.run(
        command, env={**client.environ, **environ}, cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_neither_of_two_namespaces_reaches_the_other(
    kubernetes_cluster: KubernetesLab, config: Path, tmp_path: Path
) -> None:
    lab = kubernetes_cluster
    for name in ("alice", "bob"):
        (tmp_path / name).mkdir()
    alice = Client(tmp_path / "alice", pod_of(lab, tmp_path, claim=None))
    theirs = {"namespace": SPACE, "kubeconfig": str(config), "context": "lab", "claim": None}
    bob = Client(tmp_path / "bob", pod_of(lab, tmp_path / "bob", "mine", **theirs))
    bob.ask("pod", "add", str(pod_of(lab, tmp_path / "bob", "taken", **{**theirs, "namespace": "lab"})))
    work = tmp_path / "long.yaml"
    work.write_text(json.dumps({"name": "long", "command": ["sleep", "1000"], "secrets": ["LAB_SECRET"]}))
    started = typed(alice, "run", str(work), "--on", lab.name, "--detach", LAB_SECRET=SECRET)
    assert started.returncode == 0, started.stderr
    run_id = started.stdout.strip()
    at_work = lambda: [pod for pod in pods(lab, run_id) if pod["status"]["phase"] == "Running"]  # noqa: E731
    pod = until(at_work, "the run is at work")[0]["metadata"]["name"]

    for words in (("show", run_id), ("logs", run_id), ("cancel", run_id), ("rm", "--yes", run_id)):
        done = typed(bob, *words)
        assert (done.returncode, f"there is no run '{run_id}'" in done.stderr) == (2, True), done.stderr
    assert json.loads(bob.ask("ps", "--json")) == []
    toy = tmp_path / "toy.yaml"
    toy.write_text(json.dumps({"name": "toy", "command": ["id", "-u"]}))
    refused = typed(bob, "run", str(toy), "--on", "taken")
    assert refused.returncode in (2, 3), refused.stderr
    assert "lab" in refused.stderr

    own = [str(lab.kubectl_path), f"--kubeconfig={config}", "--namespace=lab"]
    for line in (
        *("get pods", "get jobs", "get secrets", "get configmaps", "get events", f"logs {pod}"),
        *(f"exec {pod} -- id", f"delete pod {pod}", f"delete job {run_id}", f"annotate job {run_id} a=b"),
        *(f"port-forward {pod} 7000", f"attach {pod}", f"cp {pod}:/etc/passwd {tmp_path / 'copy'}"),
        *("create configmap x", "auth can-i get pods"),
    ):
        done = subprocess.run([*own, *line.split()], capture_output=True, text=True, check=False)
        assert done.returncode != 0, (line, done.stdout)
        assert SECRET not in done.stdout
    assert until(at_work, "it is still at work")[0]["metadata"]["name"] == pod

    told = bob.run(toy, "mine")
    assert told["state"] == "succeeded"
    mine = kubectl(lab, "get", "jobs", "--namespace", SPACE, admin=True)["items"]
    assert [job["metadata"]["name"] for job in mine] in ([told["id"]], [])
    assert lab.kubectl("get", "jobs", "--namespace", SPACE).returncode != 0, "alice has no more rights than bob"
    assert typed(alice, "show", told["id"]).returncode == 2
    alice.ask("cancel", run_id)
    alice.wait(run_id, code=4)
