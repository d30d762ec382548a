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
from podwright.bringup.plan.kubernetes.containerd import registry_text
from podwright.bringup.plan.netboot import boots_by_https
from podwright.bringup.plan.site import Site, given_name
from podwright.clients.reasons import last_line
from podwright.files.whole import make_private, write_whole
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse
from podwright.watch import bmc_secrets, exporters_name, secret_names

KEY_VARIABLE = "PODWRIGHT_VAULT_KEY_FILE"
_SECRETS, _REVISIONS = "podwright_secrets", "podwright_revisions"
_INSTALL = "pip install 'podwright[bringup]'"


def _serving(role: str) -> Callable[[Site], list[str]]:
    """Return what gives the names under which the host of a role serves."""
    return lambda site: [site.roles[role], site.addresses[site.roles[role]]]


# What the pod's authority signs, and for which names: for others, or by another authority, nobody would trust it.
_SIGNED: Mapping[str, Callable[[Site], list[str]]] = {
    "registry_key": _serving("registry"),
    "netboot_key": _serving("netboot"),
    "logs_key": _serving("monitoring"),
    "logs_client_key": lambda site: [f"logs.{site.name}"],
    "exporters_key": lambda site: [exporters_name(site.pod)],
}


def _signed(name: str, side: str = "server") -> Callable[[Site, Mapping[str, str]], dict[str, str]]:
    key = f"{name}_key"
    return lambda site, before: authority.sign(before, name, _SIGNED[key](site), side)


def _signed_for_firmware(site: Site, before: Mapping[str, str]) -> dict[str, str]:
    """Return who serves loaders, by an authority of its own: firmware knows no elliptic curves."""
    signer = {part: before[f"netboot_{part}"] for part in ("ca_key", "ca_certificate")}
    return authority.sign(signer, "netboot", _SIGNED["netboot_key"](site), kind=authority.RSA)


# What an authority signed, and must sign again when it is another.
_SIGNED_BY = {"ca_key": [name for name in _SIGNED if name != "netboot_key"], "netboot_ca_key": ["netboot_key"]}

# What is made again together, by the name under which `pod secrets rotate` knows it.
_MAKERS: Mapping[str, Callable[[Site, Mapping[str, str]], dict[str, str]]] = {
    "munge_key": lambda site, before: {"munge_key": secrets.token_hex(512)},
    "registry_password": lambda site, before: {"registry_password": secrets.token_urlsafe(24)},
    "ca_key": lambda site, before: authority.new(f"podwright {site.name}"),
    "registry_key": _signed("registry"),
    "netboot_ca_key": lambda site, before: authority.new(f"podwright boot {site.name}", "netboot_ca", authority.RSA),
    "netboot_key": lambda site, before: _signed_for_firmware(site, before),
    "logs_key": _signed("logs"),
    "logs_client_key": _signed("logs_client", "client"),
    "exporters_key": _signed("exporters"),
    "scrape_token": lambda site, before: {"scrape_token": secrets.token_urlsafe(32)},
    "remedy_token": lambda site, before: {"remedy_token": secrets.token_urlsafe(32)},
    "remedy_hook_token": lambda site, before: {"remedy_hook_token": secrets.token_urlsafe(32)},
    "archive_key": lambda site, before: signing.new_key(site.name),
    "kubernetes_ca_key": lambda site, before: cluster_keys.new_keys(),
    "kubernetes_discovery": cluster_keys.new_discovery,
}
NAMES = tuple(_MAKERS)
# What only some pods have: those with central logs, those whose Kubernetes we make.
_WHERE: Mapping[str, Callable[[Site], bool]] = {
    "netboot_ca_key": boots_by_https,
    "netboot_key": boots_by_https,
    "logs_key": lambda site: site.has("logging"),
    "logs_client_key": lambda site: site.has("logging"),
    "exporters_key": lambda site: site.has("monitoring"),
    "scrape_token": lambda site: site.has("monitoring"),
    "remedy_token": lambda site: site.pod.remediation is not None and site.has("monitoring"),
    "remedy_hook_token": lambda site: site.pod.remediation is not None and site.has("monitoring"),
    "archive_key": lambda site: site.pod.bringup.archive is not None,
    "kubernetes_ca_key": lambda site: site.kubernetes is not None,
    "kubernetes_discovery": lambda site: site.kubernetes is not None,
}
# What follows from other secrets, and is written again whenever these change.
_DERIVED: Mapping[str, Callable[[Site, Mapping[str, str]], str]] = {
    "registry_hosts": lambda site, values: registry_text(site, values["registry_password"]),
    "registry_hosts_default": lambda site, values: registry_text(site, values["registry_password"], is_default=True),
}
# What is good for some time alone; the vault keeps beside it until when.
_EXPIRING = ("kubernetes_discovery",)
RENEWED_S = 60 * 86400.0
"""How long before its end a certificate is made again: any `up` does, a month before `pod status` tells of it."""
SHOWN = ("registry_password",)
"""What people type, and are told on demand."""
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
    if name not in _SIGNED and name not in _SIGNED_BY:
        return False
    if name in _SIGNED and values.get(_names_of(name)) != " ".join(_SIGNED[name](site)):
        return True
    return _ends_soon(values[f"{name.removesuffix('_key')}_certificate"], now)


def _ends_soon(certificate: str, now: float) -> bool:
    return authority.end_of(certificate) - now < RENEWED_S


def _derived(site: Site, values: Mapping[str, str]) -> dict[str, str]:
    """Return what follows from the secrets and the vault has not like that; hosts of a cluster alone use it."""
    if site.kubernetes is None or not site.has("registry"):
        return {}
    texts = {name: make(site, values) for name, make in _DERIVED.items()}
    return {name: text for name, text in texts.items() if text != values.get(name)}


class Vault:
    """The encrypted file of one pod; making this object touches nothing."""

    def __init__(self, file: Path, key_file: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.file, self.key_file, self._environ = file, key_file, environ

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
        now = clock()
        for signer, signed in _SIGNED_BY.items():
            if signer in rotate or (signer in values and _is_old(site, signer, values, now)):
                values |= dict.fromkeys(map(_names_of, signed), "")
        wanted = [
            name
            for name in dict.fromkeys([*names_for(site), *also])
            if name in rotate or name not in values or _is_old(site, name, values, now)
        ]
        for name in wanted:
            fresh = _MAKERS[name](site, values)
            values |= fresh
            revisions |= {each: revisions.get(each, 0) + 1 for each in fresh}
        given = {**self._given(site, values), **_derived(site, values)}
        values |= given
        revisions |= {name: revisions.get(name, 0) + 1 for name in given}
        if wanted or given:
            values |= {_names_of(name): " ".join(_SIGNED[name](site)) for name in wanted if name in _SIGNED}
            self.write(Secrets(values, revisions))
        return Secrets(values, revisions)

    def _given(self, site: Site, values: Mapping[str, str]) -> dict[str, str]:
        """Return the secrets of others that the caller's variables hold and the vault does not have yet."""
        given: dict[str, str] = {}
        wanted = dict.fromkeys(bmc_secrets(site.pod), "management controllers are asked with")
        wanted |= dict.fromkeys(secret_names(site.pod), "alerts are sent with")
        for variable, purpose in wanted.items() if site.has("monitoring") else ():
            name, value = given_name(variable), self._environ.get(variable, "")
            if value and value != values.get(name):
                given[name] = value
            elif name not in values:
                hint = f"export {variable}=...; the vault keeps it from then on"
                raise refuse(f"{variable} is not set, which {purpose}", hint=hint)
        return given

    def write(self, known: Secrets) -> None:
        """Keep these secrets, encrypted, instead of those that were there."""
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
