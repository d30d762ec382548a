"""Files that hosts get, in their own form: those of the folder `templates`, with values where their names stand."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from podwright.bringup.plan.host import HostFile


@cache
def _text(name: str) -> str:
    return (files("podwright.bringup.plan") / "templates" / name).read_text("utf-8")


def text_of(name: str, /, **values: object) -> str:
    """Return a file with each value where its name stands between at signs."""
    text = _text(name)
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def unit_of(service: str, /, **values: object) -> HostFile:
    """Return the unit of a service of ours, which is started again when it changes."""
    name = f"{service}.service"
    return HostFile(f"/etc/systemd/system/{name}", text_of(name, **values), restarts=(service,))
