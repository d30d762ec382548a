"""The server that hosts without a system boot from: DHCP, TFTP and HTTP on one host."""

from __future__ import annotations

from podwright.bringup.plan.boot_image import recipe
from podwright.bringup.plan.boot_scripts import boot_files
from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.netboot import (
    NetbootPlaces,
    boots_by_https,
    dnsmasq_text,
    netboot_of,
    nginx_text,
    token_command,
)
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.template import text_of


def server(site: Site, host: str) -> Step | None:
    """Return the server with all that hosts fetch from it."""
    if not site.has("netboot") or not site.is_on("netboot", host):
        return None
    places = NetbootPlaces()
    fetched = [HostFile(f"{places.root}/{path}", text) for path, text in boot_files(site).items()]
    folders = dict.fromkeys(file.path.rpartition("/")[0] for file in fetched)
    packages = ("dnsmasq", "nginx-light", "ipxe")
    config = HostFile(
        "/etc/dnsmasq.d/podwright.conf",
        dnsmasq_text(site, places),
        check="dnsmasq --test --conf-file=%s",
        restarts=("dnsmasq",),
    )
    web = HostFile("/etc/nginx/nginx.conf", nginx_text(site, places), check="nginx -t -q -c %s", restarts=("nginx",))
    own = []
    if boots_by_https(site):
        own = [
            # Which firmware is told of.
            HostFile(f"{places.keys}/ca.crt", secret="netboot_ca_certificate"),
            HostFile(f"{places.keys}/netboot.crt", secret="netboot_certificate", restarts=("nginx",)),
            HostFile(f"{places.keys}/netboot.key", "", "0600", secret="netboot_key", restarts=("nginx",)),
        ]
    tokens = HostFile(places.tokens, text_of("netboot-tokens.sh", root=places.root, user=places.user), "0755")
    return Step(
        packages=packages,
        folders=(
            *(HostFolder(folder) for folder in folders),
            HostFolder(f"{places.root}/files"),
            HostFolder(f"{places.root}/waiting"),
            HostFolder(f"{places.root}/done", "0750", places.user, places.user),
            HostFolder(places.tokens.rpartition("/")[0]),
        ),
        files=(*own, config, web, tokens, *fetched),
        services=("dnsmasq", "nginx"),
        commands=(token_command(site, places),),
    )


def system(site: Site, host: str) -> Step | None:
    """Return what the server sends as a system: an installer that is a package, or an image that it makes."""
    if not site.has("netboot") or not site.is_on("netboot", host):
        return None
    given = netboot_of(site)
    if given.install == "installer":
        return Step(packages=("debian-installer-12-netboot-amd64",)) if given.os == "debian-12" else None
    if {given.os, site.pod.bringup.os} != {"debian-12"}:
        hint = "let both be debian-12, or write `install: installer`"
        message = f"is {given.os}, and the server runs {site.pod.bringup.os}: an image is made of Debian 12 alone"
        raise site.pod.refusal([("bringup.netboot.os", message, hint)])
    files = recipe.recipe_files()
    folders = dict.fromkeys(file.path.rpartition("/")[0] for file in files)
    return Step(
        packages=recipe.TOOLS,
        folders=tuple(HostFolder(folder) for folder in folders),
        files=tuple(files),
        commands=(recipe.image_command(site, NetbootPlaces()),),
    )
