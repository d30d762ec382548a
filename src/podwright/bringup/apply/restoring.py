"""A pod's backup taken and put back: its parts on hosts, and what this machine keeps of the pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from podwright.bringup.apply.backups import Backup, BackupResult, Save, write_backup
from podwright.bringup.apply.observe import printed
from podwright.bringup.plan.backups import BackupPart, backup_parts, living_line
from podwright.files.whole import make_private, write_whole
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.apply.playbook import ApplyProgress
    from podwright.bringup.apply.transfers import HostStreams
    from podwright.bringup.plan.site import Site

_VAULT, _POD = "vault", "pod"
_JOURNALS = "*.jsonl"
Shell = Callable[[str, str], str]
"""Runs a line of shell on a host; returns what it printed, and refuses where it failed."""


class Kept(Protocol):
    """Where this machine keeps a pod's secrets, and the key of them."""

    file: Path
    key_file: Path


@dataclass(frozen=True)
class RestoreResult:
    """What was put back, and where."""

    parts: Sequence[str]
    progress: ApplyProgress
    hosts: Mapping[str, Sequence[str]]
    """Of each host the parts that it has again."""

    def as_json(self) -> dict[str, Any]:
        """Return what `pod restore --json` prints."""
        return {"parts": list(self.parts), "hosts": {host: list(parts) for host, parts in self.hosts.items()}}


def save_pod(site: Site, kept: Kept, streams: HostStreams, out: Path, say: Callable[[str], None]) -> BackupResult:
    """Write all of a pod that cannot be made again into one file."""
    if not kept.file.exists():
        raise refuse(f"{site.name} has no vault here", hint="back it up from where `podwright pod up` ran")
    parts: dict[str, Save] = {_POD: partial(_write, site.pod.source), _VAULT: partial(_write, kept.file.read_bytes())}
    for journal in sorted(kept.file.parent.glob(_JOURNALS)):
        if journal.stem.isidentifier():
            parts[f"journal_{journal.stem}"] = partial(_write, journal.read_bytes())
    parts |= {each.name: partial(_save, site, streams, each, say) for each in backup_parts(site)}
    return write_backup(out, site.name, parts, kept.key_file)


def _write(data: bytes, to: BinaryIO) -> None:
    to.write(data)


def _save(site: Site, streams: HostStreams, part: BackupPart, say: Callable[[str], None], to: BinaryIO) -> None:
    say(f"{part.name} of {part.host}")
    printed(part.host, streams.fetch(site, part.host, part.save, to))


def wanted_parts(site: Site, backup: Backup) -> list[BackupPart]:
    """Return what is put back; refuse the backup of another pod, and what we cannot put back."""
    if backup.pod != site.name:
        raise refuse(f"it is the backup of {backup.pod}, not of {site.name}", hint="name its own pod", field="FILE")
    parts = [each for each in backup_parts(site) if each.name in backup.parts]
    for each in parts:
        if not each.load:
            hint = "put it back by hand, as etcd's own documentation says, on all of them"
            raise refuse(f"{each.name} of several management hosts is not put back by us", hint=hint)
    return parts


def refuse_living(parts: Sequence[BackupPart], shell: Shell) -> None:
    """Refuse hosts on which a pod lives: what it has now would be lost."""
    services: dict[str, list[str]] = {}
    for part in parts:
        for host, name in part.services:
            services.setdefault(host, []).append(name)
    for host, names in services.items():
        living = shell(host, living_line(names)).split()
        if living:
            hint = "`podwright pod down` first, if what it has now may be lost; or name fresh hosts"
            raise refuse(f"the pod lives: {', '.join(living)} of {host}", hint=hint, field="POD")


def take_back(kept: Kept, backup: Backup) -> None:
    """Write what this machine kept of the pod, but nothing over what it has."""
    make_private(kept.file.parent)
    if not kept.file.exists():
        write_whole(kept.file, backup.read(_VAULT))
    for name in backup.parts:
        journal = kept.file.parent / f"{name.removeprefix('journal_')}.jsonl"
        if name.startswith("journal_") and not journal.exists():
            write_whole(journal, backup.read(name))


def put_back(site: Site, streams: HostStreams, shell: Shell, backup: Backup, say: Callable[[str], None]) -> None:
    """Put the parts back, while nothing writes there."""
    parts = wanted_parts(site, backup)
    order: list[tuple[str, str]] = []
    for part in reversed(parts):
        order += part.services
    for host, name in order:
        shell(host, f"systemctl stop {name}")
    for part in parts:
        say(f"{part.name} of {part.host}")
        printed(part.host, streams.give(site, part.host, part.load, backup.feed(part.name)))
    for host, name in reversed(order):
        shell(host, f"systemctl start {name}")
