"""What a host should be: its ports as the pod's design cables them, and until when its certificates hold."""

from __future__ import annotations

import json
import ssl
from typing import Any, Dict, Iterator, List, Optional

from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import names_in, read_text
from ..page import Labels, MetricSample

EXPECTED_FILE = "/etc/podwright/expected.json"
_CERTIFICATE_FOLDERS = (
    "/etc/podwright/podwright-exporter",
    "/etc/podwright/podwright-slurm-exporter",
    "/etc/podwright/podwright-hand",
    "/etc/podwright/podwright-remedy",
    "/etc/prometheus",
    "/etc/docker/registry/tls",
    "/etc/systemd/podwright-logs",
    "/etc/kubernetes/pki",
    "/etc/kubernetes/pki/etcd",
)
_ENDINGS = (".crt", ".pem")


def expected_samples(scope: Scope) -> List[MetricSample]:
    """Return the ports that the design gives this host, and the ends of certificates; a ValueError for a bad file."""
    return [*_ports(read_text(scope.path(EXPECTED_FILE))), *_certificates(scope)]


def _ports(text: str) -> Iterator[MetricSample]:
    """Yield how fast each port should be, with the switch it leads to."""
    document: Dict[str, Any] = json.loads(text) if text else {}
    for port in document.get("ports", ()):
        labels: Labels = (("device", port["device"]), ("port", port["port"]), ("leaf", port["leaf"]))
        yield MetricSample("podwright_port_design_bytes_per_second", labels, float(port["bytes_per_second"]))


def _certificates(scope: Scope) -> Iterator[MetricSample]:
    for folder in _CERTIFICATE_FOLDERS:
        for name in sorted(names_in(scope.path(folder))):
            file = "%s/%s" % (folder, name)
            end = _end_of(scope.path(file)) if name.endswith(_ENDINGS) else None
            if end is not None:
                yield MetricSample("podwright_certificate_end_timestamp_seconds", (("file", file),), end)


def _end_of(path: str) -> Optional[float]:
    """Return until when a certificate holds; None for a file that is none, such as a key."""
    try:
        # What the standard library checks the names of a certificate with; there is no public way to read a file.
        decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined]
    except (OSError, ssl.SSLError):
        return None
    return float(ssl.cert_time_to_seconds(decoded["notAfter"]))
