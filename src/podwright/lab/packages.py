"""What a lab needs of this machine, and the command that brings what is missing."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from podwright.spec.problems import refuse

# Debian's package -> what shows that it is there: a command, or a file under the system's library folder.
BASE = {"iproute2": "ip", "mount": "mount", "util-linux": "nsenter", "openssh-client": "ssh", "openssh-server": "sshd"}
SLURM = {"slurmctld": "slurmctld", "slurmd": "slurmd", "slurm-client": "sinfo", "munge": "munged"}
HOSTS = {"systemd-container": "systemd-nspawn", "mmdebstrap": "mmdebstrap"}
ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadb-server": "mariadbd"}

_PATH = f"{os.defpath}:/usr/local/sbin:/usr/sbin:/sbin"


def missing(packages: dict[str, str]) -> list[str]:
    """Name the packages whose proof is not there."""
    return [name for name, proof in packages.items() if shutil.which(proof, path=_PATH) is None]


def check_root(command: Iterable[str]) -> None:
    """Refuse without root, since only root makes namespaces with addresses and users of their own."""
    if os.geteuid() == 0:
        return
    line = ["sudo"]
    if "PODWRIGHT_HOME" in os.environ:
        line += ["env", f"PODWRIGHT_HOME={os.environ['PODWRIGHT_HOME']}"]
    program = shutil.which("podwright") or str(Path(sys.argv[0]).absolute())
    hint = shlex.join([*line, program, *command])
    raise refuse("a lab needs root: it makes namespaces, and users that exist only in them", hint=hint)


def check_packages(packages: dict[str, str]) -> None:
    """Refuse while a package is missing, with the command that installs all that are."""
    if names := missing(packages):
        line = shlex.join(["apt-get", "install", "-y", "--no-install-recommends", *names])
        raise refuse(f"this machine lacks {', '.join(names)}", hint=f"install with: sudo {line}")
