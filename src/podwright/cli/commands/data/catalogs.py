"""Where `data` commands find a catalog: in the home, or with `--catalog` in a database, which a pod's file may name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import complete_target
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.clients.clickhouse import ClickHouse
    from podwright.data.catalog.dataset import Dataset
    from podwright.data.catalog.store import Store
    from podwright.data.clickhouse.publish import Published
    from podwright.data.clickhouse.published import PublishedDataset


def _option(what: str) -> Any:
    places = "a pod with `catalog:`, or clickhouse://..."
    return typer.Option("--catalog", metavar="POD|URL", help=f"{what}: {places}", autocompletion=complete_target)


Catalog = Annotated[str | None, _option("Ask there")]
PublishTo = Annotated[str | None, _option("Publish it there, too")]
WithdrawFrom = Annotated[str | None, _option("What is published there")]


def catalog_of(given: str) -> ClickHouse:
    """Return the database of this address, or that the file of a pod names; nothing is asked of it yet."""
    import os

    from podwright.clients.clickhouse import ClickHouse
    from podwright.spec.catalogs import parse_catalog

    return ClickHouse(parse_catalog(given if "://" in given else _named_by(given)), os.environ)


def _named_by(pod: str) -> str:
    from podwright.launch import Session, pods
    from podwright.spec.problems import refuse

    with Session.open() as session:
        described = pods.find(session.home, pod)
    if described.catalog is None:
        message, hint = f"the pod {described.name} has none", "write `catalog: clickhouse://HOST:8123/DATABASE`"
        raise refuse(message, hint=hint, field="catalog", file=str(described.path))
    return described.catalog


def reached(server: ClickHouse) -> ClickHouse:
    """Return a database that answers; asked before the hours of a scan for it."""
    from podwright.data.clickhouse.published import published_datasets

    published_datasets(server)
    return server


def check_only_asks(counts: bool) -> None:
    """Refuse to count labels where a database is asked what was counted."""
    from podwright.spec.problems import refuse

    if counts:
        hint = "leave --on, --nodes and --set out, or --catalog"
        raise refuse("tells what was counted, and counts nothing", hint=hint, field="--catalog")


def opened_for_reading(
    store: Store, dataset: str, catalog: str | None
) -> AbstractContextManager[Dataset | PublishedDataset]:
    """Open a dataset of the home, or of a database."""
    if catalog is None:
        from podwright.data.catalog.dataset import open_dataset

        return open_dataset(store, dataset)
    from podwright.data.clickhouse.published import open_published

    return open_published(catalog_of(catalog), dataset)


def publish_to(store: Store, dataset: str, server: ClickHouse, whole: bool) -> Published:
    """Publish what was scanned, and say what was left out."""
    from podwright.data.clickhouse.publish import publish

    published = publish(store, dataset, server, whole)
    if published.left_out:
        left_out = figures.count(published.left_out, "file")
        output.say("left out", f"{left_out} that not everybody may see; --whole publishes all of them")
    return published
