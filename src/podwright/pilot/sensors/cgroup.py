"""Where the kernel accounts this run: the process's own control group, version 1, version 2, or both at once."""

from __future__ import annotations

import os
import re
from typing import Iterator, NamedTuple, Optional

from ..system.numbers import whole_number
from ..system.plain_files import read_text

# Slurm gives every task of a step its own group; the run on this node is the whole job.
_SLURM_JOB = re.compile(r"(.*/job_\d+)(/.*)?$")
_VERSIONS = {"cgroup": 1, "cgroup2": 2}
_ROOT_MARK = {1: "release_agent", 2: "cgroup.type"}


class Group(NamedTuple):
    """A real group: `folder` holds its files, `top` is where its hierarchy is mounted."""

    version: int
    folder: str
    top: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def has(self, name: str) -> bool:
        return os.access(self.path(name), os.R_OK)

    def chain(self) -> list[str]:
        """Return its folder and those above it: a limit may stand at any of them."""
        folders, folder = [self.folder], self.folder
        while folder != self.top and len(folder) > len(self.top):
            folder = os.path.dirname(folder)
            folders.append(folder)
        return folders


class _Mount(NamedTuple):
    version: int
    root: str
    point: str
    options: list[str]


def find(controller: str, root: str = "/", needs: str = "") -> Optional[Group]:
    """Return the group that accounts `controller` for this process, or None where it is the root of its hierarchy.

    On a hybrid machine both hierarchies are there and the controller is in one of them; `needs` names the file that
    tells which.
    """
    for mount, path in _mounted(controller, root):
        group = _group(mount, path, root)
        if group and (not needs or group.has(needs)):
            return group
    return None


def parents_of_own(controller: str, root: str = "/") -> list[tuple[int, str]]:
    """Return (version, folder) of groups in which one of our own may be made, for the processes of this one.

    In version 2 a group either has processes or gives controllers to those below it: ours goes beside this one.
    """
    folders = []
    for mount, path in _mounted(controller, root):
        inner = path[len(mount.root) :] if mount.root != "/" and path.startswith(mount.root) else path
        folder = os.path.normpath(_under(root, mount.point) + "/" + inner)
        if mount.version == 2 and inner.strip("/"):
            folder = os.path.dirname(folder)
        if mount.version == 1 or controller in read_text(os.path.join(folder, "cgroup.subtree_control")).split():
            folders.append((mount.version, folder))
    return folders


def lowest(group: Group, names: list[str]) -> Optional[float]:
    """Return the lowest number that file `names[version - 1]` holds in the group and above it, if there is one."""
    numbers = []
    for folder in group.chain():
        fields = read_text(os.path.join(folder, names[group.version - 1])).split()
        # `max` and -1 mean that there is no limit here; `cpu.max` has a period beside its quota.
        limit, period = [*map(whole_number, fields), None, None][:2]
        if limit:
            numbers.append(limit / (period or 1))
    return min(numbers, default=None)


def _group(mount: _Mount, path: str, root: str) -> Optional[Group]:
    top = _under(root, mount.point)
    inner = path
    if mount.root != "/":
        # A container may see the whole path but have only its own group mounted.
        inner = path[len(mount.root) :] if path.startswith(mount.root) else "/"
    job = _SLURM_JOB.match(inner)
    folder = os.path.normpath(top + "/" + (job.group(1) if job else inner))
    if not os.path.isdir(folder):
        folder = top
    # In version 1 only the root of a hierarchy has the mark, in version 2 every group but the root has it.
    marked = os.path.exists(os.path.join(folder, _ROOT_MARK[mount.version]))
    return None if marked != (mount.version == 2) else Group(mount.version, folder, top)


def _mounted(controller: str, root: str) -> Iterator[tuple[_Mount, str]]:
    """Yield the hierarchies of a controller, and where this process is in each."""
    mounts = _mounts(root)
    for version, path in _memberships(controller, root):
        for mount in mounts:
            if mount.version == version and (version == 2 or controller in mount.options):
                yield mount, path


def _memberships(controller: str, root: str) -> list[tuple[int, str]]:
    memberships = []
    for line in read_text(_under(root, "/proc/self/cgroup")).splitlines():
        number, names, path = line.split(":", 2)
        if number == "0" and not names:
            memberships.append((2, path))
        elif controller in names.split(","):
            memberships.append((1, path))
    return memberships


def _mounts(root: str) -> list[_Mount]:
    mounts = []
    for line in read_text(_under(root, "/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        kind = after.split(" ", 1)[0]
        version = _VERSIONS.get(kind)
        if version:
            fields = before.split(" ")
            options = after.split(" ")[2].split(",")
            mounts.append(_Mount(version, fields[3], fields[4], options))
    return mounts


def _under(root: str, path: str) -> str:
    return os.path.normpath(root + "/" + path)
