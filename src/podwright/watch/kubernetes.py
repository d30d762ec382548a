"""The same rules for Prometheus' operator: on any Kubernetes that has it, and in OpenShift's own monitoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from podwright.watch.on_nodes import EXPORTER, PORT_NAME, exporter_objects
from podwright.watch.scrape import INTERVAL, ScrapeJob, exporters_name

if TYPE_CHECKING:
    from podwright.spec import Pod

NAMESPACE = "podwright-watch"
SCRAPE_SECRET = "podwright-scrape"
"""What an administrator makes of the pod's authority and token: no file of ours holds them."""
_LABELS = {"app.kubernetes.io/name": EXPORTER}
_GROUP = "monitoring.coreos.com/v1"


def kubernetes_objects(pod: Pod, rules: dict[str, Any], jobs: Sequence[ScrapeJob]) -> Iterator[dict[str, Any]]:
    """Yield the rules, and what reads the exporters of hosts; on OpenShift what has its monitoring look at them."""
    is_openshift = any(
        scheduler.kind == "kubernetes" and scheduler.dialect == "openshift" for scheduler in pod.schedulers
    )
    labels = {"openshift.io/user-monitoring": "true"} if is_openshift else {}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    yield _object(_GROUP, "PrometheusRule", "podwright", spec=rules)
    on_hosts = [job for job in jobs if job.name == "gpu"]
    for job in on_hosts:
        yield from _exporters(pod, job)
    if not on_hosts and any(scheduler.kind == "kubernetes" for scheduler in pod.schedulers):
        yield from exporter_objects(NAMESPACE, SCRAPE_SECRET)
        yield _object(_GROUP, "ServiceMonitor", EXPORTER, spec=_monitor(pod, "__meta_kubernetes_pod_node_name"))
    if is_openshift:
        yield _user_workload()


def _exporters(pod: Pod, job: ScrapeJob) -> Iterator[dict[str, Any]]:
    """Yield the exporters of hosts as a service, which have their own addresses, and what reads them."""
    numbers = sorted({target.port for target in job.targets})
    ports = [{"name": PORT_NAME, "port": number} for number in numbers]
    yield _object("v1", "Service", EXPORTER, spec={"clusterIP": "None", "ports": ports})
    addresses = [{"ip": target.address, "nodeName": target.host} for target in job.targets]
    yield _object("v1", "Endpoints", EXPORTER, subsets=[{"addresses": addresses, "ports": ports}])
    yield _object(_GROUP, "ServiceMonitor", EXPORTER, spec=_monitor(pod, "__meta_kubernetes_endpoint_node_name"))


def _object(version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    about = {"name": name, "namespace": NAMESPACE, "labels": _LABELS}
    return {"apiVersion": version, "kind": kind, "metadata": about, **rest}


def _monitor(pod: Pod, node: str) -> dict[str, Any]:
    authority = {"secret": {"name": SCRAPE_SECRET, "key": "ca.crt"}}
    return {
        "selector": {"matchLabels": _LABELS},
        "endpoints": [
            {
                "port": PORT_NAME,
                "scheme": "https",
                "interval": INTERVAL,
                "honorLabels": True,
                "authorization": {"credentials": {"name": SCRAPE_SECRET, "key": "token"}},
                "tlsConfig": {"ca": authority, "serverName": exporters_name(pod)},
                # Rules know exporters by these: the operator would call the job after its service.
                "relabelings": [
                    {"targetLabel": "job", "replacement": "gpu"},
                    {"targetLabel": "pod", "replacement": pod.name},
                    {"sourceLabels": [node], "targetLabel": "host"},
                ],
            }
        ],
    }


def _user_workload() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-monitoring-config", "namespace": "openshift-monitoring"},
        "data": {"config.yaml": "enableUserWorkload: true\n"},
    }
