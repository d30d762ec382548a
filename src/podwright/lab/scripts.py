"""The shell scripts that are process 1 of a lab's machines; pure text, so that a lab can be read before it is started.

A shell is the smallest process 1 there is: 140 nodes fit into a laptop. Each script gets its machine's namespaces
ready, says so by a file, and then only adopts and reaps.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from podwright.lab.mask import Shown

INSIDE = "/run/lab"
"""Where the lab's folder is seen by its own machines: short, since the path of a socket has 107 bytes at most."""
START_SCRIPT, HUB_SCRIPT, MACHINE_SCRIPT = "start", "hub.sh", "machine.sh"
"""The names of the scripts in the lab's folder `bin`, by which a machine's process 1 is known."""
BRIDGE_ADDRESS = "10.77.0.1"
_PREFIX = 16

_REST = """\
: >"{inside}/run/$1.ready"
# Adopts what its daemons leave behind; nothing but a kill from outside ends it, and the machine with it.
while :; do
	sleep 86400 &
	wait $!
done
"""


_PMIX = """\
# Slurm opens the PMIx library by the plain name that only a development package gives it.
for real in /usr/lib/*/pmix2/lib; do
	[ -e "$real/libpmix.so.2" ] && [ ! -e "$real/libpmix.so" ] || continue
	mkdir -p /run/pmix
	mount -n --bind "$real" /run/pmix
	mount -n -t tmpfs -o mode=755 pmix "$real"
	ln -s /run/pmix/* "$real"
	ln -s /run/pmix/libpmix.so.2 "$real/libpmix.so"
done
"""


def start_script(folder: Path) -> str:
    """Return `start NAME ...`, which puts process 1 into fresh namespaces and marks it by pid and start time.

    The mark is written here and not by whoever called: a caller that is interrupted loses nothing.
    """
    quoted = shlex.quote(str(folder))
    return f"""\
#!/bin/sh
# start SCRIPT NAME [ADDRESS HUB]: process 1 of a machine runs SCRIPT; its pid and start time go to pids/NAME
cd /
lab={quoted}
script=$1
shift
sh "$lab/bin/$script" "$@" </dev/null >>"$lab/log/machine-$1.log" 2>&1 &
pid=$!
read -r stat <"/proc/$pid/stat"
name=$1
set -- $stat
shift 21
echo "$pid $1" >"$lab/pids/$name"
"""


def hub_script(folder: Path, veils: Mapping[Path, list[Shown]], over: Mapping[str, str]) -> str:
    """Return process 1 of the hub: what all machines of the lab see of the file system, and the bridge between them.

    The other machines are started from inside its mount namespace and inherit it. It keeps the machine's own /proc:
    they need it until they mount theirs.
    """
    lines: list[str] = []
    for cover, shown in sorted(veils.items()):
        lines += _veil(folder, cover, shown)
    if any(target.startswith("/etc/") for target in over):
        lines += _own_etc(folder)
    lines += [f"mkdir -p {INSIDE} /run/sshd /run/munge", f"mount -n --bind {shlex.quote(str(folder))} {INSIDE}"]
    lines += [f"mount -n --bind {shlex.quote(f'{INSIDE}/{mine}')} {target}" for target, mine in over.items()]
    body = "\n".join(lines)
    return f"""\
#!/bin/sh
set -eu
cd /
mount -n --make-rprivate /
echo "$1" >/proc/sys/kernel/hostname
{body}
{_PMIX}ip link set lo up
ip link add br0 type bridge
ip address add {BRIDGE_ADDRESS}/{_PREFIX} dev br0
ip link set br0 up
{_REST.format(inside=INSIDE)}"""


def _veil(folder: Path, cover: Path, shown: list[Shown]) -> list[str]:
    """Cover a folder. The cover is built aside and moved over it last, as it hides what is bound into it."""
    aside = folder / "run" / "veil"
    lines = [f"mkdir -p {_q(aside)}", f"mount -n -t tmpfs -o mode=755 veil {_q(aside)}"]
    for path, is_folder in shown:
        place = aside / path.relative_to(cover)
        if is_folder:
            lines.append(f"mkdir -p {_q(place)}")
        else:
            lines.append(f"mkdir -p {_q(place.parent)} && : >{_q(place)}")
        lines.append(f"mount -n --bind {_q(path)} {_q(place)}")
    return [*lines, f"mount -n --move {_q(aside)} {_q(cover)}"]


def _own_etc(folder: Path) -> list[str]:
    """Give the lab a copy of /etc: what is mounted over a file of the machine's own goes when that is replaced."""
    aside = _q(folder / "run" / "etc")
    copied = [f"mkdir -p {aside}", f"mount -n -t tmpfs -o mode=755 etc {aside}", f"cp -a /etc/. {aside}"]
    return [*copied, f"mount -n --move {aside} /etc"]


def _q(path: Path) -> str:
    return shlex.quote(str(path))


def machine_script(more: str = "") -> str:
    """Return process 1 of every other machine: own name, processes, shared memory, and a wire to the bridge.

    `more` are lines of one kind of lab, run when the machine is otherwise ready.
    """
    return f"""\
#!/bin/sh
# NAME ADDRESS HUB: a machine of the lab; HUB is the hub's process 1 as the outside counts
set -eu
cd /
echo "$1" >/proc/sys/kernel/hostname
mount -n -t tmpfs -o mode=1777 shm /dev/shm
bridge="nsenter --net=/proc/$3/ns/net ip link"
# The wire of a machine that was just killed goes a moment after it.
$bridge delete "v$1" 2>/dev/null || :
ip -batch - <<END
link set lo up
link add eth0 type veth peer name v$1 netns /proc/$3/ns/net
address add $2/{_PREFIX} dev eth0
link set eth0 up
END
$bridge set "v$1" master br0 up
mount -n -t proc proc /proc
{more}{_REST.format(inside=INSIDE)}"""
