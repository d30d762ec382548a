"""All that hosts fetch when they boot from the network: iPXE's scripts, and the answers of their installers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.bringup.plan.installer_answers import (
    autoinstall_text,
    done_line,
    host_text,
    kickstart_text,
    preseed_text,
)
from podwright.bringup.plan.netboot import base_url, hyphens, machines, netboot_of, source_of
from podwright.bringup.plan.slurm import lines_text

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site


# A host that is done leaves: whether its mark is there is all that is looked at. Then the first that is there: the
# script of a host that is not, that for a machine that nobody knows.
_DONE = "imgfetch --name done done/${net0/mac:hexhyp}.ipxe && exit ||"
_TRIED = ("mac/${net0/mac:hexhyp}.ipxe", "unknown.ipxe")


def boot_files(site: Site) -> dict[str, str]:
    """Return every file that hosts fetch, by its path below the server's root."""
    given = netboot_of(site)
    files = {
        "boot.ipxe": _script(_DONE, " || ".join(f"chain --autofree {path}" for path in _TRIED)),
        # Its lease shows that it is there; `pod nodes` names it.
        "unknown.ipxe": _script("echo ${net0/mac} is no host of this pod", "sleep 30", "exit"),
        # A host that runs asks for it; `pod nodes` looks for that.
        "running": "",
    }
    lines_of, answers_of = (_boot_lines, _answers) if given.install == "installer" else (_image_lines, _image_answers)
    for mac, host in machines(site).items():
        files[f"mac/{hyphens(mac)}.ipxe"] = _script(*lines_of(site, host, mac))
        files |= answers_of(site, host, mac)
    return files


def _script(*lines: str) -> str:
    return lines_text(["#!ipxe", *lines])


def _image_lines(site: Site, host: str, mac: str) -> list[str]:
    """Return how a host boots the image; its name and digest are known when it is made, and `image.ipxe` sets them."""
    given, url = netboot_of(site), base_url(site)
    ours = {"url": url, "host": host, "image": "${image}", "digest": "${digest}"}
    if given.install == "image-on-disk":
        ours["disk"] = given.disk
    # A host that cannot boot tries again after a minute. The initrd takes the card of that address.
    system = f"boot=podwright ip=dhcp BOOTIF=01-{hyphens(mac)} panic=60"
    arguments = " ".join([system, *(f"podwright.{name}={value}" for name, value in ours.items()), "---"])
    files = f"{url}/files/${{image}}"
    kernel = _kernel(site, f"{files}/vmlinuz", f"{files}/initrd", arguments)
    return [f"chain --autofree {url}/files/image.ipxe", *kernel]


def _image_answers(site: Site, host: str, mac: str) -> dict[str, str]:
    files = {f"hosts/{host}.sh": host_text(site, host)}
    if netboot_of(site).install == "image-on-disk":
        files[f"answers/{host}.done.sh"] = lines_text([done_line(site, mac)])
    return files


def _boot_lines(site: Site, host: str, mac: str) -> list[str]:
    given, url = netboot_of(site), base_url(site)
    return {
        "debian-12": _kernel(
            site,
            f"{url}/installer/linux",
            f"{url}/installer/initrd.gz",
            f"auto=true priority=critical url={url}/answers/{host}.cfg hostname={host} domain= ---",
        ),
        "ubuntu-24.04": _kernel(
            site,
            f"{url}/files/vmlinuz",
            f"{url}/files/initrd",
            f"ip=dhcp url={url}/files/live-server.iso autoinstall ds=nocloud-net;s={url}/answers/{host}/ ---",
        ),
        "rhel-9": _kernel(
            site,
            f"{url}/files/vmlinuz",
            f"{url}/files/initrd",
            f"ip=dhcp inst.repo={source_of(site)} inst.ks={url}/answers/{host}.ks inst.text",
        ),
    }[given.os]


def _kernel(site: Site, kernel: str, initrd: str, arguments: str) -> list[str]:
    """Return how a kernel is started; what the site adds stands last: an installed system keeps what follows dashes."""
    name = initrd.rpartition("/")[2]
    line = f"kernel {kernel} initrd={name} {arguments} {netboot_of(site).arguments}".rstrip()
    return [line, f"initrd --name {name} {initrd}", "boot"]


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
