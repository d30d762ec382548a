"""The front door: all that can be done with datasets, selections and policies of a home, and with published catalogs.

It prints nothing. What it refuses is a Refusal, long work tells how far it is by one callback, and each answer makes
the document of its command by `as_json()`. Rooms are imported when they are first needed: most commands need few.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.data.catalog.store import Store, open_store
from podwright.data.extra import need_packages
from podwright.data.launcher import CatalogLauncher
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.requests import FindRequest, ScanRequest, ShowRequest, StatsRequest
from podwright.data.results import (
    CatalogListing,
    DatasetColumns,
    DatasetSummary,
    Found,
    GenerationHistory,
    SelectionFiles,
    Tagged,
)
from podwright.data.tree.known_layouts import layout_name
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.clients.clickhouse import ClickHouse
    from podwright.data.catalog.dataset import Dataset
    from podwright.data.catalog.description import FileDescription
    from podwright.data.catalog.growth import DatasetGrowth
    from podwright.data.catalog.revert import Reverted
    from podwright.data.catalog.scan import Scanned
    from podwright.data.clickhouse.published import PublishedDataset
    from podwright.data.exchange.exporting import Exported
    from podwright.data.exchange.importing import Imported
    from podwright.data.labels.runs import LabelRun
    from podwright.data.labels.statistics import Statistics
    from podwright.data.policies.policies import Policies
    from podwright.data.query.sql import QueryRows
    from podwright.data.selecting.copying import Copied
    from podwright.data.selecting.gallery import Gallery
    from podwright.data.selecting.select import Choice, Difference
    from podwright.data.selecting.selections import Selection
    from podwright.data.similar.known import Vectors
    from podwright.data.similar.listing import Similar
    from podwright.data.tree.roots import Roots


class Catalog:
    """The datasets, selections and policies of a home; `launcher` gives what starts runs and knows pods."""

    def __init__(self, store: Store, launcher: Callable[[], CatalogLauncher]) -> None:
        self._store, self._launcher = store, launcher

    @classmethod
    def of_home(cls, home: Path, launcher: Callable[[], CatalogLauncher]) -> Catalog:
        """Return the catalog of a home; refuse where the packages that it needs are missing."""
        need_packages()
        store = open_store(home)
        store.keeps = lambda: launcher().history()
        return cls(store, launcher)

    @cached_property
    def policies(self) -> Policies:
        """Return the policies: what happens to the files that a filter chooses."""
        from podwright.data.policies.policies import Policies

        return Policies(self._store, lambda workload, target: self._launcher().start(workload, target))

    # datasets

    def scan(self, request: ScanRequest, progress: Progress = unheard) -> Scanned:
        """Scan a tree into a new generation, then read checksums, then publish it, as far as that is asked for.

        Each step ends with a generation that is whole: whoever is killed between two goes on with the next scan.
        """
        from podwright.data.catalog.rescan import rescan
        from podwright.data.catalog.scan import root_of, scan
        from podwright.data.tree.roots import labelled

        # Asked before the hours of a scan for it.
        server = self._answering(request.catalog) if request.catalog else None
        roots = labelled([root_of(root) for root in (request.root, *request.further.roots)], request.further.labels)
        if request.quick and self._lies_at(request.dataset, roots):
            scanned = rescan(self._store, request.dataset, accept=request.accept)
        else:
            scanned = scan(self._store, roots, request.dataset, request.layout, progress, request.accept)
        if request.checksums:
            from podwright.data.policies.checksums import add_checksums

            generation, summed = add_checksums(self._store, request.dataset, progress)
            scanned = replace(scanned, generation=generation, summed=summed)
        if server is not None:
            from podwright.data.clickhouse.publish import publish

            scanned = replace(scanned, published=publish(self._store, request.dataset, server, request.everything))
        return scanned

    def _lies_at(self, dataset: str, roots: Roots) -> bool:
        """Say whether a dataset is known, and of this folder; what lies behind an address has no folders to look at."""
        if dataset not in self._store.datasets() or roots.has_address:
            return False
        with self.open(dataset) as opened:
            return opened.roots == roots

    def move(self, dataset: str, old: str, new: str, progress: Progress = unheard) -> Scanned:
        """Scan a dataset that lies elsewhere now, and keep all that is known of files of the same name and size."""
        from podwright.data.catalog.moving import move

        return move(self._store, dataset, old, new, progress)

    def history(self, dataset: str) -> GenerationHistory:
        """Return the generations of a dataset that can be gone back to, the newest first."""
        self._check_dataset(dataset)
        return GenerationHistory(self._store.history(dataset))

    def revert(self, dataset: str, generation: int) -> Reverted:
        """Make a generation of the history the one that readers see."""
        from podwright.data.catalog.revert import revert

        self._check_dataset(dataset)
        return revert(self._store, dataset, generation)

    def _check_dataset(self, name: str) -> None:
        if name not in self._store.datasets():
            raise self._store.unknown(name, self._store.datasets(), "dataset", "`podwright data ls` lists them")

    def watch(self, dataset: str, settle_s: float, stop: Callable[[], bool] = lambda: False) -> Iterator[Scanned]:
        """Scan what changes as it changes, and yield each scan; the first is of what changed while nobody watched.

        A scan begins when nothing has changed for so long; where the kernel lost events all of it is scanned again.
        """
        from podwright.data.catalog.watching import watch

        yield from watch(self._store, dataset, settle_s, stop)

    def import_tree(self, root: Path, format_name: str, dataset: str, progress: Progress = unheard) -> Imported:
        """Scan a folder of COCO, YOLO, Cityscapes or KITTI under a name, and count what its labels hold."""
        from podwright.data.exchange.importing import import_tree

        return import_tree(self._store, root, format_name, dataset, progress)

    def open(self, dataset: str, catalog: str | None = None) -> AbstractContextManager[Dataset | PublishedDataset]:
        """Open a dataset for reading: one generation of it, whatever is published meanwhile."""
        if catalog is None:
            from podwright.data.catalog.dataset import open_dataset

            return open_dataset(self._store, dataset)
        from podwright.data.clickhouse.published import open_published

        return open_published(self._server(catalog), dataset)

    def find(self, request: FindRequest) -> Found:
        """Return the files that a filter chooses; `open` goes through more of them than memory holds."""
        started = time.monotonic()
        with self.open(request.dataset, request.catalog) as opened:
            condition, order = opened.condition(request.where), opened.order(request.sort)
            files = list(opened.find(condition, request.limit, order))
            size_bytes = None
            if request.sizes:
                count, size_bytes = opened.count(condition)
            else:
                count = opened.count_files(condition)
            return Found(opened.root, count, size_bytes, files, opened.left_out, time.monotonic() - started)

    def describe(self, dataset: str, path: str) -> FileDescription:
        """Return all that is known of one file, by its path as it lies or as `find` shows it."""
        from podwright.data.catalog.dataset import open_dataset
        from podwright.data.catalog.description import describe

        with open_dataset(self._store, dataset) as opened:
            return describe(opened, path)

    def gallery(self, dataset: str, where: str | None, most: int) -> Gallery:
        """Return the samples that a filter chooses, with pictures of so many of them."""
        from podwright.data.catalog.dataset import open_dataset
        from podwright.data.selecting.gallery import gallery_of

        with open_dataset(self._store, dataset) as opened:
            return gallery_of(opened, where, most)

    def stats(self, request: StatsRequest, progress: Progress = unheard) -> Statistics:
        """Count the labels that are not counted yet, and return what all of them hold; of a catalog what is there."""
        from podwright.data.labels.recount import count_labels
        from podwright.data.labels.statistics import check_table, write_table

        if request.per_image is not None:
            check_table(request.per_image)
        elsewhere = self._label_run(request, progress)
        statistics = None
        if request.catalog is None:
            statistics = count_labels(self._store, request.dataset, progress, elsewhere)
        with self.open(request.dataset, request.catalog) as opened:
            if request.per_image is not None:
                write_table(opened.per_image(), request.per_image)
            return statistics or opened.statistics()

    def _label_run(self, request: StatsRequest, progress: Progress) -> LabelRun | None:
        """Return what counts labels on a target, or None; refuse what is given in vain."""
        if request.catalog is not None and (request.target is not None or request.nodes > 1 or request.sets):
            hint = "leave --on, --nodes and --set out, or --catalog"
            raise refuse("tells what was counted, and counts nothing", hint=hint, field="--catalog")
        if request.target is None:
            for field, is_given in (("--nodes", request.nodes > 1), ("--set", request.sets)):
                if is_given:
                    raise refuse("needs --on", hint="--on local counts here, as a run", field=field)
            return None
        from podwright.data.labels.runs import LabelRun

        start = self._launcher().start
        return LabelRun(
            start, request.target, request.nodes, request.sets, lambda run_id: progress(Advance("run", text=run_id))
        )

    def tag(self, dataset: str, where: str, tag: str) -> Tagged:
        """Give a tag, NAME=VALUE, to all files that a filter chooses; an empty value takes it away."""
        from podwright.data.policies.tags import parse_tag
        from podwright.data.policies.tags import tag as tag_files

        return Tagged(tag_files(self._store, dataset, where, *parse_tag(tag)))

    def sql(self, dataset: str, text: str, catalog: str | None = None) -> QueryRows:
        """Answer a query of the user's own, which only reads this dataset."""
        with self.open(dataset, catalog) as opened:
            return opened.query(text)

    def growth(self, dataset: str) -> DatasetGrowth:
        """Return how fast a dataset grows, and what curation left of it."""
        from podwright.data.catalog.growth import growth

        return growth(self._store, dataset)

    # selections

    def select(self, dataset: str, choice: Choice, catalog: str | None = None) -> Selection:
        """Choose samples of a dataset and freeze them under a name in the home."""
        from podwright.data.selecting.select import make_selection

        find_run = self._launcher().find if choice.ranked_by else None
        return make_selection(self._store, dataset, choice, self.open(dataset, catalog), find_run)

    def selection(self, name: str) -> Selection:
        """Return a selection."""
        from podwright.data.selecting.selections import load

        return load(self._store, name)

    def ls(self, catalog: str | None = None) -> CatalogListing:
        """Return all datasets and selections; of a catalog its datasets, as a selection lies in its home."""
        if catalog is None:
            selections = [self.selection(name) for name in self._store.selection_names()]
            return CatalogListing([self._summary(name, None) for name in self._store.datasets()], selections)
        from podwright.data.clickhouse.published import published_datasets

        datasets = []
        for name, entry in published_datasets(self._server(catalog)).items():
            files, size_bytes, layout, root = (entry.meta[key] for key in ("files", "bytes", "layout", "root"))
            datasets.append(DatasetSummary(name, files, size_bytes, layout_name(layout), root))
        return CatalogListing(datasets, [])

    def show(self, request: ShowRequest) -> DatasetColumns | SelectionFiles:
        """Return what the columns of a dataset hold, or the images of a selection's samples."""
        if request.catalog or request.name in self._store.datasets():
            with self.open(request.name, request.catalog) as opened:
                facets, classes = opened.facets(), opened.classes
            return DatasetColumns(self._summary(request.name, request.catalog), facets, classes)
        from podwright.data.selecting.links import runs_with
        from podwright.data.selecting.manifests import samples_of
        from podwright.data.selecting.selections import check_split

        self._check_known(request.name)
        selection = self.selection(request.name)
        files = []
        for split, sample in samples_of(selection, check_split(selection, request.split)):
            files += [(split, file) for file in (sample.files if request.all_files else sample.files[:1])]
        runs = runs_with(self._store.home / "runs", selection) if request.runs else []
        return SelectionFiles(selection, files, runs)

    def _summary(self, name: str, catalog: str | None) -> DatasetSummary:
        with self.open(name, catalog) as opened:
            return DatasetSummary(name, *opened.count(opened.condition(None)), opened.layout.name, opened.roots.shown)

    def diff(self, first: str, second: str) -> Difference:
        """Return how the second selection differs from the first."""
        from podwright.data.selecting.select import difference

        return difference(self.selection(first), self.selection(second))

    def stage(self, selection: str, to: Path, progress: Progress = unheard, verify: bool = False) -> Copied:
        """Copy the files of SELECTION or SELECTION/SPLIT to a folder, checked, and only what is not there yet.

        With `verify` what is there already is read again and compared by its SHA-256.
        """
        from podwright.data.selecting.copying import stage_to
        from podwright.data.selecting.selections import check_split

        name, _, split = selection.partition("/")
        chosen = self.selection(name)
        return stage_to(chosen, check_split(chosen, split or None), to, progress, verify)

    def export(self, selection: str, format_name: str, to: Path, progress: Progress = unheard) -> Exported:
        """Write a selection in a format of the field, into a folder that is not there yet."""
        from podwright.data.exchange.exporting import export

        return export(self.selection(selection), format_name, to, progress)

    def similar(self, name: str, distance: float | None = None, progress: Progress = unheard) -> Similar:
        """Return the near-duplicates of a dataset, or of a selection with the splits that they lie in."""
        from podwright.data.similar.listing import similar_in_dataset, similar_in_selection

        self._check_known(name)
        if name in self._store.datasets():
            return similar_in_dataset(self._store, name, distance, progress)
        return similar_in_selection(self._store, self.selection(name), distance, progress)

    def keep_vectors(self, dataset: str, file: Path) -> Vectors:
        """Take a vector for each image, of any program: near-duplicates are then told by these."""
        from podwright.data.similar.known import Looks

        with self.open(dataset) as opened:
            roots = opened.roots
        return Looks(self._store, dataset, roots).keep_vectors(file)

    def forget(
        self, name: str, catalog: str | None = None, agree: Callable[[str | None], bool] = lambda address: True
    ) -> bool:
        """Forget a dataset or a selection, or take a dataset out of a catalog; no file of it is touched.

        `agree` is asked before anything is gone, with the catalog's address where it goes from there.
        """
        if catalog is not None:
            from podwright.data.clickhouse.publish import withdraw
            from podwright.data.clickhouse.published import check_published

            server = self._server(catalog)
            check_published(server, name)
            agreed = agree(str(server.address))
            if agreed:
                withdraw(server, name)
            return agreed
        self._check_known(name)
        agreed = agree(None)
        if agreed and name in self._store.selection_names():
            from podwright.data.selecting.selections import forget_selection

            forget_selection(self._store, name)
        elif agreed:
            from podwright.data.similar.known import forget_looks

            self._store.forget(name)
            forget_looks(self._store, name)
        return agreed

    def _check_known(self, name: str) -> None:
        names = [*self._store.datasets(), *self._store.selection_names()]
        if name not in names:
            raise self._store.unknown(name, names, "dataset or selection", "`podwright data ls` lists them")

    # databases

    def _server(self, catalog: str) -> ClickHouse:
        """Return the database of this address, or that the file of a pod names; nothing is asked of it yet."""
        from podwright.clients.clickhouse import ClickHouse
        from podwright.spec.catalogs import parse_catalog

        address = catalog if "://" in catalog else self._launcher().catalog_of(catalog)
        return ClickHouse(parse_catalog(address), os.environ)

    def _answering(self, catalog: str) -> ClickHouse:
        from podwright.data.clickhouse.published import published_datasets

        server = self._server(catalog)
        published_datasets(server)
        return server
