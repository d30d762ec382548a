"""Objects as YAML that `kubectl apply --server-side` takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import yaml

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
    style = None if plain and "\n" not in text else "|" if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(objects: Iterable[dict[str, Any]]) -> str:
    return "---\n".join("".join(f"{line}\n" for line in _lines(one, WIDTH)) for one in objects)


def _lines(data: Any, width: int) -> Iterator[str]:
    """The lines that the dumper would give, which is asked for scalars alone.

    It takes tens of milliseconds for a Job, and the points of a matrix differ in few of their scalars.
    """
    if isinstance(data, dict) and data:
        for name, value in data.items():
            yield from _entry(name, value, width)
    elif isinstance(data, list) and data:
        for value in data:
            for number, line in enumerate(_lines(value, width - STEP)):
                yield _deeper(line) if number else f"- {line}"
    else:
        yield from ["{}"] if data == {} else ["[]"] if data == [] else _scalar(data, width)


def _entry(name: str, value: Any, width: int) -> Iterator[str]:
    if not isinstance(value, dict | list):
        yield from _pair(name, value, width)
        return
    *above, head = _pair(name, None, width)
    head = head.removesuffix(" null")
    if value:
        yield from (*above, head, *map(_deeper, _lines(value, width - STEP)))
    else:
        yield from (*above, f"{head} {'{}' if isinstance(value, dict) else '[]'}")


def _deeper(line: str) -> str:
    return f"{' ' * STEP}{line}" if line else line


@lru_cache(maxsize=4096, typed=True)
def _pair(name: str, value: Any, width: int) -> list[str]:
    return _dumped({name: value}, width)


@lru_cache(maxsize=4096, typed=True)
def _scalar(value: Any, width: int) -> list[str]:
    """As an item of a list: alone it may be written otherwise."""
    first, *rest = _dumped([value], width + STEP)
    return [first[STEP:], *(line[STEP:] for line in rest)]


def _dumped(data: Any, width: int) -> list[str]:
    """Without the mark that ends a document: more of it follows."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=width, allow_unicode=True)
    lines = text.split("\n")[:-1]
    return lines[:-1] if lines[-1] == "..." else lines


def yaml_objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader))
