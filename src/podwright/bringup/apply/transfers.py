"""What hosts print and take in lengths that fit in no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol

from podwright.bringup.apply.observe import as_root, reach
from podwright.clients.ssh import Answer as SshAnswer
from podwright.clients.ssh import Feed

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site


class HostStreams(Protocol):
    """The way of large things to hosts and from them."""

    def fetch(self, site: Site, host: str, line: str, to: BinaryIO) -> SshAnswer:
        """Run a line of shell on a host as root, and write what it prints."""

    def give(self, site: Site, host: str, line: str, feed: Feed) -> SshAnswer:
        """Run a line of shell on a host as root, and let it read what `feed` writes."""


class SshStreams:
    """By ssh, with the user's own keys."""

    def fetch(self, site: Site, host: str, line: str, to: BinaryIO) -> SshAnswer:
        """Run a line of shell on a host as root, and write what it prints."""
        return reach(site.pod, host, site.addresses[host]).fetch(_command(site, line), to)

    def give(self, site: Site, host: str, line: str, feed: Feed) -> SshAnswer:
        """Run a line of shell on a host as root, and let it read what `feed` writes."""
        return reach(site.pod, host, site.addresses[host]).call(_command(site, line), feed)


def _command(site: Site, line: str) -> list[str]:
    return as_root(site.pod, ["/bin/sh", "-c", line])
