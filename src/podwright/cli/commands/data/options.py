"""What `data` commands have in common: the catalog that they ask, options, progress, and how paths are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import complete_target
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.meter import Meter

if TYPE_CHECKING:
    from podwright.data import Advance, Catalog, Progress

SIZE_WIDTH = len("1023 KiB") + 2


def complete_name(incomplete: str) -> list[str]:
    """Return the datasets and selections that begin like this; it reads folder names only."""
    from podwright.runs.store import default_home
    from podwright.spec.problems import Refusal

    try:
        home = default_home()
        paths = [*(home / "catalog").iterdir(), *(home / "selections").glob("*")]
    except (OSError, Refusal):
        return []
    return sorted(path.name for path in paths if path.name.startswith(incomplete))


DatasetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="The name it was scanned under.", autocompletion=complete_name)
]
FilterText = Annotated[
    str | None, typer.Argument(metavar="FILTER", help='Such as `camera=front_center and Car>0`; "..." where needed.')
]
Print0 = Annotated[bool, typer.Option("--print0", help="Whole paths, a zero byte behind each: xargs -0.")]


def _catalog_option(purpose: str) -> Any:
    text = f"{purpose}: a pod with `catalog:`, or clickhouse://..."
    return typer.Option("--catalog", metavar="POD|URL", help=text, autocompletion=complete_target)


AskThere = Annotated[str | None, _catalog_option("Ask there")]
PublishTo = Annotated[str | None, _catalog_option("Publish it there, too")]
WithdrawFrom = Annotated[str | None, _catalog_option("What is published there")]


def open_catalog() -> Catalog:
    """Return the catalog of the user's home."""
    from podwright import catalog

    return catalog()


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Give what shows on stderr how far long work is."""
    with ExitStack() as stack:
        meters = {
            "scan": Meter("scan", "files"),
            "checksums": Meter("checksums", "files"),
            "stats": Meter("stats", "labels"),
            "export": Meter("export", "samples"),
            "similar": Meter("similar", "images"),
            "staging": Meter("staging", figure=figures.size),
        }
        for meter in meters.values():
            stack.enter_context(meter)

        def show(advance: Advance) -> None:
            if advance.what == "run":
                output.say("run", advance.text)
            else:
                meters[advance.what].show(advance.done, advance.total, advance.text)

        yield show


def path_text(path: str, width: int | None) -> str:
    """Return a path on one line, as a filter takes it in quotes; of one that is too wide the end tells files apart."""
    text = output.one_line(path.replace("\\", "\\\\"))
    if width is None or len(text) <= width:
        return text
    return f"...{text[3 - width :]}"


def print_paths(paths: Iterable[bytes]) -> None:
    """Print whole paths as bytes, each with a zero byte behind it."""
    import sys

    for path in paths:
        sys.stdout.buffer.write(path + b"\0")
    sys.stdout.buffer.flush()
