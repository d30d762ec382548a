"""All that hosts fetch when they boot from the network: iPXE's scripts, and the answers of their installers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.bringup.answers import autoinstall_text, kickstart_text, preseed_text
from podwright.bringup.netboot import base_url, hyphens, machines, netboot_of, source_of
from podwright.bringup.slurm import lines_text

if TYPE_CHECKING:
    from podwright.bringup.site import Site


# The first that is there: a host that is done, a host that is not, a machine that nobody knows.
_TRIED = ("done/${net0/mac:hexhyp}.ipxe", "mac/${net0/mac:hexhyp}.ipxe", "unknown.ipxe")


def boot_files(site: Site) -> dict[str, str]:
    """Return every file that hosts fetch, by its path below the server's root."""
    given = netboot_of(site)
    files = {
        "boot.ipxe": _script(" || ".join(f"chain --autofree {path}" for path in _TRIED)),
        # Its lease shows that it is there; `pod nodes` names it.
        "unknown.ipxe": _script("echo ${net0/mac} is no host of this pod", "sleep 30", "exit"),
    }
    for mac, host in machines(site).items():
        files[f"mac/{hyphens(mac)}.ipxe"] = _script(*_boot_lines(site, host))
        if given.install == "installer":
            files |= _answers(site, host, mac)
    return files


def _script(*lines: str) -> str:
    return lines_text(["#!ipxe", *lines])


def _boot_lines(site: Site, host: str) -> list[str]:
    given, url = netboot_of(site), base_url(site)
    if given.install == "image":
        arguments = f"root_url={url}/files/root.squashfs hostname={host}"
        return _kernel(f"{url}/files/vmlinuz", f"{url}/files/initrd", arguments)
    return {
        "debian-12": _kernel(
            f"{url}/installer/linux",
            f"{url}/installer/initrd.gz",
            f"auto=true priority=critical url={url}/answers/{host}.cfg hostname={host} domain= ---",
        ),
        "ubuntu-24.04": _kernel(
            f"{url}/files/vmlinuz",
            f"{url}/files/initrd",
            f"ip=dhcp url={url}/files/live-server.iso autoinstall ds=nocloud-net;s={url}/answers/{host}/ ---",
        ),
        "rhel-9": _kernel(
            f"{url}/files/vmlinuz",
            f"{url}/files/initrd",
            f"ip=dhcp inst.repo={source_of(site)} inst.ks={url}/answers/{host}.ks inst.text",
        ),
    }[given.os]


def _kernel(kernel: str, initrd: str, arguments: str) -> list[str]:
    name = initrd.rpartition("/")[2]
    return [f"kernel {kernel} initrd={name} {arguments}", f"initrd --name {name} {initrd}", "boot"]


def _answers(site: Site, host: str, mac: str) -> dict[str, str]:
    if netboot_of(site).os == "debian-12":
        return {f"answers/{host}.cfg": preseed_text(site, host, mac)}
    if netboot_of(site).os == "rhel-9":
        return {f"answers/{host}.ks": kickstart_text(site, host, mac)}
    return {
        f"answers/{host}/user-data": autoinstall_text(site, host, mac),
        f"answers/{host}/meta-data": f"instance-id: {host}\nlocal-hostname: {host}\n",
        f"answers/{host}/vendor-data": "",
    }
