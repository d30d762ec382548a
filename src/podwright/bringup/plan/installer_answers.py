"""What unattended installers are told: Debian's preseed, Ubuntu's autoinstall, RHEL's kickstart; no password."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from podwright.bringup.plan.netboot import HTTP_PORT, hyphens, machines, netboot_of, source_of
from podwright.bringup.plan.slurm import lines_text
from podwright.bringup.plan.template import text_of

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

_HEAD = "# Written by `podwright pod up`."

# A host runs when one can log in, whatever of it was started: sshd is asked first.
_UNIT = "podwright-running.service"


def settled_lines(site: Site) -> list[str]:
    """Return the shell lines that make a fresh system a host of the pod: whose keys it takes, and that it tells."""
    user = site.pod.bringup.user
    home = "/root" if user == "root" else f"/home/{user}"
    keys = "".join(f"{key}\\n" for key in netboot_of(site).keys)
    unit = text_of("podwright-running.service", place=_place(site)).replace("\n", "\\n")
    lines = [
        f"install -d -m 700 -o {user} -g {user} {home}/.ssh",
        f"printf %b {shlex.quote(keys)} >{home}/.ssh/authorized_keys",
        f"chown {user}:{user} {home}/.ssh/authorized_keys",
    ]
    if user != "root":
        lines.append(f"echo {shlex.quote(f'{user} ALL=(ALL) NOPASSWD: ALL')} >/etc/sudoers.d/90-podwright")
    return [*lines, f"printf %b {shlex.quote(unit)} >/etc/systemd/system/{_UNIT}", f"systemctl --quiet enable {_UNIT}"]


def done_line(site: Site, mac: str) -> str:
    """Return the shell line that says of a host that it is installed.

    It asks for its token, and then has the server move the mark of that name. All of it is bash alone, which all
    systems have: an installer may have no program that can do so.
    """
    host = machines(site)[mac]
    token = f"GET /answers/{host}.token HTTP/1.0\\r\\n\\r\\n"
    moved = f"MOVE /waiting/{host}/%s HTTP/1.0\\r\\nDestination: /done/{hyphens(mac)}.ipxe\\r\\n\\r\\n"
    begin = f"exec 3<>{_place(site)}; printf"
    read = "while read -r line; do token=$line; done <&3"
    return f'{begin} {shlex.quote(token)} >&3; {read}; {begin} {shlex.quote(moved)} "$token" >&3; cat <&3'


def _place(site: Site) -> str:
    return f"/dev/tcp/{site.addresses[site.roles['netboot']]}/{HTTP_PORT}"


def finish_lines(site: Site, mac: str) -> list[str]:
    """Return the shell lines that end an installation."""
    return [*settled_lines(site), done_line(site, mac)]


def host_text(site: Site, host: str) -> str:
    """Return what a system from the image does before it starts, to be this host; bash runs it."""
    user = site.pod.bringup.user
    account = [] if user == "root" else [f"useradd --create-home --shell /bin/bash {user}"]
    # Without its own name sudo asks for it in the network, until `up` gives the host the names of all.
    name = [f"echo {host} >/etc/hostname", f"printf '127.0.0.1 localhost\\n127.0.1.1 {host}\\n' >/etc/hosts"]
    return lines_text([_HEAD, *name, *account, *settled_lines(site)])


def preseed_text(site: Site, host: str, mac: str) -> str:
    """Return the answers of Debian's installer; the way in is a key, and no password works."""
    source, user = urlsplit(source_of(site)), site.pod.bringup.user
    return text_of(
        "debian.cfg",
        host=host,
        mirror=source.netloc,
        folder=source.path or "/",
        account="\n".join(f"d-i {row}" for row in _debian_account(user)),
        disk=netboot_of(site).disk,
        last=shlex.quote("; ".join(finish_lines(site, mac))),
    )


def _debian_account(user: str) -> list[str]:
    if user == "root":
        locked = "passwd/root-password-crypted password *"
        return ["passwd/root-login boolean true", "passwd/make-user boolean false", locked]
    return [
        "passwd/root-login boolean false",
        "passwd/make-user boolean true",
        f"passwd/user-fullname string {user}",
        f"passwd/username string {user}",
        "passwd/user-password-crypted password *",
    ]


def autoinstall_text(site: Site, host: str, mac: str) -> str:
    """Return the answers of Ubuntu's installer."""
    given = netboot_of(site)
    user = site.pod.bringup.user
    script = "; ".join(finish_lines(site, mac))
    answers = {
        "version": 1,
        "locale": "C.UTF-8",
        "keyboard": {"layout": "us"},
        # A star is a password that nothing matches.
        "identity": {"hostname": host, "username": "installer" if user == "root" else user, "password": "*"},
        "ssh": {"install-server": True, "allow-pw": False, "authorized-keys": list(given.keys)},
        "storage": {"layout": {"name": "direct", "match": {"path": given.disk}}},
        "apt": {"fallback": "abort", "geoip": False, "mirror-selection": {"primary": [{"uri": source_of(site)}]}},
        "packages": ["python3", "python3-apt", "sudo"],
        "updates": "security",
        "late-commands": [["curtin", "in-target", "--", "bash", "-c", script]],
        "shutdown": "reboot",
    }
    text = yaml.safe_dump({"autoinstall": answers}, sort_keys=False, width=1000)
    return f"#cloud-config\n{_HEAD}\n{text}"


def kickstart_text(site: Site, host: str, mac: str) -> str:
    """Return the answers of RHEL's installer and its kin."""
    user = site.pod.bringup.user
    return text_of(
        "rhel.ks",
        mac=mac,
        host=host,
        source=source_of(site),
        account="" if user == "root" else f"user --name={user} --lock\n",
        disk=netboot_of(site).disk.removeprefix("/dev/"),
        last="\n".join(finish_lines(site, mac)),
    )
