"""What the hosts of a new cluster know each other by: authorities, and a certificate that a host joins with."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podwright.bringup.apply import authority
from podwright.bringup.plan.kubernetes.kubeadm import endpoint
from podwright.clients.kubernetes.manifest import yaml_text

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

# Whom kubeadm lets join, and nothing else.
JOINING = "/O=system:bootstrappers:kubeadm:default-node-token/CN=system:bootstrap:podwright"
_GOOD_FOR_DAYS = 1
# Made again when half of its time is over, so that the longest bring-up has the other half.
_KEPT_S = 12 * 3600


def new_keys() -> dict[str, str]:
    """Return the three authorities and the key that signs the accounts of services."""
    return {
        **authority.new("kubernetes", "kubernetes_ca"),
        **authority.new("etcd-ca", "etcd_ca"),
        **authority.new("front-proxy-ca", "front_proxy_ca"),
        **authority.key_pair("service_account"),
    }


def new_discovery(site: Site, known: Mapping[str, str]) -> dict[str, str]:
    """Return the file that a host joins with, and until when it is given to hosts.

    The cluster's own authority signs who joins, for a day: no token lies in the cluster that somebody might find.
    """
    signer = {f"ca_{part}": known[f"kubernetes_ca_{part}"] for part in ("key", "certificate")}
    client = authority.sign_client(signer, "client", JOINING, _GOOD_FOR_DAYS)
    cluster = {"server": f"https://{endpoint(site)}", "certificate-authority-data": _coded(signer["ca_certificate"])}
    user = {
        "client-certificate-data": _coded(client["client_certificate"]),
        "client-key-data": _coded(client["client_key"]),
    }
    joining = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": site.name, "cluster": cluster}],
        "users": [{"name": "joining", "user": user}],
        "contexts": [{"name": "joining", "context": {"cluster": site.name, "user": "joining"}}],
        "current-context": "joining",
    }
    until = f"{time.time() + _KEPT_S:.0f}"
    return {"kubernetes_discovery": yaml_text([joining]), "kubernetes_discovery_until": until}


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
