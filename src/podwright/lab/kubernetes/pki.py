"""The lab's own certificate authority, what it signed, and the kubeconfigs made of that."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from podwright.files.whole import whole_path
from podwright.lab.kubernetes.shape import CONTROL_ADDRESS, NAMESPACE, KubernetesLabShape

LOOPBACK = "127.0.0.1"
API_SERVICE = "10.96.0.1"
USER = "lab-user"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_EXTENSIONS = (
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
    "extendedKeyUsage=serverAuth,clientAuth",
)
_API_NAMES = (
    "localhost",
    *(f"kubernetes{more}" for more in ("", ".default", ".default.svc", ".default.svc.cluster.local")),
)


@dataclass(frozen=True)
class Certificate:
    """What a certificate says: who, in which group, under which names it may serve."""

    file: str
    name: str
    group: str = ""
    names: tuple[str, ...] = ()

    def subject(self) -> str:
        """Return the subject; Kubernetes reads the user from CN and the group from O."""
        if not self.group:
            return f"/CN={self.name}"
        return f"/O={self.group}/CN={self.name}"

    def alternatives(self) -> str:
        """Return the names as openssl takes them."""
        return ",".join(f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in self.names)


def certificates(shape: KubernetesLabShape) -> list[Certificate]:
    """Return all certificates of a lab."""
    local = (LOOPBACK, "localhost")
    nodes = [
        Certificate(host, f"system:node:{host}", "system:nodes", (shape.addresses()[host], host))
        for host in shape.hosts()
    ]
    return [
        Certificate("apiserver", "kube-apiserver", names=(LOOPBACK, CONTROL_ADDRESS, API_SERVICE, *_API_NAMES)),
        Certificate("etcd", "etcd", names=local),
        Certificate("admin", "lab-admin", "system:masters"),
        Certificate("user", USER, "lab-users"),
        Certificate("kubelet-client", "apiserver-kubelet-client", "system:masters"),
        Certificate("controller-manager", "system:kube-controller-manager", names=local),
        Certificate("scheduler", "system:kube-scheduler", names=local),
        Certificate("proxy", "system:kube-proxy"),
        Certificate("webhook", "jobset-webhook", names=(CONTROL_ADDRESS,)),
        *nodes,
    ]


def make_all(folder: Path, wanted: Iterable[Certificate]) -> None:
    """Make what is missing of authority, keys and certificates; keys are for root alone."""
    folder.mkdir(exist_ok=True, mode=0o700)
    authority = ["-keyout", "ca.key", "-out", "ca.crt"]
    if not (folder / "ca.crt").exists():
        _openssl(folder, "req", "-x509", *_NEW_KEY, "-days", "3650", "-subj", "/CN=podwright-lab", *authority)
    if not (folder / "sa.pub").exists():
        _openssl(folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "sa.key")
        _openssl(folder, "pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    for certificate in wanted:
        if not (folder / f"{certificate.file}.crt").exists():
            _sign(folder, certificate)


def _sign(folder: Path, certificate: Certificate) -> None:
    """Make a key and its certificate; the certificate gets its name last, so that a torn start is repeated."""
    extensions = list(_EXTENSIONS)
    if certificate.names:
        extensions.append(f"subjectAltName={certificate.alternatives()}")
    command = ["req", "-x509", "-CA", "ca.crt", "-CAkey", "ca.key", *_NEW_KEY, "-days", "3650"]
    command += ["-subj", certificate.subject(), "-keyout", f"{certificate.file}.key"]
    for extension in extensions:
        command += ["-addext", extension]
    with whole_path(folder / f"{certificate.file}.crt") as part:
        _openssl(folder, *command, "-out", part.name)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, umask=0o077, check=True, capture_output=True)


def kubeconfig(folder: Path, file: str, server: str, context: str = "lab") -> str:
    """Return a kubeconfig that holds its certificates: it may be copied anywhere, and is as secret as the key."""
    cluster = {"server": server, "certificate-authority-data": _coded(folder / "ca.crt")}
    user = {
        "client-certificate-data": _coded(folder / f"{file}.crt"),
        "client-key-data": _coded(folder / f"{file}.key"),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": file, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": file, "namespace": NAMESPACE}}],
    }
    return json.dumps(config, indent=1) + "\n"


def _coded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
