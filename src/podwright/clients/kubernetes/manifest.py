"""Objects as YAML that `kubectl apply --server-side` takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from podwright.clients.kubernetes import names

WIDTH = 110
STEP = 2


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stay readable, and equal parts are written out each time."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = text.replace("\n", "").isprintable()
    style = None
    if not plain:
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def read_manifest(file: Traversable) -> list[dict[str, Any]]:
    """Return the objects of a file of ours, each with the label that says whose it is."""
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(file.read_text("utf-8")))
    for item in objects:
        metadata = item["metadata"]
        metadata["labels"] = {"app.kubernetes.io/managed-by": names.MANAGER, **metadata.get("labels", {})}
    return objects


def yaml_text(objects: Iterable[dict[str, Any]]) -> str:
    """Return objects as the documents of one text."""
    return "---\n".join(map(_document, objects))


def _document(item: dict[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _lines(item, WIDTH))


def _lines(data: Any, width: int) -> Iterator[str]:
    """Yield the lines that the dumper would give, which is asked for scalars alone.

    It takes tens of milliseconds for a Job, and the points of a matrix differ in few of their scalars.
    """
    if isinstance(data, dict) and data:
        for name, value in data.items():
            yield from _entry(name, value, width)
    elif isinstance(data, list) and data:
        for value in data:
            first, *rest = _lines(value, width - STEP)
            yield f"- {first}"
            yield from map(_deeper, rest)
    elif isinstance(data, dict | list):
        yield str(data)
    else:
        yield from _scalar(data, width)


def _entry(name: str, value: Any, width: int) -> Iterator[str]:
    if not isinstance(value, dict | list):
        yield from _pair(name, value, width)
        return
    *above, head = _pair(name, None, width)
    head = head.removesuffix(" null")
    if value:
        yield from (*above, head, *map(_deeper, _lines(value, width - STEP)))
    else:
        yield from (*above, f"{head} {value}")


def _deeper(line: str) -> str:
    if not line:
        return line
    return f"{' ' * STEP}{line}"


@lru_cache(maxsize=4096, typed=True)
def _pair(name: str, value: Any, width: int) -> list[str]:
    return _dumped({name: value}, width)


@lru_cache(maxsize=4096, typed=True)
def _scalar(value: Any, width: int) -> list[str]:
    """Return a scalar as it is written in a list: alone it may be written otherwise."""
    first, *rest = _dumped([value], width + STEP)
    return [first[STEP:], *(line[STEP:] for line in rest)]


def _dumped(data: Any, width: int) -> list[str]:
    """Return the lines without the mark that ends a document: more of it follows."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=width, allow_unicode=True)
    lines = text.split("\n")[:-1]
    if lines[-1] == "...":
        lines.pop()
    return lines


def yaml_objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text; the loader in C is used where there is one."""
    return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
