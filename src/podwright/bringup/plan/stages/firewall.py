"""Who reaches a host from outside: a table of nftables of its own, from the addresses and ports of the plan.

Hosts of the pod reach each other on every port: what a job listens on nobody knows before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.kubernetes.kubeadm import API_PORT, POD_NETWORK, management_hosts
from podwright.bringup.plan.netboot import HTTP_PORT, HTTPS_PORT
from podwright.bringup.plan.site import REGISTRY_PORT, Site
from podwright.bringup.plan.template import text_of, unit_of
from podwright.spec.provisioning import Firewall

_SERVICE, _FOLDER = "podwright-firewall", "/etc/podwright"
_RULES = f"{_FOLDER}/firewall.nft"
_SSH_PORT, _BOOT_PORTS = 22, (67, 69)
# What somebody flushed is found, though the file is as it was.
_LOADED = HostCommand(
    "the firewall",
    check=("/bin/sh", "-c", "/usr/sbin/nft list table inet podwright 2>/dev/null || echo not in the kernel"),
    sees="policy drop",
    run=("systemctl", "restart", _SERVICE),
)


def firewall(site: Site, host: str) -> Step | None:
    """Return the firewall of a host; a change goes back by itself where it locks out whoever made it."""
    wanted = site.pod.bringup.firewall
    if wanted is None:
        return None
    text = text_of("firewall.nft", rules="".join(f"        {rule}\n" for rule in _rules(site, host, wanted)))
    rules = HostFile(_RULES, text, check="/usr/sbin/nft --check --file %s", restarts=(_SERVICE,), guards=True)
    return Step(
        packages=("nftables",),
        folders=(HostFolder(_FOLDER),),
        files=(unit_of(_SERVICE, rules=_RULES), rules),
        services=(_SERVICE,),
        commands=(_LOADED,),
    )


def _rules(site: Site, host: str, wanted: Firewall) -> Iterator[str]:
    """Yield who is let in beside answers, the host itself and ICMP."""
    own = [*site.addresses.values(), *wanted.trusted]
    if host in _cluster(site):
        own.append(POD_NETWORK)
    yield from _from(own, "")
    ports = ", ".join(map(str, sorted({_SSH_PORT, *_ports(site, host), *wanted.ports})))
    yield from _from(wanted.reached_from, f"tcp dport {{ {ports} }} ")
    if site.pod.bringup.netboot is not None and site.is_on("netboot", host):
        # Who boots there has no address yet that anybody knew.
        yield f"udp dport {{ {', '.join(map(str, _BOOT_PORTS))} }} accept"
        yield f"tcp dport {{ {HTTP_PORT}, {HTTPS_PORT} }} accept"


def _from(networks: Sequence[str], what: str) -> Iterator[str]:
    """Yield what is let in from these networks, of both kinds of addresses; from everywhere where there is none."""
    if not networks:
        yield f"{what}accept"
    # A set has no two that overlap.
    old = collapse_addresses(IPv4Network(each) for each in networks if ":" not in each)
    new = collapse_addresses(IPv6Network(each) for each in networks if ":" in each)
    for word, found in (("ip", list(map(_short, old))), ("ip6", list(map(_short, new)))):
        if found:
            yield f"{word} saddr {{ {', '.join(found)} }} {what}accept"


def _short(network: IPv4Network | IPv6Network) -> str:
    """Return a network as nft prints it: a single address without its length."""
    return str(network.network_address if network.num_addresses == 1 else network)


def _cluster(site: Site) -> set[str]:
    return {*site.kubernetes_hosts, *management_hosts(site)} if site.kubernetes is not None else set()


def _ports(site: Site, host: str) -> Iterator[int]:
    """Yield the ports of what people use of this host from elsewhere."""
    if site.has("registry") and site.is_on("registry", host):
        yield REGISTRY_PORT
    if site.kubernetes is not None and host in management_hosts(site):
        yield API_PORT
