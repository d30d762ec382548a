"""What the hosts of a new cluster know each other by: authorities, a token to join with, and both as files."""

from __future__ import annotations

import base64
import secrets
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podwright.bringup import authority
from podwright.bringup.kubernetes.kubeadm import endpoint
from podwright.clients.kubernetes.manifest import yaml_text

if TYPE_CHECKING:
    from podwright.bringup.site import Site

_LETTERS = string.ascii_lowercase + string.digits
_JOINING = "system:bootstrappers:kubeadm:default-node-token"


def new_keys() -> dict[str, str]:
    """Return the three authorities and the key that signs the accounts of services."""
    return {
        **authority.new("kubernetes", "kubernetes_ca"),
        **authority.new("etcd-ca", "etcd_ca"),
        **authority.new("front-proxy-ca", "front_proxy_ca"),
        **authority.key_pair("service_account"),
    }


def new_token(site: Site, known: Mapping[str, str]) -> dict[str, str]:
    """Return a token, as the object that makes it valid and as the file that a host joins with."""
    name, value = _random(6), _random(16)
    fields = {
        "token-id": name,
        "token-secret": value,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": _JOINING,
    }
    admitted = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{name}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": fields,
    }
    certificate = base64.b64encode(known["kubernetes_ca_certificate"].encode()).decode()
    cluster = {"server": f"https://{endpoint(site)}", "certificate-authority-data": certificate}
    joining = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": site.name, "cluster": cluster}],
        "users": [{"name": "joining", "user": {"token": f"{name}.{value}"}}],
        "contexts": [{"name": "joining", "context": {"cluster": site.name, "user": "joining"}}],
        "current-context": "joining",
    }
    return {"kubernetes_bootstrap": yaml_text([admitted]), "kubernetes_discovery": yaml_text([joining])}


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
