"""A certificate of this machine's, and a fake of NVIDIA's library for the exporter."""

from __future__ import annotations

import subprocess

import pytest

from podwright.telemetry.server import Guard
from tests.fixtures.nvml import fake_nvml, nvml_builds  # noqa: F401

TOKEN = "s3cret"


@pytest.fixture(scope="session")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """What a page on a network needs, made once."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "server.crt", folder / "server.key"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", *kind, *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return Guard(str(certificate), str(key), TOKEN)
