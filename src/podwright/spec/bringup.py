"""What a pod's file says of how its hosts become the pod: the way to them, who does what, accounts, versions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from podwright.spec.partitions import OwnPartition, SettingName
from podwright.spec.provisioning import (
    AptSource,
    Export,
    Firewall,
    KubernetesVersion,
    Netboot,
    NvidiaSettings,
    PublicKey,
    SiteLogin,
)
from podwright.spec.types import AsWritten, Count, Image, Line, Lines, Strict, Text, pattern

OperatingSystem = Literal["debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04"]


AccountName = Annotated[
    Text,
    pattern(
        r"[a-z_][a-z0-9_-]{0,30}",
        '"{}" is not the name of an account',
        "lower-case letters, digits, dashes and underscores, 31 at most, and a letter first",
    ),
]
SettingValue = Annotated[AsWritten, pattern(r"[^\r\n]+", "must be one line", "write the value alone")]
SlurmVersion = Annotated[
    Line, pattern(r"\d\d\.\d\d(\.\d+)?", '"{}" is not a version of Slurm', "write it like `22.05`")
]
Requirement = Annotated[
    Line,
    pattern(
        r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?([=<>~!]=?=?[A-Za-z0-9.*+!,<>=~-]+)?",
        '"{}" is not a Python package',
        "write it like `numpy` or `numpy==2.1.3`",
    ),
]
ArchiveUrl = Annotated[
    Line,
    pattern(r"https://[A-Za-z0-9.:\[\]-]+", '"{}" is not where an archive is served', "like `https://10.0.0.1:3142`"),
]


class Account(Strict):
    """A person with an account on every host."""

    name: AccountName = Field(description="the account's name")
    uid: Annotated[Count, Field(ge=1000)] = Field(description="its number, the same on every host")
    keys: tuple[PublicKey, ...] = Field(default=(), description="public keys of ssh that let it in")


class Roles(Strict):
    """Which host does what beside jobs; left out: the first management host, else the pod's first host."""

    controller: Line | None = Field(default=None, description="slurmctld, slurmdbd and their database")
    backup: Line | None = Field(default=None, description="a second slurmctld; left out: none")
    login: Line | None = Field(default=None, description="where people log in")
    registry: Line | None = Field(default=None, description="the container registry")
    mirror: Line | None = Field(default=None, description="the mirror of packages")
    monitoring: Line | None = Field(default=None, description="Prometheus and Alertmanager")
    netboot: Line | None = Field(default=None, description="serves addresses, boot scripts and installers")
    storage: Line | None = Field(default=None, description="exports folders by NFS")
    time: Line | None = Field(default=None, description="the clock that all other hosts follow")


class SoftwareVersions(Strict):
    """Which release is there; left out: what the operating system has."""

    slurm: SlurmVersion | None = Field(
        default=None, description="such as 22.05: its packages are of it, its files are written for it"
    )
    kubernetes: KubernetesVersion | None = Field(
        default=None, description="such as 1.35.4: the cluster is made by kubeadm; left out: it is there already"
    )


class SlurmSettings(Strict):
    """Keys of Slurm's files that stand instead of our choice."""

    conf: dict[SettingName, SettingValue] = Field(default={}, alias="slurm.conf", description="keys of slurm.conf")
    cgroup: dict[SettingName, SettingValue] = Field(default={}, alias="cgroup.conf", description="keys of cgroup.conf")
    partitions: tuple[OwnPartition, ...] = Field(
        default=(), description="partitions; left out: `gpu` of the nodes with GPUs, `cpu` of the others"
    )
    lines: tuple[SettingValue, ...] = Field(default=(), description="further lines at the end of slurm.conf")


class Bringup(Strict):
    """How hosts become the pod; `podwright pod plan` and `pod up` read it."""

    user: AccountName = Field(default="root", description="who logs in to the hosts; not root: one who may sudo")
    ssh_config: Line | None = Field(default=None, description="an ssh configuration to use instead of the user's own")
    os: OperatingSystem = Field(default="debian-12", description="what the hosts run")
    roles: Roles = Field(default=Roles(), description="which host does what")
    versions: SoftwareVersions = Field(default=SoftwareVersions(), description="releases")
    ssh_to_nodes: Literal["anybody", "jobs"] = Field(
        default="anybody",
        description="jobs: only who has a job on a node gets in there, but for root, sudo's group and `user`",
    )
    users: tuple[Account, ...] = Field(default=(), description="accounts on every host")
    settings: SlurmSettings = Field(default=SlurmSettings(), description="keys of Slurm's files, instead of ours")
    login: SiteLogin = Field(default=SiteLogin(), description="how the registry and Kubernetes know people")
    exports: tuple[Export, ...] = Field(default=(), description="folders that the storage host exports by NFS")
    images: tuple[Image, ...] = Field(default=(), description="images that the site shall have, by name")
    archive: ArchiveUrl | None = Field(
        default=None, description="where `mirror serve` serves all packages to hosts; left out: their own sources"
    )
    wheels: tuple[Requirement, ...] = Field(
        default=(),
        description="Python packages that the site shall have; with `archive` in /opt/podwright/python of hosts",
    )
    netboot: Netboot | None = Field(default=None, description="how hosts without a system get one")
    nvidia: NvidiaSettings | None = Field(default=None, description="what GPU nodes get; left out: nothing")
    sources: tuple[AptSource, ...] = Field(default=(), description="further sources of packages")
    firewall: Firewall | None = Field(
        default=None, description="who reaches hosts from outside (nftables); left out: whoever can"
    )
    time_servers: Lines = Field(default=(), description="clocks outside that the pod's own follows")
