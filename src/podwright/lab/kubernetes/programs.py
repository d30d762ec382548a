"""The command lines of a Kubernetes lab's programs, on the control machine and on every node; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podwright.lab.kubernetes import provisioner
from podwright.lab.kubernetes.configs import API_PORT, CONTAINERD, ETC, PKI, POD_NETWORKS, SERVICE_NETWORK
from podwright.lab.kubernetes.objects import DEVICE_FILES, devices
from podwright.lab.kubernetes.shape import CONTROL_ADDRESS, STORAGE_CLASS, KubernetesLabShape
from podwright.lab.scripts import INSIDE

Commands = dict[str, list[str]]

_ETCD = "https://127.0.0.1:2379"
_PEER = "http://127.0.0.1:2380"
# As many requests as a large cluster's programs are allowed.
_BRISK = ("--kube-api-qps=500", "--kube-api-burst=1000")
ADMIN = f"{ETC}/admin.kubeconfig"
KEPT = {
    "kube-apiserver": "keep-apiserver",
    "kube-controller-manager": "keep-manager",
    "mpi-operator": "keep-mpi",
}
"""Programs that are started again when they end, as a cluster does, and who does it."""
STAGES = (
    "node-initialize",
    "node-heartbeat-with-lease",
    "pod-ready",
    "pod-delete",
)
ENDING = "pod-complete.yaml"


def store(parts: Mapping[str, Path]) -> Commands:
    """Return the store and the API server, which all others need.

    The store does not wait for the disk: a lab need not survive a power cut, and 140 nodes renew their leases.
    """
    etcd = [
        str(parts["etcd"]),
        "--name=lab",
        f"--data-dir={INSIDE}/etcd",
        "--log-level=warn",
        "--unsafe-no-fsync",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls={_PEER}",
        f"--initial-advertise-peer-urls={_PEER}",
        f"--initial-cluster=lab={_PEER}",
        f"--cert-file={PKI}/etcd.crt",
        f"--key-file={PKI}/etcd.key",
        "--client-cert-auth",
        f"--trusted-ca-file={PKI}/ca.crt",
    ]
    return {"etcd": etcd, "kube-apiserver": _kept_up("kube-apiserver", _api_server(parts["kube-apiserver"]))}


def _kept_up(program: str, command: list[str]) -> list[str]:
    return [f"{INSIDE}/bin/{KEPT[program]}", *command]


def _api_server(program: Path) -> list[str]:
    return [
        str(program),
        "--bind-address=0.0.0.0",
        f"--secure-port={API_PORT}",
        f"--advertise-address={CONTROL_ADDRESS}",
        f"--etcd-servers={_ETCD}",
        f"--etcd-cafile={PKI}/ca.crt",
        f"--etcd-certfile={PKI}/admin.crt",
        f"--etcd-keyfile={PKI}/admin.key",
        f"--tls-cert-file={PKI}/apiserver.crt",
        f"--tls-private-key-file={PKI}/apiserver.key",
        f"--client-ca-file={PKI}/ca.crt",
        # Nobody speaks for others here, but controllers look for the file.
        f"--requestheader-client-ca-file={PKI}/ca.crt",
        "--requestheader-allowed-names=nobody",
        f"--kubelet-client-certificate={PKI}/kubelet-client.crt",
        f"--kubelet-client-key={PKI}/kubelet-client.key",
        f"--kubelet-certificate-authority={PKI}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={PKI}/sa.key",
        f"--service-account-key-file={PKI}/sa.pub",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        # No kube-proxy runs beside it: whom a service stands for it asks directly, by the lab's routes.
        "--enable-aggregator-routing",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--anonymous-auth=false",
        "--allow-privileged",
    ]


def control(shape: KubernetesLabShape, parts: Mapping[str, Path], python: str) -> Commands:
    """Return the programs that need the API server, by the names the lab knows them by."""
    commands: Commands = {
        "kube-controller-manager": _kept_up(
            "kube-controller-manager", _controllers(parts["kube-controller-manager"], shape.grace_s)
        ),
        "kube-scheduler": [
            str(parts["kube-scheduler"]),
            f"--config={ETC}/scheduler.yaml",
            *_kept(f"{ETC}/scheduler.kubeconfig"),
            f"--tls-cert-file={PKI}/scheduler.crt",
            f"--tls-private-key-file={PKI}/scheduler.key",
        ],
        "coredns": [str(parts["coredns"]), "-conf", f"{ETC}/Corefile"],
        "docker-registry": ["docker-registry", "serve", f"{ETC}/registry.yml"],
        provisioner.PROGRAM: [
            python,
            "-c",
            f"import sys; from {provisioner.__name__} import main; main(*sys.argv[1:])",
            CONTROL_ADDRESS,
            str(API_PORT),
            PKI,
            f"{INSIDE}/volumes",
            STORAGE_CLASS,
        ],
    }
    if shape.virtual_nodes:
        commands["kwok"] = _kwok(parts["kwok"])
    return commands


def _controllers(program: Path, grace_s: int) -> list[str]:
    kubeconfig = f"{ETC}/controller-manager.kubeconfig"
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        *_BRISK,
        *_kept(kubeconfig),
        f"--tls-cert-file={PKI}/controller-manager.crt",
        f"--tls-private-key-file={PKI}/controller-manager.key",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={PKI}/sa.key",
        f"--root-ca-file={PKI}/ca.crt",
        f"--cluster-signing-cert-file={PKI}/ca.crt",
        f"--cluster-signing-key-file={PKI}/ca.key",
        f"--node-monitor-grace-period={grace_s}s",
    ]


def _kept(kubeconfig: str) -> list[str]:
    names = ("authentication-kubeconfig", "authorization-kubeconfig")
    return ["--bind-address=127.0.0.1", *(f"--{name}={kubeconfig}" for name in names)]


def _kwok(program: Path) -> list[str]:
    chosen = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
    stages = [f"--config={program.parent}/manifests/{name}.yaml" for name in STAGES] + [f"--config={ETC}/{ENDING}"]
    return [str(program), "--v=WARN", f"--kubeconfig={ADMIN}", "--manage-all-nodes=false", chosen, *stages]


def operators(parts: Mapping[str, Path]) -> Commands:
    """Return the operators; they give up at once where the kinds they watch are not served yet.

    The MPI Operator also ends when the API server is away for some seconds: a cluster would start it again.
    """
    mpi = [
        str(parts["mpi-operator"]),
        f"--kubeConfig={ADMIN}",
        "--lock-namespace=kube-system",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--controller-queue-rate-limit=200",
    ]
    jobset = ["env", f"KUBECONFIG={ADMIN}", str(parts["jobset"]), f"--config={ETC}/jobset.yaml"]
    return {"mpi-operator": _kept_up("mpi-operator", mpi), "jobset": jobset}


def node(shape: KubernetesLabShape, parts: Mapping[str, Path], host: str) -> Commands:
    """Return what runs on a node, in the order in which it starts."""
    offers = [f"{name}={count}:{DEVICE_FILES[name]}" for name, count in devices(shape.gpus).items()]
    return {
        "containerd": ["containerd", f"--config={INSIDE}/nodes/{host}/containerd.toml"],
        "kubelet": [
            str(parts["kubelet"]),
            f"--config={INSIDE}/nodes/{host}/kubelet.yaml",
            f"--kubeconfig={ETC}/{host}.kubeconfig",
            f"--hostname-override={host}",
            f"--node-ip={shape.addresses()[host]}",
        ],
        "kube-proxy": [
            str(parts["kube-proxy"]),
            f"--kubeconfig={ETC}/proxy.kubeconfig",
            "--proxy-mode=iptables",
            f"--hostname-override={host}",
            f"--cluster-cidr={POD_NETWORKS}",
            # These are the machine's, not the node's.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ],
        "devices": [str(parts["devices"]), *offers],
    }


def is_containerd_ready() -> list[str]:
    """Return the command that succeeds once containerd answers."""
    return ["ctr", f"--address={CONTAINERD}", "version"]


def fetch(image: str) -> Commands:
    """Return the command that fetches an image on a node before the first Kubernetes pod asks for it."""
    pull = ["images", "pull", f"--hosts-dir={ETC}/registries", image]
    return {"ctr": ["ctr", f"--address={CONTAINERD}", "--namespace=k8s.io", *pull]}
