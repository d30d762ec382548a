"""Kubernetes by kubeadm: containerd everywhere, then the first management host, the other ones, and the nodes."""

from __future__ import annotations

from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.kubernetes import kubeadm
from podwright.bringup.plan.kubernetes.addons import definitions
from podwright.bringup.plan.kubernetes.addons import objects as addon_objects
from podwright.bringup.plan.kubernetes.charts import HelmChart, charts
from podwright.bringup.plan.kubernetes.containerd import CERTIFICATES, config_text
from podwright.bringup.plan.site import Site
from podwright.clients.kubernetes.manifest import yaml_text

_FOLDER = "/etc/kubernetes/podwright"
_PKI = "/etc/kubernetes/pki"
# What kubeadm would make itself: made before, so that every host can know the cluster without asking it.
KEYS = {
    "ca.crt": "kubernetes_ca_certificate",
    "ca.key": "kubernetes_ca_key",
    "etcd/ca.crt": "etcd_ca_certificate",
    "etcd/ca.key": "etcd_ca_key",
    "front-proxy-ca.crt": "front_proxy_ca_certificate",
    "front-proxy-ca.key": "front_proxy_ca_key",
    "sa.key": "service_account_key",
    "sa.pub": "service_account_public",
}
# What a bridge passes on is seen by the packet filter.
_MODULES = "overlay\nbr_netfilter\n"
_SYSCTL = """\
-net.bridge.bridge-nf-call-iptables = 1
-net.bridge.bridge-nf-call-ip6tables = 1
net.ipv4.ip_forward = 1
"""
_HEAD = "# Written by `podwright pod up`.\n"
# The kubelet does not start beside swap; without its target no start of the host brings it back.
_NO_SWAP = HostCommand(
    "no swap",
    check=("/bin/sh", "-c", 'test -z "$(/sbin/swapon --show --noheadings)" && echo none'),
    sees="none",
    run=("/bin/sh", "-c", "/sbin/swapoff --all && systemctl mask swap.target"),
    tries=1,
)
_JOINED, _DONE = "/etc/kubernetes/kubelet.conf", "done"


def runtime(site: Site, host: str) -> Step | None:
    """Return containerd and Kubernetes' programs; with several management hosts also the way to them."""
    if not _has(site, host):
        return None
    with_gpus = site.pod.model_of(host).gpus is not None
    files = [
        HostFile("/etc/modules-load.d/podwright-kubernetes.conf", _MODULES, restarts=("systemd-modules-load",)),
        HostFile("/etc/sysctl.d/91-podwright-kubernetes.conf", _HEAD + _SYSCTL, restarts=("systemd-sysctl",)),
        HostFile("/etc/containerd/config.toml", config_text(with_gpus), restarts=("containerd",)),
    ]
    folders = [HostFolder("/etc/containerd")]
    if site.has("registry"):
        for name, secret in ((site.registry, "registry_hosts"), ("_default", "registry_hosts_default")):
            folders.append(HostFolder(f"{CERTIFICATES}/{name}"))
            files.append(HostFile(f"{CERTIFICATES}/{name}/hosts.toml", mode="0600", secret=secret))
    # The kubelet is started by kubeadm, and does not run before.
    packages, services = ["containerd", "kubeadm", "kubelet", "kubectl"], ["containerd"]
    if len(kubeadm.management_hosts(site)) > 1:
        packages.append("haproxy")
        services.append("haproxy")
        text, check = kubeadm.balancer_text(site), "haproxy -c -f %s"
        files.append(HostFile("/etc/haproxy/haproxy.cfg", text, check=check, restarts=("haproxy",)))
    return Step(
        tuple(packages),
        folders=tuple(folders),
        files=tuple(files),
        services=tuple(services),
        commands=(_NO_SWAP,),
    )


def first(site: Site, host: str) -> Step | None:
    """Return what makes the cluster, on the first management host."""
    if not _has(site, host) or host != kubeadm.management_hosts(site)[0]:
        return None
    files = (HostFile(f"{_FOLDER}/init.yaml", kubeadm.init_text(site), "0600"), *_keys())
    folders = (HostFolder(_FOLDER, "0700"), *_key_folders())
    # It would print a token with which hosts can join, and what it prints is written down.
    config = f"--config={_FOLDER}/init.yaml"
    begun = HostCommand(
        "the cluster",
        check=_proof("/etc/kubernetes/admin.conf"),
        sees=_DONE,
        run=("kubeadm", "init", config, "--skip-token-print"),
        tries=1,
    )
    return Step(folders=folders, files=files, commands=(begun,))


def credentials(site: Site, host: str) -> Step | None:
    """Return what a host joins with: given to those alone that have not joined, and gone when they have."""
    if not _has(site, host) or host == kubeadm.management_hosts(site)[0]:
        return None
    given = HostCommand(
        "the certificate that a host joins with",
        check=_proof(_JOINED),
        sees=_DONE,
        run=("/bin/sh", "-c", f"umask 077 && cat >{kubeadm.DISCOVERY}"),
        secret="kubernetes_discovery",
    )
    return Step(folders=(HostFolder(_FOLDER, "0700"),), commands=(given,))


_KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf"


def managers(site: Site, host: str) -> Step | None:
    """Return what the other management hosts join with: they have all keys."""
    if not _has(site, host) or host not in kubeadm.management_hosts(site)[1:]:
        return None
    return _joining(site, host, _keys(), _key_folders())


def nodes(site: Site, host: str) -> Step | None:
    """Return what a node joins with."""
    if not _has(site, host) or host in kubeadm.management_hosts(site):
        return None
    return _joining(site, host, (), ())


def addons(site: Site, host: str) -> Step | None:
    """Return what the cluster gets beside itself: objects that are applied, and the values of charts for Helm."""
    if not _has(site, host) or host != kubeadm.management_hosts(site)[0]:
        return None
    kinds = HostFile(f"{_FOLDER}/definitions.json", definitions())
    objects = HostFile(f"{_FOLDER}/addons.yaml", yaml_text(addon_objects(site)))
    values = [HostFile(f"{_FOLDER}/charts/{chart.name}.yaml", chart_text(chart)) for chart in charts(site)]
    given = f"--server-side --force-conflicts -f {kinds.path} -f {objects.path}"
    applied = HostCommand(
        "the cluster's add-ons",
        check=("/bin/sh", "-c", f"{_KUBECTL} diff {given} >/dev/null && echo same"),
        sees="same",
        run=("/bin/sh", "-c", f"{_KUBECTL} apply {given}"),
    )
    return Step(folders=(HostFolder(f"{_FOLDER}/charts"),), files=(kinds, objects, *values), commands=(applied,))


def chart_text(chart: HelmChart) -> str:
    """Return the values of a chart, with the command that takes them."""
    install = f"helm upgrade --install {chart.name} {chart.name} --version {chart.version}"
    head = f"# {install} --namespace {chart.namespace} --create-namespace --values {chart.name}.yaml\n"
    return head + yaml_text([chart.values])


def _has(site: Site, host: str) -> bool:
    if site.kubernetes is None:
        return False
    return host in site.kubernetes_hosts or host in kubeadm.management_hosts(site)


def _joining(site: Site, host: str, files: tuple[HostFile, ...], folders: tuple[HostFolder, ...]) -> Step:
    own = HostFile(f"{_FOLDER}/join.yaml", kubeadm.join_text(site, host), "0600")
    joined = HostCommand(
        "the cluster's host",
        check=_proof(_JOINED),
        sees=_DONE,
        run=("/bin/sh", "-c", f"kubeadm join --config={own.path} && rm {kubeadm.DISCOVERY}"),
        tries=1,
    )
    return Step(folders=(HostFolder(_FOLDER, "0700"), *folders), files=(own, *files), commands=(joined,))


def _proof(file: str) -> tuple[str, ...]:
    """Return the check of what kubeadm did. It is tried once: what it leaves when it fails would hide the reason."""
    return ("/bin/sh", "-c", f"test -s {file} && echo {_DONE}")


def _keys() -> tuple[HostFile, ...]:
    return tuple(
        HostFile(f"{_PKI}/{name}", mode="0600" if name.endswith(".key") else "0644", secret=secret)
        for name, secret in KEYS.items()
    )


def _key_folders() -> tuple[HostFolder, ...]:
    return (HostFolder(_PKI), HostFolder(f"{_PKI}/etcd"))
