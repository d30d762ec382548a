"""Central logs: every host sends its journal to one, over TLS; both sides are known by the pod's own authority."""

from __future__ import annotations

from podwright.bringup.host import HostFile, HostFolder, Step
from podwright.bringup.site import Site

PORT = 19532
_HEAD = "# Written by `podwright pod up`.\n"
_PACKAGE = "systemd-journal-remote"
_FOLDER = "/etc/systemd/podwright-logs"
_SERVER, _SOCKET = "systemd-journal-remote", "systemd-journal-remote.socket"
_SENDER = "systemd-journal-upload"
# The sender's account is made anew whenever it starts; the group whose logs it reads is what it always has.
_READERS = "systemd-journal"
# It gives up where the server is away; who restarts it must not give up, too.
_PATIENT = f"{_HEAD}[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=on-failure\nRestartSec=10\n"


def server(site: Site, host: str) -> Step | None:
    """Return what takes in the journals of all hosts, each into files of its own below /var/log/journal/remote."""
    if not site.has("logging") or not site.is_on("monitoring", host):
        return None
    listens = f"{_HEAD}[Socket]\nListenStream=\nListenStream={site.addresses[host]}:{PORT}\n"
    places = (f"/etc/systemd/system/{_SOCKET}.d", "/etc/systemd/journal-remote.conf.d")
    return Step(
        packages=(_PACKAGE,),
        folders=(HostFolder(_FOLDER), *map(HostFolder, places)),
        files=(
            *_certificates("logs", _SERVER, _SERVER),
            HostFile(f"{places[0]}/podwright.conf", listens, restarts=(_SOCKET,)),
            HostFile(f"{places[1]}/podwright.conf", _settings("Remote", "logs", "SplitMode=host"), restarts=(_SERVER,)),
        ),
        services=(_SOCKET,),
    )


def sender(site: Site, host: str) -> Step | None:
    """Return what sends a host's journal, and goes on where it was when the server was away."""
    if not site.has("logging") or site.is_on("monitoring", host):
        return None
    url = f"URL=https://{site.roles['monitoring']}:{PORT}"
    places = (f"/etc/systemd/system/{_SENDER}.service.d", "/etc/systemd/journal-upload.conf.d")
    return Step(
        packages=(_PACKAGE,),
        folders=(HostFolder(_FOLDER), *map(HostFolder, places)),
        files=(
            *_certificates("logs_client", _READERS, _SENDER),
            HostFile(f"{places[0]}/podwright.conf", _PATIENT, restarts=(_SENDER,)),
            HostFile(f"{places[1]}/podwright.conf", _settings("Upload", "logs_client", url), restarts=(_SENDER,)),
        ),
        services=(_SENDER,),
    )


def _certificates(name: str, group: str, service: str) -> tuple[HostFile, ...]:
    return (
        HostFile(f"{_FOLDER}/ca.crt", secret="ca_certificate", restarts=(service,)),
        HostFile(f"{_FOLDER}/{name}.crt", secret=f"{name}_certificate", restarts=(service,)),
        HostFile(f"{_FOLDER}/{name}.key", "", "0640", "root", group, f"{name}_key", restarts=(service,)),
    )


def _settings(section: str, name: str, first: str) -> str:
    rows = (
        first,
        f"ServerKeyFile={_FOLDER}/{name}.key",
        f"ServerCertificateFile={_FOLDER}/{name}.crt",
        f"TrustedCertificateFile={_FOLDER}/ca.crt",
    )
    return f"{_HEAD}[{section}]\n" + "".join(f"{row}\n" for row in rows)
