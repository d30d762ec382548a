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
        return self.user == IDENTITY

    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.secret}".encode()).decode()


def find_login(host: str, repository: str) -> Login | None:
    """The first file that knows the registry decides; None: nobody in particular."""
    for path in _files():
        try:
            row = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise refuse(f"{path} cannot be read: {error}", hint="`podman login` writes it") from None
        found = _in_file(row, host, repository)
        if found is not None:
            return found
    return None


def _files() -> Iterator[Path]:
    """An explicit file stands alone, as it does for podman."""
    if given := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(given)
        return
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime, "containers", "auth.json")
    yield Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "containers", "auth.json")
    yield Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker", "config.json")


def _in_file(row: Mapping[str, Any], host: str, repository: str) -> Login | None:
    """An entry for the repository comes before one for its registry."""
    parts = repository.split("/")
    inner = [f"{host}/{'/'.join(parts[:count])}" for count in range(len(parts), 0, -1)]
    names = [*inner, host, f"https://{host}", f"http://{host}"]
    helpers = row.get("credHelpers") or {}
    for name in names:
        helper = helpers.get(name) or (row.get("credsStore") if name in (row.get("auths") or {}) else None)
        entry = (row.get("auths") or {}).get(name) or {}
        found = _of_entry(entry) or (_from_helper(str(helper), name) if helper else None)
        if found is not None:
            return found
    return None


def _of_entry(entry: Mapping[str, Any]) -> Login | None:
    if entry.get("identitytoken"):
        return Login(IDENTITY, str(entry["identitytoken"]))
    try:
        user, _, secret = base64.b64decode(str(entry.get("auth") or "")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Login(user, secret.rstrip("\0")) if user else None


def _from_helper(helper: str, name: str) -> Login | None:
    """The program that keeps secrets for docker and podman; one that is not there, or knows nothing, gives nothing."""
    command = [f"docker-credential-{Path(helper).name}", "get"]
    try:
        done = subprocess.run(command, input=name, capture_output=True, text=True, timeout=HELPER_S, check=False)
        row = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return Login(str(row["Username"]), str(row["Secret"])) if row.get("Secret") else None
