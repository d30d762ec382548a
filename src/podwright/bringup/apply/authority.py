"""The pod's own certificate authority, by openssl: keys are made in a folder that only this user sees, and removed."""

from __future__ import annotations

import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from podwright.spec.problems import refuse

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
RSA = ("-newkey", "rsa:3072", "-nodes")
"""What the firmware of machines knows, where it knows TLS."""
_DAYS = 3650
_USES = ("basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature")


def new(subject: str, name: str = "ca", kind: Sequence[str] = EC) -> dict[str, str]:
    """Return key and certificate of a new authority."""
    with tempfile.TemporaryDirectory(prefix="podwright-ca-") as place:
        folder = Path(place)
        _request(folder, name, f"/CN={subject}", kind)
        return _pair(folder, name)


def key_pair(name: str) -> dict[str, str]:
    """Return a key that signs and the public one that is asked whether it did."""
    with tempfile.TemporaryDirectory(prefix="podwright-ca-") as place:
        folder = Path(place)
        _openssl(folder, ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{name}_key"])
        _openssl(folder, ["pkey", "-in", f"{name}_key", "-pubout", "-out", f"{name}_public"])
        return {part: (folder / part).read_text() for part in (f"{name}_key", f"{name}_public")}


def sign(
    authority: Mapping[str, str],
    name: str,
    hosts: Sequence[str],
    side: str = "server",
    kind: Sequence[str] = EC,
    days: int = _DAYS,
) -> dict[str, str]:
    """Return key and certificate of a server that serves under these names, or of a client that is known by them."""
    others = ",".join(f"{'IP' if host[0].isdigit() or ':' in host else 'DNS'}:{host}" for host in hosts)
    uses = (f"extendedKeyUsage={side}Auth", f"subjectAltName={others}")
    return _signed(authority, name, f"/CN={hosts[0]}", [*kind, *_extended(uses)], days)


def sign_client(authority: Mapping[str, str], name: str, subject: str, days: int) -> dict[str, str]:
    """Return key and certificate of a client that is known by its subject, for some days."""
    return _signed(authority, name, subject, [*EC, *_extended(["extendedKeyUsage=clientAuth"])], days)


def _extended(uses: Sequence[str]) -> Iterator[str]:
    for extension in (*_USES, *uses):
        yield from ("-addext", extension)


def end_of(certificate: str) -> float:
    """Return when a certificate ends, in seconds since 1970."""
    with tempfile.TemporaryDirectory(prefix="podwright-ca-") as place:
        (Path(place) / "certificate").write_text(certificate)
        said = _openssl(Path(place), ["x509", "-in", "certificate", "-noout", "-enddate"])
    return float(ssl.cert_time_to_seconds(said.partition("=")[2].strip()))


def _signed(authority: Mapping[str, str], name: str, subject: str, more: Sequence[str], days: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="podwright-ca-") as place:
        folder = Path(place)
        for part in ("key", "certificate"):
            (folder / f"ca_{part}").write_text(authority[f"ca_{part}"])
        _request(folder, name, subject, ["-CA", "ca_certificate", "-CAkey", "ca_key", *more], days)
        return _pair(folder, name)


def _request(folder: Path, name: str, subject: str, more: Sequence[str], days: int = _DAYS) -> None:
    parts = ["-days", str(days), "-subj", subject, "-keyout", f"{name}_key", "-out", f"{name}_certificate"]
    _openssl(folder, ["req", "-x509", *parts, *more])


def _openssl(folder: Path, arguments: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            ["openssl", *arguments], cwd=folder, umask=0o077, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise refuse("openssl is not on this machine", hint="apt-get install openssl") from None
    if done.returncode:
        raise refuse(f"openssl made no key: {done.stderr.strip()[-200:]}")
    return done.stdout


def _pair(folder: Path, name: str) -> dict[str, str]:
    return {f"{name}_{part}": (folder / f"{name}_{part}").read_text() for part in ("key", "certificate")}
