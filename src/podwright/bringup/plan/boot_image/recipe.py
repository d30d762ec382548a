"""What the image of a pod is made of. The server makes it itself, from the packages that it gets its own from."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from podwright.bringup.plan.host import HostCommand, HostFile
from podwright.bringup.plan.netboot import NetbootPlaces, netboot_of

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

TOOLS = ("mmdebstrap", "squashfs-tools")
"""The packages that the server makes it with."""
FOLDER = "/usr/local/lib/podwright/bootimage"
"""Where the server keeps the recipe."""
_SUITE = "bookworm"
# Less than the bound on tasks of the role: what is ended here leaves nothing behind.
_TOO_LONG_S = 1700
# A system that `up` can begin with, and what writes it to a disk, for both kinds of firmware.
_PACKAGES = (
    *("linux-image-amd64", "initramfs-tools", "busybox", "zstd", "systemd-sysv", "dbus", "udev", "kmod"),
    *("iproute2", "procps", "ca-certificates", "openssh-server", "sudo", "python3", "python3-apt"),
    *("e2fsprogs", "dosfstools", "fdisk", "grub-pc-bin", "grub-efi-amd64-bin", "grub2-common"),
)


def recipe_files() -> list[HostFile]:
    """Return the files that the server makes the image from: a script, and below `root` what goes into the system."""
    parts = {
        "build.sh": "build.sh",
        "root/etc/initramfs-tools/hooks/podwright": "initrd.sh",
        "root/etc/initramfs-tools/scripts/podwright": "boot.sh",
        "root/usr/lib/podwright/install.sh": "install.sh",
        "root/etc/initramfs-tools/conf.d/podwright": "initramfs.conf",
        "root/etc/systemd/network/80-podwright.network": "podwright.network",
        "root/etc/systemd/system/ssh.service.d/podwright.conf": "ssh.conf",
        "root/etc/systemd/system/podwright-install.service": "podwright-install.service",
    }
    folder = files("podwright.bringup.plan") / "boot_image"
    return [
        HostFile(f"{FOLDER}/{path}", (folder / name).read_text(), "0755" if name.endswith(".sh") else "0644")
        for path, name in parts.items()
    ]


def image_packages(site: Site) -> list[str]:
    """Return the packages of the image: ours, and those that the pod's file adds."""
    return list(dict.fromkeys([*_PACKAGES, *netboot_of(site).packages]))


def image_command(site: Site, places: NetbootPlaces) -> HostCommand:
    """Return what makes the image, where there is none or one that was made from another recipe."""
    packages = ",".join(image_packages(site))
    recipe = hashlib.sha256(f"{_SUITE} {packages}\n".encode())
    for file in recipe_files():
        recipe.update(f"{file.path} {file.digest}\n".encode())
    target = f"{places.root}/files"
    build = (f"{FOLDER}/build.sh", target, _SUITE, recipe.hexdigest(), packages)
    return HostCommand(
        "image",
        check=("cat", f"{target}/recipe"),
        sees=recipe.hexdigest(),
        run=("timeout", "--kill-after=60", str(_TOO_LONG_S), *build),
        tries=1,
    )
