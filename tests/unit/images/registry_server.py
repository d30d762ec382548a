"""The registry program of Debian on a free port of this machine's loopback, for tests that speak to a real one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER, PASSWORD = "ada", "secret"
HASH = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"
"""Of the password, as htpasswd writes it."""


@contextmanager
def registry_server(
    folder: Path, closed: bool = False, read_only: bool = False, pair: tuple[str, str] | None = None
) -> Iterator[str]:
    """Gives its address; `closed`: only somebody with the password may look; `pair`: certificate and key for TLS."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
    http: dict[str, object] = {"addr": f"127.0.0.1:{port}"}
    config = {"version": 0.1, "log": {"level": "error"}, "storage": storage, "http": http}
    if pair is not None:
        http["tls"] = {name: str(folder / name) for name in ("certificate", "key")}
        for name, text in zip(("certificate", "key"), pair, strict=True):
            (folder / name).write_text(text)
    if read_only:
        storage["maintenance"] = {"readonly": {"enabled": True}}  # type: ignore[dict-item]
    if closed:
        (folder / "htpasswd").write_text(f"{USER}:{HASH}\n")
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
    (folder / "config.yml").write_text(json.dumps(config))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REGISTRY_")}
    with (folder / "log").open("wb") as log:
        command = ["docker-registry", "serve", str(folder / "config.yml")]
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
        try:
            _wait_for(server, port, folder / "log")
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"the registry does not answer: {log.read_text()}")
