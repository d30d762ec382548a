"""What kubeadm makes a cluster of: its configuration for the first management host, for further ones, for nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.kubernetes import login
from podwright.bringup.plan.kubernetes.images import parts_of
from podwright.bringup.plan.template import text_of
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

Object = dict[str, Any]
API_PORT = 6443
BALANCER_PORT = 8443
SOCKET = "unix:///run/containerd/containerd.sock"
DISCOVERY = "/etc/kubernetes/podwright/discovery.conf"
POD_NETWORK, SERVICE_NETWORK = "10.244.0.0/16", "10.96.0.0/16"
_API = "kubeadm.k8s.io/v1beta4"
_NO_MANAGER = "name hosts with `roles: [management]`: one, three or five of them"


def leaving_line(host: str) -> str:
    """Return what has the cluster forget a node, on a management host."""
    return f"kubectl --kubeconfig=/etc/kubernetes/admin.conf delete node --ignore-not-found {host}"


def management_hosts(site: Site) -> list[str]:
    """Return the hosts that run the cluster; refuse none, and an even number: half of them outvote nobody."""
    hosts: list[str] = []
    for group in site.pod.nodes:
        if "management" in group.roles:
            hosts += group.hosts
    if not hosts:
        raise refuse("Kubernetes needs a management host", hint=_NO_MANAGER, field="nodes.roles")
    if len(hosts) % 2 == 0:
        message = (
            f"{len(hosts)} management hosts: etcd needs an odd number, so that a majority is left when one is lost"
        )
        raise refuse(message, hint=_NO_MANAGER, field="nodes.roles")
    return hosts


def endpoint(site: Site) -> str:
    """Return where everybody finds the cluster: its only host, or the balancer that each node has on its loopback."""
    hosts = management_hosts(site)
    if len(hosts) == 1:
        return f"{hosts[0]}:{API_PORT}"
    return f"{balancer_name(site)}:{BALANCER_PORT}"


def balancer_name(site: Site) -> str:
    """Return the name under which a node's own balancer stands in /etc/hosts."""
    return f"kubernetes.{site.name}"


def init_text(site: Site) -> str:
    """Return what `kubeadm init` reads on the first management host."""
    first = management_hosts(site)[0]
    begin = {
        "apiVersion": _API,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": site.addresses[first], "bindPort": API_PORT},
        "nodeRegistration": _registration(site, first),
    }
    return yaml_text([begin, _cluster(site), _kubelet(site)])


def join_text(site: Site, host: str) -> str:
    """Return what `kubeadm join` reads on another host: it knows the cluster by a file, and never asks who answers."""
    joining: Object = {
        "apiVersion": _API,
        "kind": "JoinConfiguration",
        "discovery": {"file": {"kubeConfigPath": DISCOVERY}},
        "nodeRegistration": _registration(site, host),
    }
    if host in management_hosts(site):
        here = {"advertiseAddress": site.addresses[host], "bindPort": API_PORT}
        joining["controlPlane"] = {"localAPIEndpoint": here}
    return yaml_text([joining])


def _registration(site: Site, host: str) -> Object:
    entry: Object = {
        "name": host,
        "criSocket": SOCKET,
        "imagePullPolicy": "IfNotPresent",
        "kubeletExtraArgs": [{"name": "node-ip", "value": site.addresses[host]}],
    }
    if host in site.kubernetes_hosts:
        # What runs the cluster may also run workloads where the pod's file says so.
        entry["taints"] = []
    return entry


def _cluster(site: Site) -> Object:
    hosts = management_hosts(site)
    names = [*hosts, *(site.addresses[host] for host in hosts), balancer_name(site), "127.0.0.1"]
    cluster: Object = {
        "apiVersion": _API,
        "kind": "ClusterConfiguration",
        "clusterName": site.name,
        "kubernetesVersion": f"v{site.kubernetes_version}",
        "controlPlaneEndpoint": endpoint(site),
        "networking": {"podSubnet": POD_NETWORK, "serviceSubnet": SERVICE_NETWORK, "dnsDomain": "cluster.local"},
        "apiServer": {"certSANs": names, "extraArgs": _api_arguments(site)},
        "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
    }
    parts = parts_of(site)
    if parts is not None:
        # Under their publishers' names: containerd looks for these in the pod's registry first.
        cluster["etcd"]["local"]["imageTag"] = parts.etcd
        cluster["dns"] = {"imageTag": parts.coredns}
    return cluster


def _api_arguments(site: Site) -> list[Object]:
    """Return what the API server is told beyond kubeadm's own choice, and who may tell it who people are."""
    chosen = {"enable-admission-plugins": "NodeRestriction", "profiling": "false"}
    return _arguments({**chosen, **login.api_arguments(site)})


def _arguments(chosen: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in chosen.items()]


def _kubelet(site: Site) -> Object:
    """Return the kubelet's configuration: a GPU, its network card and its cores are of one NUMA node where they can."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
        "rotateCertificates": True,
        "serverTLSBootstrap": False,
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        "topologyManagerPolicy": "best-effort",
        "systemReserved": {"cpu": "1", "memory": "4Gi"},
        "evictionHard": {"memory.available": "1Gi", "nodefs.available": "5%", "imagefs.available": "10%"},
        "shutdownGracePeriod": "60s",
        "shutdownGracePeriodCriticalPods": "20s",
    }


def balancer_text(site: Site) -> str:
    """Return haproxy's configuration on every node: the next management host answers when one does not."""
    servers = [
        f"    server {host} {site.addresses[host]}:{API_PORT} check check-ssl verify none\n"
        for host in management_hosts(site)
    ]
    return text_of("haproxy.cfg", port=BALANCER_PORT, servers="".join(servers))
