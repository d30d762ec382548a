"""The loader of runs outside a run: in a notebook or a debugger, over any folder or a selection of the home.

from podwright.loader import Loader, SampleFolder, folder_of

for batch in Loader(SampleFolder(folder_of("drive/train"), decode), batch_size=32):
    ...

In a run the same names come from `podwright_data`, which needs no Podwright in the image.
"""

from __future__ import annotations

from podwright.pilot.data.loader import EpochOrder, LazySample, Loader, SampleFolder

__all__ = ["EpochOrder", "LazySample", "Loader", "SampleFolder", "folder_of"]


def folder_of(selection: str) -> str:
    """Return the folder that a run gets of SELECTION or SELECTION/SPLIT of the home: links, and samples.jsonl.

    Raises Refusal where a file is gone or not as large as it was, and for data behind an address: it is staged first.
    """
    from podwright.data.catalog.store import open_store
    from podwright.data.extra import need_packages
    from podwright.data.selecting.links import link
    from podwright.data.selecting.selections import check_split, load
    from podwright.runs import Home
    from podwright.spec.problems import refuse

    need_packages()
    store = open_store(Home.open().path)
    name, _, split = selection.partition("/")
    chosen = load(store, name)
    if chosen.roots.has_address:
        message = f"{chosen.roots.shown} is an address, and links lead to files"
        raise refuse(message, hint=f"podwright data stage {selection} --to DIR")
    return str(link(store, chosen, check_split(chosen, split or None)).folder)
