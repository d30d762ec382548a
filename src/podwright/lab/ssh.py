"""Keys and configuration of a lab's login node, and the door that leads to it from the loopback of this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from podwright.lab import ssh_listener
from podwright.lab.machines import ENVIRONMENT, Machines
from podwright.lab.scripts import INSIDE
from podwright.lab.user import LabUser

LOGIN = "login"
LOOPBACK = "127.0.0.1"
_SSHD = "/usr/sbin/sshd"


def make_keys(folder: Path, user: LabUser) -> None:
    """Make the host's and the user's key once; the user's belongs to who will use it."""
    make_key(folder / "host_key")
    make_user_key(folder / "id_ed25519", user)


def make_key(path: Path) -> bool:
    """Make a key where there is none yet; say whether it was made."""
    if path.exists():
        return False
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return True


def make_user_key(path: Path, user: LabUser) -> None:
    """Make the user's key; of a lab that root made for itself it stays root's: its user exists only inside."""
    if make_key(path) and "SUDO_UID" in os.environ:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def server_config(user: LabUser, path: str) -> str:
    """Return sshd's configuration. Modes are not checked: above the lab may be a folder that all may write, as /tmp."""
    return f"""\
HostKey {INSIDE}/ssh/host_key
AuthorizedKeysFile {INSIDE}/ssh/id_ed25519.pub
AllowUsers {user.name}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
PidFile none
MaxSessions 100
Subsystem sftp internal-sftp
SetEnv SLURM_CONF={ENVIRONMENT["SLURM_CONF"]} "PATH={path}" LANG=C.UTF-8
"""


def client_config(folder: Path, name: str, user: LabUser, port: int) -> str:
    """Return the ssh configuration that makes the lab's name a host one can log in to."""
    where = quoted(folder)
    return f"""\
Host {name}
	HostName {LOOPBACK}
	Port {port}
	User {user.name}
	HostKeyAlias {name}
	IdentityFile "{where}/id_ed25519"
	IdentitiesOnly yes
	UserKnownHostsFile "{where}/known_hosts"
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
"""


def quoted(path: Path) -> str:
    """Return a path as it stands between quotes in a configuration of ssh."""
    return str(path).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')


def open_door(machines: Machines, wanted: int) -> int:
    """Start the door program and return its port: the one wanted, or a free one when another program has taken that."""
    with _listening(wanted) as listening:
        port = int(listening.getsockname()[1])
        number = str(listening.fileno())
        program = [
            sys.executable,
            "-I",
            "-S",
            ssh_listener.__file__,
            number,
            _SSHD,
            "-i",
            "-f",
            f"{INSIDE}/ssh/sshd_config",
        ]
        with (machines.folder / "log" / "sshd.log").open("a") as log:
            living = subprocess.Popen(
                machines.command(LOGIN, program),
                env=ENVIRONMENT,
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            living.returncode = 0  # it outlives this program, and is ended with the login node
    return port


def _listening(wanted: int) -> socket.socket:
    for port in (wanted, 0):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
        except OSError:
            listening.close()
            continue
        listening.listen(64)
        return listening
    raise OSError(f"no free port on {LOOPBACK}")


def port_in(config: Path) -> int:
    """Return the port that a lab had before, so that it keeps it; 0 takes any."""
    if not config.is_file():
        return 0
    port = re.search(r"^\s*Port (\d+)$", config.read_text(), re.MULTILINE)
    return int(port[1]) if port else 0


def answers(config: Path, name: str) -> bool:
    """Return whether the login node lets its user in."""
    if not config.is_file():
        return False
    command = ["ssh", "-F", str(config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", name, "true"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
