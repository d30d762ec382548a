"""What a pod's file says of the hosts before they have a system, and of what stands outside of Slurm's files."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from podwright.spec.types import EnvName, Line, Lines, Name, Strict, Text, pattern, wrong


def _address(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise wrong(f'"{value}" is not an address', "write it like `10.0.0.1`") from None


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise wrong(f'"{value}" is not a network', "write it like `10.0.0.0/16`") from None


Address = Annotated[Line, AfterValidator(_address)]
Network = Annotated[Line, AfterValidator(_network)]
Mac = Annotated[
    Line,
    pattern(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", '"{}" is not a hardware address', "like `52:54:00:77:00:01`"),
    AfterValidator(str.lower),
]
KubernetesVersion = Annotated[
    Line, pattern(r"1\.\d+(\.\d+)?", '"{}" is not a version of Kubernetes', "write it like `1.35.4`")
]
PublicKey = Annotated[
    Line,
    pattern(
        r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\r\n]*)?",
        '"{}" is not a public key of ssh',
        "write the whole line of the .pub file, such as `ssh-ed25519 AAAA... name`",
    ),
]
TcpPort = Annotated[int, Field(ge=1, le=65535)]
MigSize = Annotated[
    Line, pattern(r"[12347]g\.\d+gb", '"{}" is not a part of a GPU', "write it like `1g.10gb`, as nvidia-smi does")
]
DriverBranch = Annotated[Line, pattern(r"\d{3}", '"{}" is not a branch of the driver', "write it like `570`")]
Folder = Annotated[Line, pattern(r"/[A-Za-z0-9._/-]+", '"{}" is not a folder', "write it like `/srv/home`")]
PackageName = Annotated[
    Line, pattern(r"[a-z0-9][a-z0-9+.-]+", '"{}" is not a package of Debian', "write its name, such as `nfs-common`")
]
KernelArguments = Annotated[
    Line,
    pattern(
        r"[A-Za-z0-9 _.,:=/@+*-]*", '"{}" are no arguments of a kernel', "write them like `console=ttyS1 iommu=pt`"
    ),
]
Options = Annotated[
    Line, pattern(r"[a-z0-9_=,.@-]+", '"{}" are no options', "write them like `rw,sync,no_subtree_check`")
]


class Bmc(Strict):
    """The controllers that switch the hosts of a group on and off."""

    address: Lines = Field(description="one for each host, in their order; or one with {host} in it")
    secret: EnvName = Field(description="the variable of whoever gives a command that holds USER:PASSWORD")
    certificates: Line | None = Field(
        default=None, description="a file of certificates that they are trusted by; left out: this machine's own"
    )
    watched: bool = Field(
        default=False,
        description="whether the monitoring host asks them for power and inlet; the pod's vault keeps the secret then",
    )


class Netboot(Strict):
    """How hosts without a system get one over the network."""

    first: Address = Field(description="the first address for hosts that are not known yet")
    last: Address = Field(description="the last one")
    netmask: Line = Field(default="255.255.255.0", description="of the network that hosts boot in")
    interface: Line | None = Field(default=None, description="where the server listens; left out: by its address")
    router: Address | None = Field(default=None, description="the way out; left out: none")
    os: Literal["debian-12", "ubuntu-24.04", "rhel-9"] = Field(default="debian-12", description="what is installed")
    install: Literal["installer", "image", "image-on-disk"] = Field(
        default="installer",
        description="by the system's installer; without a disk, from one image; or that image, written to the disk",
    )
    packages: tuple[PackageName, ...] = Field(default=(), description="what the image has beside a bare system")
    arguments: KernelArguments = Field(
        default="", description="further arguments of the kernel; an installed system keeps them"
    )
    disk: Folder = Field(default="/dev/sda", description="the disk that is written")
    source: Line | None = Field(
        default=None, description="where the installer gets packages: a URL; left out: the pod's mirror"
    )
    keys: tuple[PublicKey, ...] = Field(default=(), description="public keys of ssh of who brings the hosts up")
    https: bool = Field(
        default=False,
        description="hosts get their loader by HTTPS of the pod's authority, which their firmware must know",
    )


class Export(Strict):
    """A folder that the storage host exports by NFS."""

    path: Folder = Field(description="the folder")
    to: tuple[Network, ...] = Field(description="networks that may mount it")
    options: Options = Field(default="rw,sync,no_subtree_check", description="of the export")


class Firewall(Strict):
    """Who reaches hosts from outside: hosts of the pod reach each other, everybody else what is named."""

    reached_from: tuple[Network, ...] = Field(
        default=(), description="networks that ssh, the registry and Kubernetes are reached from; left out: all"
    )
    trusted: tuple[Network, ...] = Field(
        default=(), description="networks that reach everything, such as hosts' further addresses on the fabrics"
    )
    ports: tuple[TcpPort, ...] = Field(default=(), description="further TCP ports that are reached as ssh is")


class AptSource(Strict):
    """A source of packages beside the operating system's own, such as NVIDIA's or Kubernetes' mirrored on site."""

    name: Name = Field(description="its name")
    uri: Line = Field(description="its URL")
    suites: Lines = Field(default=("/",), description="such as bookworm, or / for a flat one")
    components: Lines = Field(default=(), description="such as main")
    key: Text = Field(description="the public key that its lists are signed with, armored")


class NvidiaSettings(Strict):
    """What GPU nodes get of NVIDIA's."""

    driver: DriverBranch = Field(default="570", description="the branch of the driver")
    mig: MigSize | None = Field(default=None, description="the size that all GPUs are cut to; left out: whole GPUs")


class SiteLogin(Strict):
    """How people prove who they are to the registry and to Kubernetes."""

    kind: Literal["htpasswd", "oidc", "ldap"] = Field(
        default="htpasswd", description="htpasswd: one password of the pod's own"
    )
    issuer: Line | None = Field(default=None, description="oidc: the issuer's URL")
    client: Line | None = Field(default=None, description="oidc: the client's id")
    server: Line | None = Field(default=None, description="ldap: the server's URL")
    base: Line | None = Field(default=None, description="ldap: where people are looked for")
