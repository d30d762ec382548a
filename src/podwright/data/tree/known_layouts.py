"""Layouts by what users, catalogs and selections say of them: a name, a file, or the text that was kept of one."""

from __future__ import annotations

from pathlib import Path

from podwright.data.tree.layouts import Layout, layouts
from podwright.spec.problems import refuse, short


def layout_named(name: str) -> Layout:
    """Return the layout of a name, of a file, or of the text that a catalog kept; refuse what is none."""
    if "\n" in name:
        from podwright.data.tree.layout_files import parse_layout  # models of files are slow to import

        return parse_layout(name, "--layout")
    if name.endswith((".yaml", ".yml")):
        from podwright.data.tree.layout_files import read_layout

        return read_layout(Path(name))
    names = layouts()
    if name not in names:
        hint = f"layouts are {', '.join(names)}; or a file of yours, FILE.yaml"
        raise refuse(f'there is no layout "{name}"', hint=hint, field="--layout")
    return names[name]


def layout_of(dataset: str, kept: str) -> Layout:
    """Return the layout that a generation was scanned with."""
    layout = known_layout(kept)
    if layout is None:
        message = f"{dataset} has the layout {short(kept)}, which no package that is installed has"
        raise refuse(message, hint="install that package again, or scan it with --layout plain")
    return layout


def known_layout(kept: str) -> Layout | None:
    """Return the layout of what a catalog or a selection kept of it, where it is known here."""
    return layout_named(kept) if "\n" in kept else layouts().get(kept)


def layout_name(kept: str) -> str:
    """Return the name of what was kept of a layout, whether it is known here or not."""
    return layout_named(kept).name if "\n" in kept else kept
