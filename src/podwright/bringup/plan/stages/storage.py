"""File systems that hosts share: what one of them exports by NFS, and what the others mount, of Lustre too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm import lines_text
from podwright.bringup.plan.template import text_of
from podwright.spec import Storage
from podwright.spec.provisioning import Export

_HEAD = "# Written by `podwright pod up`."
_SERVER = "nfs-server"


@dataclass(frozen=True)
class StorageClient:
    """What a host needs to mount a kind of storage, and how it does."""

    packages: tuple[str, ...]
    options: str


# By the name that both a pod's file and mount have of it. Lustre's packages are in no system's own sources: the pod's
# file names one that has them.
_CLIENTS: Mapping[str, StorageClient] = {
    "nfs": StorageClient(("nfs-common",), "vers=4.2,hard,noatime,nconnect=8,_netdev"),
    "lustre": StorageClient(("lustre-client-modules-dkms", "lustre-client-utils"), "flock,noatime,_netdev"),
}


def exports(site: Site, host: str) -> Step | None:
    """Return what the storage host exports."""
    given = site.pod.bringup.exports
    if not given or not site.is_on("storage", host):
        return None
    return Step(
        packages=("nfs-kernel-server",),
        folders=(HostFolder("/etc/exports.d"), *(HostFolder(export.path) for export in given)),
        files=(HostFile("/etc/exports.d/podwright.exports", exports_text(given), restarts=(_SERVER,)),),
        services=(_SERVER,),
    )


def exports_text(given: tuple[Export, ...]) -> str:
    """Return the exports as exportfs reads them."""
    rows = []
    for export in given:
        clients = " ".join(f"{network}({export.options})" for network in export.to)
        rows.append(f"{export.path} {clients}")
    return lines_text([_HEAD, *rows])


def mounts(site: Site, host: str) -> Step | None:
    """Return what a host mounts: each storage of the pod that says from where, but for the one that it serves."""
    wanted = [storage for storage in site.pod.storage if _is_mounted(site, storage, host)]
    if not wanted:
        return None
    packages: dict[str, None] = {}
    for storage in wanted:
        packages |= dict.fromkeys(_CLIENTS[storage.kind].packages)
    units = {unit_name(storage.mount or ""): mount_unit(storage) for storage in wanted}
    return Step(
        packages=tuple(packages),
        files=tuple(HostFile(f"/etc/systemd/system/{name}", text, restarts=(name,)) for name, text in units.items()),
        services=tuple(units),
    )


def people(site: Site, host: str) -> Step | None:
    """Return what people have on shared file systems, once these are mounted: made before, it would lie beneath."""
    accounts = site.pod.bringup.users
    if not accounts or not site.shared_mounts or not site.is_on("login", host):
        return None
    folders = []
    for account in accounts:
        name = account.name
        folders += [HostFolder(f"{mount}/{name}", "0700", name, name) for mount in site.shared_mounts]
    return Step(folders=tuple(folders))


def _is_mounted(site: Site, storage: Storage, host: str) -> bool:
    if storage.kind not in _CLIENTS or not storage.server or not storage.mount:
        return False
    server = storage.server.partition(":")[0]
    return server not in (host, site.addresses[host])


def unit_name(mount: str) -> str:
    """Return the name that systemd wants of the unit of a mount: slashes are dashes, and dashes are escaped."""
    return mount.strip("/").replace("-", "\\x2d").replace("/", "-") + ".mount"


def mount_unit(storage: Storage) -> str:
    """Return a mount that comes with the network and is waited for by what needs it."""
    fields = storage.model_dump(include={"name", "server", "mount", "kind"})
    return text_of("storage.mount", **fields, options=_CLIENTS[storage.kind].options)
