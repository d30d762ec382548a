"""Where `data` commands find a catalog: in the home, or with `--on POD` in the database that the pod's file names."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import complete_target
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.clients.clickhouse import ClickHouse
    from podwright.data.clickhouse.publish import Published
    from podwright.data.clickhouse.published import PublishedDataset
    from podwright.data.dataset import Dataset
    from podwright.data.store import Store


OnPod = Annotated[
    str | None,
    typer.Option("--on", metavar="POD", help="Of this pod's `catalog:`.", autocompletion=complete_target),
]


def catalog_of(pod: str) -> ClickHouse:
    """Return the database that the file of a pod names; nothing is asked of it yet."""
    import os

    from podwright.clients.clickhouse import ClickHouse
    from podwright.launch import Session, pods
    from podwright.spec.catalogs import parse_catalog
    from podwright.spec.problems import refuse

    with Session.open() as session:
        described = pods.find(session.home, pod)
    if described.catalog is None:
        message, hint = f"the pod {described.name} has none", "write `catalog: clickhouse://HOST:8123/DATABASE`"
        raise refuse(message, hint=hint, field="catalog", file=str(described.path))
    return ClickHouse(parse_catalog(described.catalog), os.environ)


def reached(server: ClickHouse) -> ClickHouse:
    """Return a database that answers; asked before the hours of a scan for it."""
    from podwright.data.clickhouse.published import published_datasets

    published_datasets(server)
    return server


def opened_for_reading(
    store: Store, dataset: str, on: str | None
) -> AbstractContextManager[Dataset | PublishedDataset]:
    """Open a dataset of the home, or of a pod's catalog."""
    if on is None:
        from podwright.data.dataset import open_dataset

        return open_dataset(store, dataset)
    from podwright.data.clickhouse.published import open_published

    return open_published(catalog_of(on), dataset)


def publish_on(store: Store, dataset: str, server: ClickHouse, whole: bool) -> Published:
    """Publish what was scanned, and say what was left out."""
    from podwright.data.clickhouse.publish import publish

    published = publish(store, dataset, server, whole)
    if published.left_out:
        left_out = figures.count(published.left_out, "file")
        output.say("left out", f"{left_out} that not everybody may see; --whole publishes all of them")
    return published
