"""A port of a run for others than its user, on OpenShift: a Route, the Service behind it, and who may come in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import Api, ApiError, Away, refusal_of
from podwright.clients.kubernetes.paths import path_of_object
from podwright.engines.kubernetes.objects import POLICY_VERSION
from podwright.engines.kubernetes.pod_template import Object
from podwright.engines.kubernetes.submit import owned
from podwright.spec.problems import refuse

ROUTE_VERSION = "route.openshift.io/v1"
ROUTER = {"policy-group.network.openshift.io/ingress": ""}
"""The label of the namespaces that OpenShift's routers come from."""
ADMITTED_S, LOOK_S = 30.0, 0.5
"""How long a router may take to give the Route its host, and between two looks."""


def route_objects(pod: Mapping[str, Any], run_id: str, port: int, index: Mapping[str, str]) -> list[Object]:
    """Return what leads to a port of one Kubernetes pod; `index` is the label that tells it from the run's others.

    The run's own NetworkPolicy lets in nobody else: this one adds the routers, and this port alone.
    """
    namespace, selector = str(pod["metadata"]["namespace"]), {names.RUN: run_id, **index}
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, names.RUN: run_id}
    metadata = {"name": f"{run_id}-route", "namespace": namespace, "labels": labels}
    ports = [{"port": port, "targetPort": port, "protocol": "TCP"}]
    ingress = {"from": [{"namespaceSelector": {"matchLabels": ROUTER}}], "ports": [{"port": port, "protocol": "TCP"}]}
    policy = {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [ingress]}
    route = {
        "to": {"kind": "Service", "name": metadata["name"], "weight": 100},
        "port": {"targetPort": port},
        "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"},
    }
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector, "ports": ports}},
        {"apiVersion": POLICY_VERSION, "kind": "NetworkPolicy", "metadata": metadata, "spec": policy},
        {"apiVersion": ROUTE_VERSION, "kind": "Route", "metadata": metadata, "spec": route},
    ]


@contextmanager
def exposed(api: Api, objects: list[Object], owner: Mapping[str, Any]) -> Iterator[str]:
    """Yield the address while the objects are there; where nobody removes them they go with the run's own object."""
    paths = [path_of_object(manifest) for manifest in objects]
    try:
        for path, manifest in zip(paths, objects, strict=True):
            api.apply(path, owned(manifest, owner))
        yield f"https://{_host(api, paths[-1])}"
    except (Away, ApiError) as error:
        raise refusal_of(error, "make the route") from None
    finally:
        with suppress(Away, ApiError):
            for path in reversed(paths):
                api.delete(path)


def _host(api: Api, path: str) -> str:
    deadline = time.monotonic() + ADMITTED_S
    while time.monotonic() < deadline:
        route = api.get(path)
        admitted = [row.get("host") for row in (route.get("status") or {}).get("ingress") or []]
        host = next(filter(None, [*admitted, route["spec"].get("host")]), None)
        if host:
            return str(host)
        time.sleep(LOOK_S)
    raise refuse("no router of the cluster took the route", hint="`oc get route` says more", exit_code=3)
