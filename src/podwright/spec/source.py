"""Reads a file that a user names, and never blocks, never reads much, never trips over what it really is."""

from __future__ import annotations

import codecs
import os
import re
import stat
from pathlib import Path

from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Problem, Refusal, refuse

LARGEST_BYTES = 1 << 20

_KINDS = (
    (stat.S_ISDIR, "is a folder, not a file", "name the file inside it"),
    (stat.S_ISFIFO, "is a pipe, not a file", "write what comes out of it to a file and name that"),
    (stat.S_ISCHR, "is a device, not a file", "name a file"),
    (stat.S_ISBLK, "is a device, not a file", "name a file"),
    (stat.S_ISSOCK, "is a socket, not a file", "name a file"),
)
# UTF-32 begins like UTF-16, so that it must be asked first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_NOT_IN_YAML = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def read_source(path: Path) -> bytes:
    """Return the bytes of a regular file of at most 1 MiB."""
    file = str(path)
    try:
        _refuse_kind(file, path.stat())
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            # What was a file a moment ago may be something else by now.
            _refuse_kind(file, os.fstat(descriptor))
            content = stream.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise refuse("there is no such file", hint=_nearby(path), file=file) from None
    except NotADirectoryError:
        raise refuse("there is no such file", hint="a part of the path is not a folder", file=file) from None
    except PermissionError:
        raise refuse("may not be read by you", hint=f"look at its rights: ls -l {file}", file=file) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(f"cannot be read: {reason.lower()}", file=_printable(file)) from None
    if len(content) > LARGEST_BYTES:
        raise _too_large(file)
    return content


def decode(content: bytes, file: str) -> str:
    """Return the text of UTF-8 bytes, with the place of the first byte or character that does not belong."""
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            raise refuse(f"is written in {name}, not UTF-8", hint="save it as UTF-8", file=file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig")
        message = f"byte 0x{content[error.start]:02X} at offset {error.start} is not UTF-8"
        raise Refusal([_at(file, before, message, "save the file as UTF-8")]) from None
    strange = _NOT_IN_YAML.search(text)
    if strange:
        message = f"the character U+{ord(strange[0]):04X} is not allowed"
        hint = "this is not a text file" if strange[0] == "\0" else "take it out; in double quotes it can be escaped"
        raise Refusal([_at(file, text[: strange.start()], message, hint)])
    return text


def _refuse_kind(file: str, facts: os.stat_result) -> None:
    for is_kind, message, hint in _KINDS:
        if is_kind(facts.st_mode):
            raise refuse(message, hint=hint, file=file)
    if facts.st_size > LARGEST_BYTES:
        raise _too_large(file)


def _too_large(file: str) -> Refusal:
    return refuse(
        "is larger than 1 MiB", hint="a pod or workload file is a page or two; is this the right one?", file=file
    )


def _nearby(path: Path) -> str | None:
    """Look for a file that the user may have meant, in the same folder."""
    try:
        names = [entry.name for entry in os.scandir(path.parent) if entry.name.endswith((".yaml", ".yml"))]
    except OSError:
        return f"there is no folder {path.parent} either"
    return did_you_mean(path.name, sorted(names), "", shown=lambda name: str(path.parent / name)) or None


def _printable(text: str) -> str:
    return text.encode("unicode_escape", "backslashreplace").decode("ascii")


def _at(file: str, before: str, message: str, hint: str) -> Problem:
    lines = re.split(r"\r\n|\r|\n", before)
    return Problem(file, len(lines), len(lines[-1]) + 1, "", message, hint)
