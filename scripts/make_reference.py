"""Writes docs/reference: the fields of the two files and the commands, from the code that reads them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podwright import spec
from podwright.cli.main import main as podwright
from podwright.cli.table import EVERY
from podwright.design.floor import BTU_H
from podwright.telemetry.exporter import heads, vocabulary
from scripts.make_site import slug

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- made by scripts/make_reference.py: fix the code, then `make docs` -->\n\n"

INTROS = {
    "workload": """\
# workload.yaml

What to train and what it needs. It names nothing that belongs to one engine; what an engine alone needs is under its
own key and optional. Paths are relative to the file's folder, sizes and times have units, and in `command` and `env`
only `{data.NAME}`, `{matrix.NAME}` and `{checkpoint}` are replaced. `podwright check` reads it as a run would.
""",
    "pod": """\
# pod.yaml

One cluster: its nodes, fabrics, storage, schedulers, services and costs. A node's model is the name of an entry in the
hardware library, or is written out. `podwright check` reads it as a run would.
""",
}

LIBRARY_INTRO = """\
# Hardware library

Names that `pod.yaml` can use instead of writing the hardware out. Each is a file in `src/podwright/spec/library`, and a
fact that no source gives is left open there, not guessed.
"""
METRICS_INTRO = """\
# Metrics

What [`podwright exporter`](../gpu-metrics.md) tells. A series of a GPU has the labels `host`, `gpu`, of a MIG slice
`mig`, and while one run alone holds it `run`, `user`, `job` and `rank`; beside them those of its row. Under the names
of dcgm-exporter a series has the labels that dcgm-exporter writes, and the same four. Where a cell is empty there is
no such name.
"""
LIBRARY = {"nodes": "Nodes", "switches": "Switches", "storage": "Storage"}

Node = dict[str, Any]

# What JSON schema calls a type -> what the page calls it.
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "a mapping",
    "null": "nothing",
}


def sections(schema: Node) -> dict[str, str]:
    """Names each object within a file by the dotted field that holds it, as YAML has it, outermost first."""
    definitions: dict[str, Node] = schema.get("$defs", {})
    found: dict[str, str] = {}
    waiting = [("", schema)]
    while waiting:
        path, node = waiting.pop(0)
        for field, value in node.get("properties", {}).items():
            inner = f"{path}.{field}".lstrip(".")
            names = list(dict.fromkeys(name for name in references(value) if definitions[name].get("properties")))
            for name in names:
                if name not in found:
                    found[name] = inner if len(names) == 1 else f"{inner}: {_kind(name, definitions)}"
                    waiting.append((inner, definitions[name]))
    return found


def _kind(name: str, definitions: dict[str, Node]) -> str:
    """Tells objects that one field may hold apart: by their `kind` where they have one."""
    kind = definitions[name]["properties"].get("kind", {})
    return str(kind.get("const", name))


def takes(node: Node, definitions: dict[str, Node], titles: dict[str, str]) -> str:
    """Says in words what a field takes; a field that takes an object points at the section that lists its fields."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        title = titles.get(name)
        return f"[{title}](#{slug(title)})" if title else takes(definitions[name], definitions, titles)
    if "enum" in node or "const" in node:
        return ", ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            options = [takes(option, definitions, titles) for option in node[key] if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(options))
    if node.get("type") == "array":
        return f"a list of {takes(node.get('items', {}), definitions, titles)}"
    if node.get("type") == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"name: {takes(node['additionalProperties'], definitions, titles)}"
    words = TYPES.get(str(node.get("type")), "anything")
    return f"{words} such as `{node['examples'][0]}`" if node.get("examples") else words


def default_of(name: str, node: Node, parent: Node) -> str:
    """Says what holds when the field is left out; an object's defaults stand in its own section."""
    if name in parent.get("required", ()):
        return "required"
    value = node.get("default")
    if value in (None, "", []) or isinstance(value, dict):
        return ""
    if isinstance(value, float) and node.get("type") == "string":
        return f"`{value:g}s`"  # a time: text in the file, seconds in the model
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def table(node: Node, definitions: dict[str, Node], titles: dict[str, str]) -> str:
    """Lists an object's fields."""
    rows = ["| field | takes | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in node.get("properties", {}).items():
        kind, default = takes(field, definitions, titles), default_of(name, field, node)
        meaning = field.get("description") or ("what it is" if "const" in field else "")
        cells = (f"`{name}`", kind, default, meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def references(node: Any) -> Iterator[str]:
    """Names the definitions a schema uses, in the order in which they come."""
    if isinstance(node, dict):
        if "$ref" in node:
            yield str(node["$ref"]).rpartition("/")[2]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def file_page(kind: str) -> str:
    """Gives the reference of one of the two files: its own fields, then those of each object within."""
    schema: Node = spec.schema(kind)
    definitions: dict[str, Node] = schema.get("$defs", {})
    titles = sections(schema)
    parts = [NOTE + INTROS[kind], table(schema, definitions, titles)]
    for name, title in titles.items():
        node = definitions[name]
        parts.append(f"## {title}\n\n{node.get('description', '')}\n\n{table(node, definitions, titles)}")
    return "\n".join(parts)


def help_text(*args: str) -> str:
    """Gives what the command line itself prints, at 80 columns whatever the terminal."""
    os.environ["COLUMNS"] = "80"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        podwright([*args, "--help"])
    return out.getvalue().strip("\n")


def cli_page() -> str:
    """Gives the reference of the command line."""
    parts = [NOTE + "# Commands\n", f"```text\n{help_text()}\n```\n"]
    parts += [f"## {name}\n\n```text\n{help_text(*name.split())}\n```\n" for name in EVERY]
    return "\n".join(parts)


def library_page() -> str:
    """Gives the list of hardware that a pod can name, each with the source of its facts."""
    parts = [NOTE + LIBRARY_INTRO]
    for kind, title in LIBRARY.items():
        rows = [library_row(name, model) for name, model in spec.library(kind).items()]
        head = ["| name | what it is | height | power | heat | weight | source |", "| --- " * 7 + "|"]
        parts.append("\n".join([f"## {title}\n", *head, *rows, ""]))
    return "\n".join(parts)


def library_row(name: str, model: Any) -> str:
    """Gives one entry; what no source gives stays empty."""
    height = f"{model.rack_units} U" if model.rack_units else ""
    power = f"{model.power_w:,.0f} W" if model.power_w else ""
    heat_btu_h = getattr(model, "heat_btu_h", None) or (model.power_w or 0) * BTU_H
    heat = f"{heat_btu_h:,.0f} BTU/h" if heat_btu_h else ""
    weight = f"{model.weight_kg:g} kg" if model.weight_kg else ""
    cells = (f"`{name}`", model.title, height, power, heat, weight, model.source)
    return "| " + " | ".join(cell or "-" for cell in cells) + " |"


def metrics_page() -> str:
    """Gives the page of what `podwright exporter` tells, a row for each quantity."""
    rows = ["| our name | labels | dcgm-exporter before 4.9 | from 4.9 | meaning |", f"|{' --- |' * 5}"]
    for term in (*vocabulary.TERMS, vocabulary.LAST_XID):
        old, new = (f"`{name.name}`" if name else "" for name in (term.dcgm_4, term.dcgm_49))
        fixed = ", ".join(f'`{key}="{value}"`' for key, value in term.fixed)
        rows.append(f"| `{term.name}` | {fixed} | {old} | {new} | {term.help} |")
    rows += ["", "Beside them, each with `host`:", "", "| name | labels | meaning |", "| --- | --- | --- |"]
    for head in heads.HEADS:
        labels = ", ".join(f"`{label}`" for label in head.labels)
        rows.append(f"| `{head.name}` | {labels} | {head.help} |")
    return f"{NOTE}{METRICS_INTRO}\n" + "\n".join(rows) + "\n"


def pages() -> dict[str, str]:
    """Gives every page by its file name."""
    return {
        "workload.md": file_page("workload"),
        "pod.md": file_page("pod"),
        "library.md": library_page(),
        "cli.md": cli_page(),
        "metrics.md": metrics_page(),
    }


def main() -> None:
    """Writes the pages."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
