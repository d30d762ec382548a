"""The server that hosts without a system boot from: DHCP, TFTP and HTTP on one host."""

from __future__ import annotations

from podwright.bringup.bootscripts import boot_files
from podwright.bringup.host import HostFile, HostFolder, Step
from podwright.bringup.netboot import NetbootPlaces, dnsmasq_text, netboot_of, nginx_text
from podwright.bringup.site import Site


def server(site: Site, host: str) -> Step | None:
    """Return the server with all that hosts fetch from it."""
    if not site.has("netboot") or not site.is_on("netboot", host):
        return None
    places = NetbootPlaces()
    fetched = [HostFile(f"{places.root}/{path}", text) for path, text in boot_files(site).items()]
    folders = dict.fromkeys(file.path.rpartition("/")[0] for file in fetched)
    written = [f"{places.root}/done", f"{places.root}/.part"]
    packages = ["dnsmasq", "nginx-light", "ipxe"]
    if netboot_of(site).os == "debian-12":
        packages.append("debian-installer-12-netboot-amd64")
    config = HostFile(
        "/etc/dnsmasq.d/podwright.conf",
        dnsmasq_text(site, places),
        check="dnsmasq --test --conf-file=%s",
        restarts=("dnsmasq",),
    )
    web = HostFile("/etc/nginx/nginx.conf", nginx_text(site, places), check="nginx -t -q -c %s", restarts=("nginx",))
    return Step(
        packages=tuple(packages),
        folders=(
            *(HostFolder(folder) for folder in folders),
            HostFolder(f"{places.root}/files"),
            *(HostFolder(folder, "0750", places.user, places.user) for folder in written),
        ),
        files=(config, web, *fetched),
        services=("dnsmasq", "nginx"),
    )
