"""What of a pod cannot be made again from its file: where it lies, how it is taken away and how it is put back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.bringup.plan.kubernetes.kubeadm import management_hosts
from podwright.bringup.plan.stages.slurm import state_folder

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

_DATABASE = "slurm_acct_db"
_REGISTRY = "/var/lib/docker-registry"
_PKI = "/etc/kubernetes/pki/etcd"
_ETCDCTL = (
    "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379"
    f" --cacert={_PKI}/ca.crt --cert={_PKI}/server.crt --key={_PKI}/server.key"
)
_SNAPSHOT = f"""\
umask 077; place=$(mktemp -d) || exit 1
{_ETCDCTL} snapshot save "$place/snapshot" >&2 && cat "$place/snapshot"
code=$?; rm -rf "$place"; exit $code"""
# The kubelet starts etcd again with what lies there; what was there before is kept beside it.
_FROM_SNAPSHOT = """\
umask 077; place=$(mktemp -d) && cat >"$place/snapshot" && systemctl stop kubelet || exit 1
crictl ps --quiet --name '^etcd$' | xargs --no-run-if-empty crictl stop
test ! -e /var/lib/etcd || mv /var/lib/etcd "/var/lib/etcd.before.$(date +%s)" || exit 1
ETCDCTL_API=3 etcdctl snapshot restore "$place/snapshot" --data-dir=/var/lib/etcd \\
    --name="$(hostname)" --initial-cluster="$(hostname)=https://@address@:2380" \\
    --initial-advertise-peer-urls=https://@address@:2380 >&2
code=$?; rm -rf "$place"; systemctl start kubelet && exit $code"""


@dataclass(frozen=True)
class BackupPart:
    """One thing that is taken away and put back by a line of shell on its host."""

    name: str
    host: str
    save: str
    """Prints it."""
    load: str
    """Takes what `save` printed; empty: it is not put back by us."""
    services: tuple[tuple[str, str], ...] = ()
    """Hosts with the services that write it: they stand still while it is put back, and live where the pod does."""


def backup_parts(site: Site) -> list[BackupPart]:
    """Return the parts of a pod, in the order in which they are put back."""
    parts: list[BackupPart] = []
    if site.scheduler is not None:
        host = site.roles["controller"]
        controllers = [host, *filter(None, [site.pod.bringup.roles.backup])]
        daemons = tuple((each, "slurmctld") for each in reversed(controllers))
        dump = f"mariadb-dump --single-transaction --quick --databases {_DATABASE}"
        parts.append(BackupPart("accounting", host, dump, "mariadb", ((host, "slurmdbd"),)))
        parts.append(BackupPart("slurm", host, *_folder(state_folder(site)), daemons))
    if site.has("registry"):
        host = site.roles["registry"]
        parts.append(BackupPart("registry", host, *_folder(_REGISTRY), ((host, "docker-registry"),)))
    if site.kubernetes is not None:
        managers = management_hosts(site)
        load = _FROM_SNAPSHOT.replace("@address@", site.addresses[managers[0]]) if len(managers) == 1 else ""
        parts.append(BackupPart("etcd", managers[0], _SNAPSHOT, load, ((managers[0], "kubelet"),)))
    return parts


def _folder(path: str) -> tuple[str, str]:
    """Return how a folder is taken and put back. tar ends with 1 where a file changed meanwhile."""
    place = shlex.quote(path)
    save = f"tar --create --directory={place} . || test $? = 1"
    load = f"tar --extract --preserve-permissions --directory={place}"
    return save, f"mkdir -p {place} && find {place} -mindepth 1 -delete && {load}"


def living_line(services: list[str]) -> str:
    """Return what prints those of these services that run."""
    return f"for each in {shlex.join(services)}; do systemctl is-active --quiet $each && echo $each; done; true"
