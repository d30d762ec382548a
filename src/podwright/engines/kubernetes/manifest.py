"""Objects as YAML that `kubectl apply --server-side` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


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
    dumped = (yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True) for one in objects)
    return "---\n".join(dumped)


def yaml_objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader))
