"""A fault of ours: its traceback goes to a file that a user can read, check and send; the screen gets two lines."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path

from podwright import __version__, runs

# A name that says so itself; the names under a workload's `secrets:` are added by `keep_out`.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_kept_out: set[str] = set()


def keep_out(names: tuple[str, ...] | list[str]) -> None:
    """Remember names of environment variables whose values must not get into a saved traceback."""
    _kept_out.update(names)


def describe(error: BaseException, args: list[str]) -> tuple[str, str]:
    """Save the traceback and return the two lines for the screen: what it was, where it lies and where to send it."""
    what = f"podwright met a fault of its own: {type(error).__name__}: {clean(str(error))}".splitlines()[0]
    saved = _save(_report(error, args))
    if saved is None:
        return what, "The details could not be saved; PODWRIGHT_DEBUG=1 shows them on the screen."
    return what, f"Please send {saved} to {_where_to_send()}."


def clean(text: str) -> str:
    """Take the values of secrets out of a text, each by the name of its variable."""
    from podwright.pilot.masking import Masker

    for name, value in os.environ.items():
        if name in _kept_out or _SECRET_NAME.search(name):
            text = Masker([value], mask=f"<{name}>").text(text)
    return text


def _report(error: BaseException, args: list[str]) -> str:
    head = [
        f"podwright {__version__}, Python {sys.version.split()[0]} on {sys.platform}",
        "podwright " + " ".join(_without_value(arg) for arg in args),
        "",
    ]
    return clean("\n".join(head) + "".join(traceback.format_exception(error)))


def _without_value(arg: str) -> str:
    """Cut what follows a `=`: `--set env.NAME=value` is the one place where a secret may stand in the arguments."""
    name, sign, _ = arg.partition("=")
    return f"{name}=..." if sign else arg


def _save(text: str) -> Path | None:
    from podwright.files.whole import make_private

    name = f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    # Where there is no home, the folder of temporary files serves; the name there says whose file it is.
    for path in (runs.default_home() / "faults" / name, Path(tempfile.gettempdir()) / f"podwright-fault-{name}"):
        try:
            make_private(path.parent)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None


def _where_to_send() -> str:
    """Return the address that the installed package names for issues."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("podwright").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    addresses = [url.split(",", 1)[1].strip() for url in urls if url.lower().startswith(("issues", "bug"))]
    return next(iter(addresses), "the maintainers of Podwright")
