"""The secrets of a pod: random, in one file that ansible-vault encrypts; its key lies elsewhere, for its owner."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from podwright.bringup.apply import authority, cluster_keys, signing
from podwright.bringup.plan.site import Site
from podwright.clients.reasons import last_line
from podwright.files.whole import make_private, write_whole
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

KEY_VARIABLE = "PODWRIGHT_VAULT_KEY_FILE"
_SECRETS, _REVISIONS = "podwright_secrets", "podwright_revisions"
_INSTALL = "pip install 'podwright[bringup]'"


def _serving(role: str) -> Callable[[Site], list[str]]:
    """Return what gives the names under which the host of a role serves."""
    return lambda site: [site.roles[role], site.addresses[site.roles[role]]]


# What the pod's authority signs, and for which names: for others, or by another authority, nobody would trust it.
_SIGNED: Mapping[str, Callable[[Site], list[str]]] = {
    "registry_key": _serving("registry"),
    "logs_key": _serving("monitoring"),
    "logs_client_key": lambda site: [f"logs.{site.name}"],
}


def _signed(name: str, side: str = "server") -> Callable[[Site, Mapping[str, str]], dict[str, str]]:
    key = f"{name}_key"
    return lambda site, before: authority.sign(before, name, _SIGNED[key](site), side)


# What is made again together, by the name under which `pod secrets rotate` knows it.
_MAKERS: Mapping[str, Callable[[Site, Mapping[str, str]], dict[str, str]]] = {
    "munge_key": lambda site, before: {"munge_key": secrets.token_hex(512)},
    "registry_password": lambda site, before: {"registry_password": secrets.token_urlsafe(24)},
    "ca_key": lambda site, before: authority.new(f"podwright {site.name}"),
    "registry_key": _signed("registry"),
    "logs_key": _signed("logs"),
    "logs_client_key": _signed("logs_client", "client"),
    "archive_key": lambda site, before: signing.new_key(site.name),
    "kubernetes_ca_key": lambda site, before: cluster_keys.new_keys(),
    "kubernetes_discovery": cluster_keys.new_discovery,
}
NAMES = tuple(_MAKERS)
# What only some pods have: those with central logs, those whose Kubernetes we make.
_WHERE: Mapping[str, Callable[[Site], bool]] = {
    "logs_key": lambda site: site.has("logging"),
    "logs_client_key": lambda site: site.has("logging"),
    "archive_key": lambda site: site.pod.bringup.archive is not None,
    "kubernetes_ca_key": lambda site: site.kubernetes is not None,
    "kubernetes_discovery": lambda site: site.kubernetes is not None,
}
# What is good for some time alone; the vault keeps beside it until when.
_EXPIRING = ("kubernetes_discovery",)
# The cluster's authorities are never made again: all hosts would have to join again. Nor is the key of archives: those
# that are there would be nobody's.
_KEPT = ("kubernetes_ca_key", "archive_key")


def names_for(site: Site) -> list[str]:
    """Return the secrets that a pod has."""
    return [name for name in NAMES if name not in _WHERE or _WHERE[name](site)]


def rotated_for(site: Site) -> list[str]:
    """Return those of them that can be made again while the pod works."""
    return [name for name in names_for(site) if name not in _KEPT]


@dataclass(frozen=True)
class Secrets:
    """The values by their names, and how often each was made again."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    revisions: Mapping[str, int] = field(default_factory=dict)


def _names_of(name: str) -> str:
    """Return where the vault keeps for which names a certificate was signed; nothing there: it must be made again."""
    return f"{name.removesuffix('_key')}_names"


def _is_old(site: Site, name: str, values: Mapping[str, str], now: float) -> bool:
    if name in _EXPIRING:
        return float(values.get(f"{name}_until", 0)) < now
    return name in _SIGNED and values.get(_names_of(name)) != " ".join(_SIGNED[name](site))


class Vault:
    """The encrypted file of one pod; making this object touches nothing."""

    def __init__(self, file: Path, key_file: Path) -> None:
        self.file, self.key_file = file, key_file

    def read(self) -> Secrets:
        """Return the secrets; none where the pod has no vault yet."""
        if not self.file.exists():
            return Secrets()
        self._check_key()
        text = self._vault(["view", str(self.file)])
        document = yaml.safe_load(text)
        return Secrets(document[_SECRETS], document[_REVISIONS])

    def fill(
        self, site: Site, rotate: Sequence[str] = (), clock: Callable[[], float] = time.time, also: Sequence[str] = ()
    ) -> Secrets:
        """Make what is missing, and again those that are to be rotated; the file is written only when that is any.

        `also`: what the pod's file does not ask for, or not yet.
        """
        for name in rotate:
            if name not in rotated_for(site):
                hint = one_of(name, "secret", rotated_for(site))
                raise refuse(f'"{name}" is not a secret that can be made again', hint=hint, field="--only")
        before = self.read()
        values, revisions = dict(before.values), dict(before.revisions)
        if "ca_key" in rotate:
            values |= dict.fromkeys(map(_names_of, _SIGNED), "")
        now = clock()
        wanted = [
            name
            for name in dict.fromkeys([*names_for(site), *also])
            if name in rotate or name not in values or _is_old(site, name, values, now)
        ]
        for name in wanted:
            fresh = _MAKERS[name](site, values)
            values |= fresh
            revisions |= {each: revisions.get(each, 0) + 1 for each in fresh}
        if wanted:
            values |= {_names_of(name): " ".join(_SIGNED[name](site)) for name in wanted if name in _SIGNED}
            self._write(Secrets(values, revisions))
        return Secrets(values, revisions)

    def _write(self, known: Secrets) -> None:
        self._make_key()
        make_private(self.file.parent)
        text = json.dumps({_SECRETS: dict(known.values), _REVISIONS: dict(known.revisions)})
        encrypted = self._vault(["encrypt", "--output=-", "-"], give=text)
        write_whole(self.file, encrypted.encode())

    def _vault(self, arguments: Sequence[str], give: str = "") -> str:
        """Run ansible-vault; what is secret goes through pipes only."""
        command = [*program("ansible-vault"), *arguments, f"--vault-password-file={self.key_file}"]
        done = subprocess.run(command, input=give, env=environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            reason = last_line(done.stderr, "no reason given")
            raise refuse(f"{self.file}: {reason}", hint=f"is {self.key_file} the key that it was written with?")
        return done.stdout

    def _make_key(self) -> None:
        if not self.key_file.exists():
            make_private(self.key_file.parent)
            write_whole(self.key_file, f"{secrets.token_urlsafe(48)}\n".encode())
        self._check_key()

    def _check_key(self) -> None:
        try:
            mode = stat.S_IMODE(self.key_file.stat().st_mode)
        except OSError as error:
            hint = f"set {KEY_VARIABLE} to the file that has it"
            raise refuse(f"the vault's key {self.key_file}: {error.strerror}", hint=hint) from None
        if mode & 0o077:
            raise refuse(f"others may read the vault's key {self.key_file}", hint=f"chmod 600 {self.key_file}")


def vault_of(home: Path, name: str) -> Vault:
    """Return the vault of a pod; its key is where the environment says, else in the home."""
    key = os.environ.get(KEY_VARIABLE)
    return Vault(home / "bringup" / name / "vault.yml", Path(key) if key else home / "vault.key")


def program(name: str) -> list[str]:
    """Return the command of a program of Ansible: beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / name
    there = str(beside) if beside.exists() else shutil.which(name)
    if there is None:
        raise refuse(f"{name} is not on this machine", hint=f"install it with `{_INSTALL}`")
    return [there]


def environment() -> dict[str, str]:
    """Return what Ansible's programs see of the environment: no secret of this user's, as they write it down."""
    kept = {name: os.environ[name] for name in ("HOME", "USER", "SSH_AUTH_SOCK", "TERM") if name in os.environ}
    beside = str(Path(sys.executable).parent)
    return {**kept, "PATH": f"{beside}:{os.environ.get('PATH', os.defpath)}", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
