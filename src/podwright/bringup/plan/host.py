"""What a host shall have: files, packages, services and accounts, as plain data, and nothing asked of any host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

MARKS = "/var/lib/podwright"
"""How the names of the files begin in which a host keeps what its services were last started with."""
GIVEN = f"{MARKS}-given.json"
"""Where it keeps how each file was when it was written: exporters look by it for those that somebody edits."""


@dataclass(frozen=True)
class HostFile:
    """A file with its content, or with the name of the secret that is its content."""

    path: str
    text: str = ""
    mode: str = "0644"
    owner: str = "root"
    group: str = "root"
    secret: str = ""
    check: str = ""
    """The owner's own check, with %s for a file that is not in place yet."""
    restarts: tuple[str, ...] = ()
    """The services that read it when they start."""
    guards: bool = False
    """Whether the way in hangs on it: a change goes back by itself unless a second connection has got in after it."""
    leaves: bool = False
    """Whether it goes with the pod's services, since it leads to one of them: without them the host would not work."""

    @cached_property
    def digest(self) -> str:
        """Return the digest of the content; of a secret it is not known here."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class HostFolder:
    """A folder that must be there; what lies in it is not looked at."""

    path: str
    mode: str = "0755"
    owner: str = "root"
    group: str = "root"


@dataclass(frozen=True)
class HostAccount:
    """An account with a home."""

    name: str
    uid: int
    shell: str = "/bin/bash"


@dataclass(frozen=True)
class HostCommand:
    """What no file can say: a check that looks, and a command that is run when it does not see what it should."""

    name: str
    check: tuple[str, ...]
    sees: str
    run: tuple[str, ...]
    secret: str = ""
    """The secret that both get on standard input: never as an argument, which every user of a host can read."""
    tries: int = 31
    """How often it is run: a service that was started just now may not answer yet."""


@dataclass(frozen=True)
class Step:
    """One part of a stage on one host, in the order in which it is done."""

    packages: tuple[str, ...] = ()
    accounts: tuple[HostAccount, ...] = ()
    folders: tuple[HostFolder, ...] = ()
    files: tuple[HostFile, ...] = ()
    services: tuple[str, ...] = ()
    commands: tuple[HostCommand, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)
    """Packages that must be of a release, by how their versions begin; any version of the others will do."""

    def wanted_packages(self) -> list[str]:
        """Return the packages as apt is asked for them."""
        return [f"{name}={self.releases[name]}*" if name in self.releases else name for name in self.packages]

    def started_with(self, revisions: Mapping[str, int]) -> dict[str, str]:
        """Return for each service a digest of all files that it reads; of a secret the number of its rotation counts.

        A host keeps these after a restart: one that was killed between a new file and the restart is found out.
        """
        read: dict[str, Any] = {}
        for file in self.files:
            content = f"{file.secret} {revisions.get(file.secret, 1)}" if file.secret else file.digest
            for service in file.restarts:
                read.setdefault(service, hashlib.sha256()).update(f"{file.path} {content}\n".encode())
        return {service: digest.hexdigest()[:16] for service, digest in read.items()}


@dataclass(frozen=True)
class HostPlan:
    """One host with all its steps, by `STAGE.STEP`."""

    name: str
    address: str
    steps: Mapping[str, Step] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Stages that a host gets nothing of though others do, with the reason."""
    record: str = ""
    """Where the host keeps how its files were written; nowhere without anybody who watches it."""

    def files(self) -> Iterator[HostFile]:
        """Yield every file of the host, once: two steps may need the same one."""
        seen: set[str] = set()
        for step in self.steps.values():
            for file in step.files:
                if file.path not in seen:
                    seen.add(file.path)
                    yield file

    def packages(self) -> list[str]:
        """Return every package of the host, once."""
        return self._each("packages")

    def services(self) -> list[str]:
        """Return every service of the host, once."""
        return self._each("services")

    def releases(self) -> dict[str, str]:
        """Return the packages that must be of a release."""
        all_releases: dict[str, str] = {}
        for step in self.steps.values():
            all_releases |= step.releases
        return all_releases

    def _each(self, what: str) -> list[str]:
        names: dict[str, None] = {}
        for step in self.steps.values():
            names |= dict.fromkeys(getattr(step, what))
        return list(names)
