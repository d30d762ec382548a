"""The lab's accounting: MariaDB and slurmdbd on the controller's machine."""

from __future__ import annotations

import shutil

from podwright.lab import processes
from podwright.lab.base import Say
from podwright.lab.machines import Machines
from podwright.lab.scripts import INSIDE

ACCOUNT = "lab"
_DATA = f"{INSIDE}/db/data"
# Where the client library looks without being told, in Debian's present and in its next release. The daemon comes as
# root, whom the database knows by the socket.
_SOCKET = "/run/mysqld/mysqld.sock"
_NEXT_FOLDER = "/run/mariadbd"
_OPTIONS = (
    f"--datadir={_DATA}",
    f"--socket={_SOCKET}",
    f"--log-error={INSIDE}/log/mariadb.log",
    "--user=mysql",
    "--skip-networking",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=900",
    "--innodb-flush-log-at-trx-commit=0",
)


def start(machines: Machines, controller: str, cluster: str, user: str, say: Say) -> None:
    """Start what does not run of database and slurmdbd, and make the lab's account on the first time."""
    running = machines.running(controller)
    if "mariadbd" not in running:
        say("database", "MariaDB, for accounting")
        _start_database(machines, controller)
    if "slurmdbd" not in running:
        machines.start_daemons([controller], ["slurmdbd"])
    if not processes.until(lambda: _sacctmgr(machines, controller, "list cluster") == 0):
        raise machines.failed("slurmdbd", "slurmdbd.log")
    done = machines.folder / "db" / "account-made"
    if not done.exists():
        _sacctmgr(machines, controller, *_first_lines(cluster, user))
        done.touch()


def _start_database(machines: Machines, controller: str) -> None:
    data = machines.folder / "db" / "data"
    machines.run(controller, ["install", "-d", "-o", "mysql", "-g", "mysql", "-m", "700", "/run/mysqld", _DATA])
    machines.run(controller, ["ln", "-sfn", "mysqld", _NEXT_FOLDER])
    if not (machines.folder / "db" / "installed").exists():
        for left in data.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        command = ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={_DATA}", "--skip-test-db"]
        done = machines.run(controller, command)
        (machines.folder / "log" / "mariadb.log").write_text(done.stdout + done.stderr)
        if done.returncode:
            raise machines.failed("MariaDB", "mariadb.log")
        (machines.folder / "db" / "installed").touch()
    machines.start_daemons([controller], ["sh", "-c", 'mariadbd --no-defaults "$@" &', "sh", *_OPTIONS])
    ping = ["mariadb-admin", "--no-defaults", f"--socket={_SOCKET}", "ping"]
    if not processes.until(lambda: machines.run(controller, ping).returncode == 0):
        raise machines.failed("MariaDB", "mariadb.log")


def _first_lines(cluster: str, user: str) -> tuple[str, ...]:
    account = f"add account {ACCOUNT} Description=lab Organization=lab"
    return f"add cluster {cluster}", account, f"add user {user},root Account={ACCOUNT} DefaultAccount={ACCOUNT}"


def _sacctmgr(machines: Machines, controller: str, *lines: str) -> int:
    command = ["sacctmgr", "--immediate", "--noheader"]
    return machines.run(controller, command, give="".join(f"{line}\n" for line in lines)).returncode
