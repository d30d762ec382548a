"""How hosts without a system get one: addresses and boot scripts for all of them, and answers for their installers.

A host boots into its installer until it says that it is done; from then on it is sent to its own disk. Nothing but
files decides that, and all of them are the server's own: a host names a token, and the server moves its mark in place.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from podwright.bringup.plan.host import HostCommand
from podwright.bringup.plan.site import MIRROR_PORT
from podwright.bringup.plan.slurm import lines_text
from podwright.bringup.plan.template import text_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site
    from podwright.spec.provisioning import Netboot

HTTP_PORT, HTTPS_PORT = 8080, 8443
_HEAD = "# Written by `podwright pod up`."
# By the number that firmware gives of itself: 0 is a BIOS; 7 and 9 are UEFI on x86-64, 11 on Arm.
_LOADERS = {0: "undionly.kpxe", 7: "snponly.efi", 9: "snponly.efi", 11: "snponly-arm64.efi"}
# What firmware that boots by HTTP gives of itself: 16 is UEFI on x86-64, 19 on Arm.
_BY_HTTPS = {16: "snponly.efi", 19: "snponly-arm64.efi"}
_DEBIAN_INSTALLER = "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"


@dataclass(frozen=True)
class NetbootPlaces:
    """Where the server keeps things."""

    root: str = "/srv/podwright/netboot"
    loaders: str = "/usr/lib/ipxe"
    installer: str = _DEBIAN_INSTALLER
    leases: str = "/var/lib/misc/dnsmasq.leases"
    log: str = "/var/log/nginx/netboot.log"
    run: str = "/run"
    keys: str = "/etc/podwright/netboot"
    tokens: str = "/usr/local/lib/podwright/netboot-tokens"
    user: str = "www-data"


def netboot_of(site: Site) -> Netboot:
    """Return how hosts are booted; refuse a pod that asks for it and does not say how."""
    given = site.pod.bringup.netboot
    if given is None:
        hint = "write `netboot: {first: 10.0.0.200, last: 10.0.0.250}`, the addresses for hosts that are not known yet"
        raise site.pod.refusal([("bringup.netboot", "is missing: the pod's services have netboot", hint)])
    return given


def boots_by_https(site: Site) -> bool:
    """Return whether hosts get their loader by HTTPS."""
    return site.has("netboot") and netboot_of(site).https


def machines(site: Site) -> dict[str, str]:
    """Return every host that may be booted, by its hardware address."""
    known: dict[str, str] = {}
    for group in site.pod.nodes:
        known |= dict(zip(group.macs, group.hosts, strict=False))
    return known


def base_url(site: Site) -> str:
    """Return where hosts fetch from."""
    return f"http://{site.addresses[site.roles['netboot']]}:{HTTP_PORT}"


def dnsmasq_text(site: Site, places: NetbootPlaces) -> str:
    """Return dnsmasq's configuration: DHCP and TFTP, no names. A known host gets its address, others a passing one."""
    given = netboot_of(site)
    server = site.addresses[site.roles["netboot"]]
    rows = [
        _HEAD,
        "port=0",
        f"interface={given.interface}" if given.interface else f"listen-address={server}",
        "bind-interfaces",
        "no-ping",
        f"dhcp-range={given.first},{given.last},{given.netmask},1h",
        f"dhcp-leasefile={places.leases}",
        f"dhcp-option=option:router,{given.router}" if given.router else "dhcp-option=option:router",
        *(f"dhcp-host={mac},{site.addresses[host]},{host}" for mac, host in machines(site).items()),
        *([] if given.https else ["enable-tftp", f"tftp-root={places.loaders}"]),
        "dhcp-match=set:ipxe,175",
        *(_loaders_by_https(server) if given.https else _loaders()),
    ]
    return lines_text([*rows, f"dhcp-boot=tag:ipxe,{base_url(site)}/boot.ipxe"])


def _loaders() -> Iterator[str]:
    for number, loader in _LOADERS.items():
        yield f"dhcp-match=set:arch{number},option:client-arch,{number}"
        yield f"dhcp-boot=tag:!ipxe,tag:arch{number},{loader}"


def _loaders_by_https(server: str) -> Iterator[str]:
    """Yield what firmware gets that asks for a boot by HTTP; it takes the answer of a server that says so itself."""
    for number, loader in _BY_HTTPS.items():
        yield f"dhcp-match=set:arch{number},option:client-arch,{number}"
        yield f"dhcp-boot=tag:!ipxe,tag:arch{number},https://{server}:{HTTPS_PORT}/loaders/{loader}"
        yield f"dhcp-option-force=tag:!ipxe,tag:arch{number},option:vendor-class,HTTPClient"


def nginx_text(site: Site, places: NetbootPlaces) -> str:
    """Return nginx's configuration: scripts and answers go to the address they are for, and nobody sends anything."""
    server = site.addresses[site.roles["netboot"]]
    hosts = [f'        {site.addresses[host]} "{host} {hyphens(mac)}";' for mac, host in machines(site).items()]
    kept = asdict(places)
    https = text_of("nginx-https.conf", server=server, port=HTTPS_PORT, **kept) if netboot_of(site).https else ""
    return text_of("nginx.conf", server=server, port=HTTP_PORT, hosts="\n".join(hosts), https=https, **kept)


def token_command(site: Site, places: NetbootPlaces) -> HostCommand:
    """Return what gives each host that is not installed a token."""
    hosts = token_words(site)
    return HostCommand(
        "tokens",
        check=("/bin/sh", places.tokens, "check", *hosts),
        sees="every host has its token",
        run=("/bin/sh", places.tokens, *hosts),
        tries=1,
    )


def token_words(site: Site, hosts: Collection[str] | None = None) -> list[str]:
    """Return hosts, or all, as the program of the tokens is told of them."""
    known = machines(site).items()
    return [f"{host}={hyphens(mac)}" for mac, host in known if hosts is None or host in hosts]


def reinstall_line(site: Site, hosts: Collection[str]) -> str:
    """Return the line of shell after which hosts go into their installer again, with tokens that nobody has seen."""
    places = NetbootPlaces()
    words = token_words(site, hosts)
    marks = [f"{places.root}/done/{word.partition('=')[2]}.ipxe" for word in words]
    marks += [f"{places.root}/answers/{word.partition('=')[0]}.token" for word in words]
    return f"rm -f -- {shlex.join(marks)} && {shlex.join(['/bin/sh', places.tokens, *words])}"


def hyphens(mac: str) -> str:
    """Return a hardware address as iPXE writes it into the name of a file."""
    return mac.replace(":", "-")


def source_of(site: Site) -> str:
    """Return where an installer gets its packages."""
    given = netboot_of(site)
    if given.source:
        return given.source
    if not site.has("mirror"):
        hint = "write `source:` under `bringup.netboot`, or let the pod have a mirror"
        raise refuse("nobody says where the installer gets packages", hint=hint, field="bringup.netboot.source")
    return f"http://{site.addresses[site.roles['mirror']]}:{MIRROR_PORT}/debian"
