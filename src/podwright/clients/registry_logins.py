"""Who the user is to a registry: what `podman login` or `docker login` wrote, read as these programs read it."""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.clients.http_client import basic
from podwright.spec.problems import refuse

HELPER_S = 30.0
IDENTITY = "<token>"
"""The name under which a helper gives a token that is to be exchanged, instead of a password."""


@dataclass(frozen=True)
class Login:
    """A name with a password, or a token that a registry exchanges for another; shown by no representation."""

    user: str
    secret: str = field(repr=False)

    @property
    def is_identity(self) -> bool:
        """Return whether it is a token to be exchanged for another."""
        return self.user == IDENTITY

    def basic(self) -> str:
        """Return the header by which HTTP takes it."""
        return basic(f"{self.user}:{self.secret}")


def find_login(host: str, repository: str) -> Login | None:
    """Return who the user is, by the first file that knows the registry; None: nobody in particular."""
    for path in _files():
        try:
            row = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise refuse(f"{path} cannot be read: {error}", hint="`podman login` writes it") from None
        login = _in_file(row, host, repository)
        if login is not None:
            return login
    return None


def _files() -> Iterator[Path]:
    """Yield the files that may hold logins; an explicit one stands alone, as it does for podman."""
    if given := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(given)
        return
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime, "containers", "auth.json")
    yield Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "containers", "auth.json")
    yield Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker", "config.json")


def _in_file(row: Mapping[str, Any], host: str, repository: str) -> Login | None:
    """Return the login of a file; an entry for the repository comes before one for its registry."""
    parts = repository.split("/")
    inner = [f"{host}/{'/'.join(parts[:count])}" for count in range(len(parts), 0, -1)]
    helpers, entries = row.get("credHelpers") or {}, row.get("auths") or {}
    for name in [*inner, host, f"https://{host}", f"http://{host}"]:
        login = _of_entry(entries.get(name) or {})
        # The helper for all registries is asked only for those that the file lists.
        helper = helpers.get(name)
        if not helper and name in entries:
            helper = row.get("credsStore")
        if login is None and helper:
            login = _from_helper(str(helper), name)
        if login is not None:
            return login
    return None


def _of_entry(entry: Mapping[str, Any]) -> Login | None:
    if entry.get("identitytoken"):
        return Login(IDENTITY, str(entry["identitytoken"]))
    try:
        user, _, secret = base64.b64decode(str(entry.get("auth") or "")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not user:
        return None
    return Login(user, secret.rstrip("\0"))


def _from_helper(helper: str, name: str) -> Login | None:
    """Ask the program that keeps secrets for docker and podman.

    None: it is not there, or knows nothing.
    """
    command = [f"docker-credential-{Path(helper).name}", "get"]
    try:
        done = subprocess.run(command, input=name, capture_output=True, text=True, timeout=HELPER_S, check=False)
        if done.returncode:
            return None
        row = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if not row.get("Secret"):
        return None
    return Login(str(row["Username"]), str(row["Secret"]))
