"""The control groups of a lab's nodes: one tree per lab, in every hierarchy that the machine has."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from podwright.lab import processes

ROOT = Path("/sys/fs/cgroup")


def tree(folder: Path) -> str:
    """Name the lab's tree after its folder, so that two labs never share one."""
    return f"podwright-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def make(folder: Path, node: str, root: Path = ROOT, holds_groups: bool = True) -> None:
    """Make the groups of a node; they hold groups, into which a kubelet puts Kubernetes pods, or the node itself."""
    for hierarchy in _hierarchies(root):
        above = hierarchy
        for name in (tree(folder), node):
            _delegate(above)
            group = above / name
            group.mkdir(exist_ok=True)
            _hand_down(above, group)
            above = group
        if holds_groups:
            _delegate(above)


def _hierarchies(root: Path) -> list[Path]:
    """Return the one hierarchy of cgroup v2, or those of v1 that have controllers."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return [path for path in sorted(root.iterdir()) if path.name != "unified" and (path / "cgroup.procs").exists()]


def _delegate(group: Path) -> None:
    """Let the groups below have the controllers that this one has; only v2 asks for that."""
    try:
        there = (group / "cgroup.controllers").read_text().split()
    except FileNotFoundError:
        return
    for controller in there:
        # One that a real-time process holds cannot be handed down; kubelet names it if it misses it.
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def _hand_down(above: Path, group: Path) -> None:
    """Fill the cores and memory nodes of a group: under v1 a new one has none, and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and not (above / "cgroup.controllers").exists():
            (group / name).write_text((above / name).read_text())


def remove(folder: Path, root: Path = ROOT) -> None:
    """Remove the lab's groups, wherever runc made them; a killed process leaves its group a moment later."""
    trees = [above / tree(folder) for above in (root, *root.iterdir())]
    processes.until(lambda: all(_removed(group) for group in trees))


def _removed(group: Path) -> bool:
    """Remove a group with all below it; say whether it is gone."""
    if not group.exists():
        return True
    for below in [path for path in group.iterdir() if path.is_dir()]:
        _removed(below)
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
