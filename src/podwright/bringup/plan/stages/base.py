"""The base of every host: names, accounts, the way in, and what the kernel is told."""

from __future__ import annotations

from importlib.resources import files
from ipaddress import ip_network
from urllib.parse import urlsplit

from podwright.bringup.plan.host import HostAccount, HostCommand, HostFile, HostFolder, Step
from podwright.bringup.plan.kubernetes.kubeadm import balancer_name
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.slurm import lines_text
from podwright.bringup.plan.systems import SYSTEMS
from podwright.bringup.plan.template import text_of
from podwright.spec.provisioning import AptSource

_KEYRINGS = "/etc/apt/keyrings"
_WHEELS, _PYTHON = "/usr/lib/podwright/wheels.py", "/opt/podwright/python"
_HEAD = "# Written by `podwright pod up`: what is changed here by hand is put back.\n"
# A dash: a kernel that does not have the key, or a container that may not set it, is no fault.
_SYSCTL = "/etc/sysctl.d/90-podwright.conf"
# Prints the first setting that the kernel goes by another value of; what it does not have, or lets nobody set, is no
# fault. Blanks are as the kernel writes them.
_KERNEL_LOOK = f"""\
sed -n 's/^-//; s/ *= */ /p' {_SYSCTL} | while read -r key wanted; do
    place=/proc/sys/$(echo "$key" | tr . /)
    [ -w "$place" ] || continue
    found=$(tr '\\t' ' ' <"$place")
    [ "$found" = "$wanted" ] || {{ echo "$key = $found, not $wanted"; exit 1; }}
done && echo as planned"""
_KERNEL = HostCommand(
    "the kernel's settings",
    check=("/bin/sh", "-c", _KERNEL_LOOK),
    sees="as planned",
    run=("/usr/lib/systemd/systemd-sysctl", _SYSCTL),
)


def sources(site: Site, host: str) -> Step | None:
    """Return further sources of packages, each trusted for what its own key signed, and the releases that are kept."""
    files = [HostFile(f"/etc/apt/sources.list.d/{each.name}.sources", source_text(each)) for each in _given(site)]
    files += _archive(site)
    minor = site.kubernetes_version.rpartition(".")[0]
    releases = {
        "kubernetes": ("kubeadm kubelet kubectl", minor if site.kubernetes is not None else None),
        "slurm": ("slurm* libslurm*", site.pod.bringup.versions.slurm if site.scheduler is not None else None),
    }
    for name, (packages, release) in releases.items():
        if release is not None:
            files.append(HostFile(f"/etc/apt/preferences.d/podwright-{name}", _pinned(packages, release)))
    return Step(files=tuple(files)) if files else None


def _archive(site: Site) -> list[HostFile]:
    """Return where packages come from at a site without a network, instead of what the system itself came with.

    It is known by the pod's authority, and its packages by the key that signed their list when it was made.
    """
    place = site.pod.bringup.archive
    if place is None:
        return []
    key, authority = f"{_KEYRINGS}/podwright-archive.asc", f"{_KEYRINGS}/podwright-ca.crt"
    source = ["Types: deb", f"URIs: {place}/packages/", "Suites: ./", f"Signed-By: {key}"]
    trusts = f'Acquire::https::{urlsplit(place).hostname}::CAInfo "{authority}";\n'
    alone = f"{_HEAD}# Packages come from the archive alone.\n"
    return [
        HostFile(key, secret="archive_public"),
        HostFile(authority, secret="ca_certificate"),
        HostFile("/etc/apt/apt.conf.d/70podwright-archive", f"{_HEAD.replace('#', '//')}{trusts}"),
        HostFile("/etc/apt/sources.list", alone),
        HostFile(f"/etc/apt/sources.list.d/{SYSTEMS[site.pod.bringup.os].sources}", alone),
        HostFile("/etc/apt/sources.list.d/podwright-archive.sources", _HEAD + lines_text(source)),
    ]


def _given(site: Site) -> tuple[AptSource, ...]:
    return site.pod.bringup.sources


def source_text(source: AptSource) -> str:
    """Return a source as apt reads it; a key of several lines is indented, and a blank one has a dot."""
    key = [f" {line}" if line.strip() else " ." for line in source.key.strip().splitlines()]
    rows = [f"URIs: {source.uri}", f"Suites: {' '.join(source.suites)}"]
    if source.components:
        rows.append(f"Components: {' '.join(source.components)}")
    return _HEAD + lines_text(["Types: deb", *rows, "Signed-By:", *key])


def _pinned(packages: str, release: str) -> str:
    """Return that packages, with all that they need of each other, stay at a release until the file says another."""
    return f"Package: {packages}\nPin: version {release}.*\nPin-Priority: 1001\n"


def base(site: Site, host: str) -> Step:
    """Return what every host has."""
    accounts = site.pod.bringup.users
    files = [
        site.remember("hosts file", _hosts_file),
        HostFile("/etc/hostname", f"{host}\n"),
        # sshd takes the first value that it reads of a setting, and an image may bring files of its own.
        HostFile(
            "/etc/ssh/sshd_config.d/00-podwright.conf",
            _HEAD + text_of("sshd.conf"),
            check="/usr/sbin/sshd -t -f %s",
            restarts=("ssh",),
            guards=True,
        ),
        HostFile(_SYSCTL, _HEAD + text_of("sysctl.conf"), restarts=("systemd-sysctl",)),
    ]
    folders = []
    for account in accounts:
        home = f"/home/{account.name}"
        name = account.name
        folders.append(HostFolder(f"{home}/.ssh", "0700", name, name))
        files.append(HostFile(f"{home}/.ssh/authorized_keys", lines_text(account.keys), "0600", name, name))
    return Step(
        packages=("openssh-server", "sudo"),
        accounts=tuple(HostAccount(account.name, account.uid) for account in accounts),
        folders=tuple(folders),
        files=tuple(files),
        services=("ssh",),
        commands=(_KERNEL,),
    )


_CLOCK = """\
driftfile /var/lib/chrony/chrony.drift
makestep 1.0 3
rtcsync
"""


def time(site: Site, host: str) -> Step | None:
    """Return the clock: one host follows those outside, and all others follow it."""
    outside = site.pod.bringup.time_servers
    if site.pod.bringup.roles.time is None and not outside:
        return None
    rows = [f"server {site.addresses[site.roles['time']]} iburst"]
    if site.is_on("time", host):
        networks = dict.fromkeys(str(ip_network(f"{each}/24", strict=False)) for each in site.addresses.values())
        # Where nobody outside answers, the hosts still agree among each other.
        rows = [*(f"server {each} iburst" for each in outside), "local stratum 10", *map("allow {}".format, networks)]
    text = _HEAD + lines_text(rows) + _CLOCK
    config = HostFile("/etc/chrony/chrony.conf", text, check="chronyd -p -f %s", restarts=("chrony",))
    return Step(packages=("chrony",), files=(config,), services=("chrony",))


def python(site: Site, host: str) -> Step | None:
    """Return Python packages out of the archive: its list must be signed before any pip is started for it."""
    place, names = site.pod.bringup.archive, site.pod.bringup.wheels
    if place is None or not names:
        return None
    text = (files("podwright.bringup.on_host") / "wheels.py").read_text("utf-8")
    words = (_PYTHON, _KEYRINGS, place, *names)
    verbs = {verb: ("/usr/bin/python3", _WHEELS, verb, *words) for verb in ("check", "install")}
    packages = HostCommand("Python packages", verbs["check"], "as planned", verbs["install"], tries=1)
    return Step(packages=("gpgv", "python3-venv"), files=(HostFile(_WHEELS, text, "0755"),), commands=(packages,))


def _hosts_file(site: Site) -> HostFile:
    """Return /etc/hosts, the same everywhere: no host needs a name server to find another."""
    rows = [f"{address} {host}" for host, address in site.addresses.items()]
    own = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    if site.kubernetes is not None:
        # Each host reaches the cluster through the balancer on its loopback.
        own.append(f"127.0.0.1 {balancer_name(site)}")
    return HostFile("/etc/hosts", _HEAD + lines_text([*own, *rows]))
