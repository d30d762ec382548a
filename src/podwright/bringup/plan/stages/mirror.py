"""The mirror of packages: each is fetched from outside once, however many hosts install it."""

from __future__ import annotations

from urllib.parse import urlsplit

from podwright.bringup.plan.host import HostFile, Step
from podwright.bringup.plan.site import MIRROR_PORT, Site

_CONFIG = "/etc/apt-cacher-ng/podwright.conf"
# apt has been seen to wait for ever for an answer that the mirror had given to the request before.
_PATIENCE = """\
Acquire::http::Pipeline-Depth "0";
Acquire::http::Timeout "30";
Acquire::Retries "3";
"""


def server(site: Site, host: str) -> Step | None:
    """Return the mirror itself."""
    if not site.has("mirror") or not site.is_on("mirror", host):
        return None
    rows = [f"Port: {MIRROR_PORT}", f"BindAddress: {site.addresses[host]}", "ReportPage:", "ForceManaged: 0"]
    # An answer that was asked for over a connection which its source had closed is never given: each has its own.
    rows += ["ReuseConnections: 0", "NetworkTimeout: 30"]
    text = "# Written by `podwright pod up`. The page of reports, which anybody could use, is off.\n"
    return Step(
        packages=("apt-cacher-ng",),
        files=(HostFile(_CONFIG, text + "".join(f"{row}\n" for row in rows), restarts=("apt-cacher-ng",)),),
        services=("apt-cacher-ng",),
    )


def client(site: Site, host: str) -> Step | None:
    """Return what makes apt ask the mirror; what it does not know it fetches through it."""
    if not site.has("mirror"):
        return None
    place = site.addresses[site.roles["mirror"]]
    proxies = [f'Acquire::http::Proxy "http://{place}:{MIRROR_PORT}";\n']
    archive = site.pod.bringup.archive
    if archive is not None:
        # It is on site, and on a port that the mirror asks nobody at.
        proxies.append(f'Acquire::https::Proxy::{urlsplit(archive).hostname} "DIRECT";\n')
    text = f"# Written by `podwright pod up`.\n{''.join(proxies)}{_PATIENCE}"
    # With the mirror off, apt would ask in vain.
    return Step(files=(HostFile("/etc/apt/apt.conf.d/80podwright-mirror", text, leaves=True),))
