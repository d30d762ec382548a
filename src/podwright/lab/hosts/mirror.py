"""The only way out of a lab of hosts: serves them packages, which apt on this machine fetches once and keeps.

The socket was made in the lab's network and is inherited; the program itself has the machine's own network, and apt's
own configuration: whatever proxy or login this machine needs is used. Standard library only: it stays in memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HELPER = "/usr/lib/apt/apt-helper"
FRESH_S = 3600.0
"""How long a list of packages is believed; a package itself never changes."""
_PATH = re.compile(r"/(\d+)/((?:dists|pool)/[A-Za-z0-9._+~:/-]+)", re.ASCII)


class PackageServer(ThreadingHTTPServer):
    """Answers on a socket that is there already, from a cache and from numbered sources."""

    daemon_threads = True

    def __init__(self, descriptor: int, cache: Path, sources: list[str]) -> None:
        super().__init__(("", 0), _Request, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=descriptor)
        self.server_name, self.server_port = "lab", 0
        self.cache, self.sources = cache, sources
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def file_of(self, path: str) -> Path | None:
        """Return the file behind a path, fetched first where it is missing or stale; None where there is none."""
        parts = _PATH.fullmatch(urllib.parse.unquote(path))
        if parts is None or ".." in parts[2].split("/") or int(parts[1]) >= len(self.sources):
            return None
        uri = f"{self.sources[int(parts[1])].rstrip('/')}/{urllib.parse.quote(parts[2])}"
        kept = self.cache / re.sub(r"[^A-Za-z0-9.-]", "_", self.sources[int(parts[1])]) / parts[2]
        with self._guard:
            lock = self._locks.setdefault(path, threading.Lock())
        with lock:
            if not _is_fresh(kept):
                _fetch(uri, kept)
        return kept if kept.is_file() else None


def _is_fresh(kept: Path) -> bool:
    if not kept.is_file():
        return False
    lasts = kept.suffix == ".deb" or "by-hash" in kept.parts
    return lasts or time.time() - kept.stat().st_mtime < FRESH_S


def _fetch(uri: str, kept: Path) -> None:
    """Fetch a file; what was kept before stays where the source does not answer."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".part-", dir=kept.parent) as folder:
        part = Path(folder) / "file"
        command = [HELPER, "-o", "APT::Sandbox::User=root", "download-file", uri, str(part)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode or not part.is_file():
            print(f"{uri}: {done.stderr.strip()[-200:]}", file=sys.stderr, flush=True)
            return
        part.touch()
        part.rename(kept)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PackageServer

    def do_GET(self) -> None:
        """Send a file, or the rest of one."""
        kept = self.server.file_of(self.path)
        if kept is None:
            return self.send_error(404)
        with kept.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = self._start()
            if start >= size > 0:
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(size - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.end_headers()
            if self.command == "GET":
                file.seek(start)
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        return None

    do_HEAD = do_GET

    def _start(self) -> int:
        wanted = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(wanted[1]) if wanted else 0

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: what could not be fetched is told where it is tried."""


def main(arguments: list[str]) -> None:
    """Take the descriptor of a socket that listens, the cache's folder, and the sources as JSON."""
    descriptor, cache, sources = arguments
    PackageServer(int(descriptor), Path(cache), json.loads(sources)).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
