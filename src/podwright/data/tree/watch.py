"""Watches trees by inotify: hears in which folders something changed, and says when it cannot know any more."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from podwright.data.tree.roots import Roots, is_address
from podwright.spec.problems import refuse

_EVENT = struct.Struct("iIII")
_CLOSE_WRITE, _ATTRIB, _CREATE, _DELETE = 0x8, 0x4, 0x100, 0x200
_MOVED_FROM, _MOVED_TO, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x400, 0x800
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_MASK = _CLOSE_WRITE | _ATTRIB | _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_READ_BYTES = 1 << 20


@dataclass
class Changes:
    """Folders in which something changed, by their paths in the dataset."""

    folders: set[bytes] = field(default_factory=set)
    trees: set[bytes] = field(default_factory=set)
    """Folders that came whole: nothing that was known below these paths holds any more."""
    lost: bool = False
    """There were others, and nobody knows which."""

    def __bool__(self) -> bool:
        return bool(self.folders) or self.lost


class Watch:
    """All folders of a dataset under watch, but of roots behind addresses. It must be closed."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._paths: dict[int, bytes] = {}
        self._tops = [f"{label}/".encode() if label else b"" for label, root in roots if not is_address(root)]
        for top in self._tops:
            self._add_tree(top)

    def close(self) -> None:
        """End all watches."""
        os.close(self._file)

    def _add_tree(self, top: bytes) -> None:
        stack = [top]
        while stack:
            folder = stack.pop()
            self._add(folder)
            with suppress(OSError), os.scandir(self._roots.whole(folder)) as entries:
                stack.extend(folder + e.name + b"/" for e in entries if e.is_dir(follow_symlinks=False))

    def _add(self, folder: bytes) -> None:
        flags = _MASK | _ONLY_FOLDERS | _NO_LINKS
        number = self._libc.inotify_add_watch(self._file, self._roots.whole(folder), flags)
        if number >= 0:
            self._paths[number] = folder
        elif ctypes.get_errno() == errno.ENOSPC:
            message = f"this user may watch no more than {len(self._paths)} folders"
            hint = "raise fs.inotify.max_user_watches (sysctl), or scan now and then"
            raise refuse(message, hint=hint, exit_code=1)
        # Gone meanwhile, or not to be read: the folder above it says so too.

    def changes(self, settle_s: float, stop: Callable[[], bool] = lambda: False) -> Iterator[Changes]:
        """Yield what changed, each time that nothing has for so long; `stop` is asked as often."""
        changes = Changes()
        while not stop():
            ready, _, _ = select.select([self._file], [], [], settle_s)
            if ready:
                self._read(changes)
            elif changes:
                yield changes
                changes = Changes()

    def _read(self, changes: Changes) -> None:
        data = os.read(self._file, _READ_BYTES)
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
            at += _EVENT.size + length
            self._take(number, mask, name, changes)

    def _take(self, number: int, mask: int, name: bytes, changes: Changes) -> None:
        if mask & _OVERFLOW:
            changes.lost = True
            return
        if mask & _IGNORED:
            self._paths.pop(number, None)
            return
        folder = self._paths.get(number)
        if folder is None:
            return
        if mask & (_MOVE_SELF | _DELETE_SELF):
            # Of what was moved away the old path is known no more; whatever lies there now is looked at.
            changes.lost = changes.lost or folder in self._tops
            return
        changes.folders.add(folder)
        if mask & _IS_FOLDER and mask & (_CREATE | _MOVED_TO):
            changes.trees.add(folder + name + b"/")
            self._add_tree(folder + name + b"/")
        if mask & _IS_FOLDER and mask & _MOVED_FROM:
            self._forget(folder + name + b"/")

    def _forget(self, top: bytes) -> None:
        """Let go of watches on what was moved away: where it is now they would speak with its old path."""
        for number, path in list(self._paths.items()):
            if path.startswith(top):
                self._libc.inotify_rm_watch(self._file, number)
                del self._paths[number]
