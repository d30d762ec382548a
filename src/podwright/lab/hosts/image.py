"""The disk that all hosts of a lab begin with: a Debian with systemd, sshd and Python, made once and never written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from podwright.files.whole import whole_path
from podwright.lab import caches, debian
from podwright.lab.base import Say

KIND = "hosts"
# The last three are what a Python environment with compiled packages needs and a bare Debian does not have.
_PACKAGES = (
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "python3-apt",
    "iproute2",
    "sudo",
    "ca-certificates",
    "procps",
    "libstdc++6",
    "libgomp1",
    "libexpat1",
)
_LEFT_OUT = ("doc", "info", "locale", "man")
_HOOKS = (
    # Others may pass through /root: an environment may lie below it, and is bound there.
    'chmod 755 "$1/root"',
    # The lab's own mirror is the only source; keys and the machine's id are each host's own.
    'rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/apt/sources.list.d/* && : >"$1/etc/machine-id"',
    # What a fresh system does by itself now and then would hold apt's lock at a moment of its own choice.
    'chroot "$1" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer',
)


def get(say: Say) -> Path:
    """Return the root of the disk from the cache, and make it first where it is not there."""
    suite = debian.suite()
    key = hashlib.sha256(json.dumps([suite, _PACKAGES, _LEFT_OUT, _HOOKS]).encode()).hexdigest()[:8]
    kept = caches.folder(KIND) / f"{suite}-{key}"
    if not kept.is_dir():
        with caches.locked(caches.folder(KIND) / "image.lock"):
            if not kept.is_dir():
                say("image", f"a Debian ({suite}) with systemd and sshd, once: about a minute, 300 MB")
                _make(kept, suite)
    return kept


def _make(kept: Path, suite: str) -> None:
    with whole_path(kept) as part:
        debian.make(part, suite, _PACKAGES, _LEFT_OUT, [f"--customize-hook={hook}" for hook in _HOOKS])
        part.chmod(0o755)
