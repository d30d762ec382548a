"""Central logs: every host sends its journal to one, over TLS; both sides are known by the pod's own authority."""

from __future__ import annotations

from podwright.bringup.plan.host import HostFile, HostFolder, Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.template import text_of, unit_of

PORT, _INSIDE_PORT = 19532, 19531
_HEAD = "# Written by `podwright pod up`.\n"
_PACKAGE = "systemd-journal-remote"
_FOLDER = "/etc/systemd/podwright-logs"
_SERVER, _SOCKET = "systemd-journal-remote", "systemd-journal-remote.socket"
_TUNNEL = "podwright-logs"
_SENDER = "systemd-journal-upload"
# The sender's account is made again whenever it starts; the group whose logs it reads is what it always has.
_READERS = "systemd-journal"
# It gives up where the server is away; who restarts it must not give up, too.
_PATIENT = f"{_HEAD}[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=on-failure\nRestartSec=10\n"
_LISTENS = f"{_HEAD}[Socket]\nListenStream=\nListenStream=127.0.0.1:{_INSIDE_PORT}\n"
_TAKES = f"""\
{_HEAD}[Service]
ExecStart=
ExecStart=/lib/systemd/systemd-journal-remote --listen-http=-3 --output=/var/log/journal/remote/
"""


def server(site: Site, host: str) -> Step | None:
    """Return what takes in the journals of all hosts, below /var/log/journal/remote.

    Debian builds the program without the part that asks a sender for its certificate: stunnel before it does that.
    """
    if not site.has("logging") or not site.is_on("monitoring", host):
        return None
    places = (f"/etc/systemd/system/{_SOCKET}.d", f"/etc/systemd/system/{_SERVER}.service.d")
    tunnel = (_TUNNEL,)
    return Step(
        packages=(_PACKAGE, "stunnel4"),
        folders=(HostFolder(_FOLDER), *map(HostFolder, places)),
        files=(
            *_certificates("logs", _SERVER, _TUNNEL),
            HostFile(f"{_FOLDER}/tunnel.conf", _tunnel_text(site.addresses[host]), restarts=tunnel),
            unit_of(_TUNNEL, folder=_FOLDER),
            HostFile(f"{places[0]}/podwright.conf", _LISTENS, restarts=(_SOCKET,)),
            HostFile(f"{places[1]}/podwright.conf", _TAKES, restarts=(_SOCKET,)),
        ),
        services=(_SOCKET, _TUNNEL),
    )


def _tunnel_text(address: str) -> str:
    return text_of("logs-tunnel.conf", address=address, port=PORT, inside=_INSIDE_PORT, folder=_FOLDER)


def sender(site: Site, host: str) -> Step | None:
    """Return what sends a host's journal, and goes on where it was when the server was away."""
    if not site.has("logging") or site.is_on("monitoring", host):
        return None
    places = (f"/etc/systemd/system/{_SENDER}.service.d", "/etc/systemd/journal-upload.conf.d")
    return Step(
        packages=(_PACKAGE,),
        folders=(HostFolder(_FOLDER), *map(HostFolder, places)),
        files=(
            *_certificates("logs_client", _READERS, _SENDER),
            HostFile(f"{places[0]}/podwright.conf", _PATIENT, restarts=(_SENDER,)),
            HostFile(f"{places[1]}/podwright.conf", _upload_text(site), restarts=(_SENDER,)),
        ),
        services=(_SENDER,),
    )


def _certificates(name: str, group: str, service: str) -> tuple[HostFile, ...]:
    return (
        HostFile(f"{_FOLDER}/ca.crt", secret="ca_certificate", restarts=(service,)),
        HostFile(f"{_FOLDER}/{name}.crt", secret=f"{name}_certificate", restarts=(service,)),
        HostFile(f"{_FOLDER}/{name}.key", "", "0640", "root", group, f"{name}_key", restarts=(service,)),
    )


def _upload_text(site: Site) -> str:
    rows = (
        f"URL=https://{site.roles['monitoring']}:{PORT}",
        f"ServerKeyFile={_FOLDER}/logs_client.key",
        f"ServerCertificateFile={_FOLDER}/logs_client.crt",
        f"TrustedCertificateFile={_FOLDER}/ca.crt",
    )
    return f"{_HEAD}[Upload]\n" + "".join(f"{row}\n" for row in rows)
