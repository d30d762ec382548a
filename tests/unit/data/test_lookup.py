"""Indexes give the rows that SQL gives, whatever the filter is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.data.catalog.dataset import Dataset, _Part, open_dataset, source_of
from podwright.data.catalog.files import CatalogFile
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.policies.tags import tag
from podwright.data.query import bitmaps, lookup
from podwright.data.query.conditions import Condition, condition_of
from podwright.data.query.lookup import Lookup
from podwright.data.query.trigrams import BLOCK_ROWS, PathBlocks, terms_of
from podwright.spec.filters import Combined, Comparison, Filter, Negated
from tests.fixtures.a2d2 import write_scenes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VALUES = {
    "scene": ("20180801_145028", "20180803_145028", "2018", "none"),
    "kind": ("camera", "label"),
    "ext": ("png", "json", "txt", ""),
    "frame": ("-1", "1", "2", "3"),
    "size": ("0", "5", "19", "1MB"),
    "mtime": ("2001-01-01", "2030-01-01"),
    "mode": ("0644", "0600"),
    "path": ("145028/label", "_00000", "note", "ü", "/c", "20180802_145028/label/cam_front_center"),
    "name": ("camera", "notes.txt", "zz"),
    "Car": ("0", "1", "20", "-3"),
    "weather": ("rain", "4", "none"),
}
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "~")


def comparisons() -> st.SearchStrategy[Comparison]:
    return st.sampled_from(sorted(VALUES)).flatmap(comparison_of)


def comparison_of(name: str) -> st.SearchStrategy[Comparison]:
    signs = SIGNS
    if name in ("frame", "size", "mtime", "mode", "Car"):
        signs = SIGNS[:-1]
    values = VALUES[name]
    if name == "weather":
        values = ("4", "3.5")
        signs = ("<", ">", "=", "!=")
    return st.builds(Comparison, st.just(name), st.sampled_from(signs), st.sampled_from(values), st.just(1), st.just(1))


def trees() -> st.SearchStrategy[Filter]:
    def grown(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.builds(Negated, inner) | st.builds(Combined, st.sampled_from(["and", "or"]), parts)

    return st.recursive(comparisons(), grown, max_leaves=6)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    folder = tmp_path_factory.mktemp("lookup")
    tree = write_scenes(folder / "a2d2", scenes=4, frames=3)
    for number in range(40):
        (tree / "odd").mkdir(exist_ok=True)
        (tree / "odd" / f"notes{number}.txt").write_text("x" * (number % 7))
    (tree / "grün.txt").write_text("green")
    store = Store(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "SPAN_ROWS", 16)  # few files shall lie in many blocks
        patch.setattr(bitmaps, "AT_ONCE", 2)  # and these be written while others are read, as those of many files are
        scan(store, tree, "a2d2")
    count_labels(store, "a2d2")
    tag(store, "a2d2", "frame=1", "weather", "rain")
    tag(store, "a2d2", "frame=2", "weather", "4")
    with open_dataset(store, "a2d2") as opened:
        yield opened


def rows_by_sql(dataset: Dataset, condition: Condition) -> set[int]:
    query = f"SELECT f.id FROM {source_of(condition)}"
    return {row for (row,) in dataset.connection.execute(query, list(condition.values)).fetchall()}


@given(tree=trees())
@settings(max_examples=80, deadline=None)
def test_candidates_hold_every_row_that_sql_gives_and_exact_ones_no_other(dataset: Dataset, tree: Filter) -> None:
    condition = condition_of(tree, dataset.vocabulary)
    wanted = rows_by_sql(dataset, condition)
    files = dataset.connection.execute("SELECT count(*) FROM file").fetchone()
    assert files is not None
    candidates = Lookup(dataset.connection, "part0", files[0]).candidates(condition)
    if candidates is not None:
        assert wanted <= set(candidates.rows)
        assert not candidates.exact or wanted == set(candidates.rows)
    assert dataset.count_files(condition) == len(wanted)
    assert dataset.count(condition)[0] == len(wanted)
    assert len(list(dataset.find(condition))) == len(wanted)


@pytest.mark.parametrize(
    "text", ["kind=label and size>0", "scene~2018", "frame>=2 or ext=txt", "Car>0", "weather=rain"]
)
def test_what_has_an_index_is_answered_by_it(dataset: Dataset, text: str) -> None:
    candidates = Lookup(dataset.connection, "part0", 77).candidates(dataset.condition(text))
    assert candidates is not None
    assert candidates.exact


class Asked:
    """A connection that keeps what it was asked."""

    def __init__(self, dataset: Dataset) -> None:
        self._connection = dataset.connection
        self.queries: list[str] = []

    def execute(self, query: str, *values: Any) -> Any:
        self.queries.append(query)
        return self._connection.execute(query, *values)


@pytest.mark.parametrize("text", ["size>=0", "size>=1 and size<=4", "frame<3"])
def test_the_rows_of_many_blocks_are_read_by_one_query(dataset: Dataset, text: str) -> None:
    asked = Asked(dataset)
    asking = Lookup(cast("DuckDBPyConnection", asked), "part0", 77)
    assert len(asking._spans["size"]) > 4
    condition = dataset.condition(text)
    candidates = asking.candidates(condition)
    assert candidates is not None
    assert set(candidates.rows) == rows_by_sql(dataset, condition)
    reads = [query for query in asked.queries if ".span_blocks_" in query and "SELECT above" not in query]
    assert len(reads) == text.count("and") + 1


def test_facets_are_what_a_count_gives(dataset: Dataset) -> None:
    for column, values in dataset.facets().items():
        for value, count in values.items():
            assert dataset.count_files(dataset.condition(f'{column}="{value}"')) == count


def names() -> st.SearchStrategy[str]:
    free = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1)
    return free | st.builds("{:0{}d}.png".format, st.integers(0, 10**6), st.integers(1, 20))


@given(
    names=st.lists(names(), min_size=1),
    folder=st.sampled_from(["", "a/", "grün/b/"]),
)
@settings(deadline=None)
def test_every_term_of_a_path_is_in_its_block(names: list[str], folder: str) -> None:
    import numpy as np
    import pyarrow as pa

    blocks = PathBlocks(np.array([7]), pa.chunked_array([[folder]]))
    taken = blocks.take(np.full(len(names), 7), pa.array(names))
    seen = {(term, int(block)) for term, found in taken for block in found}
    wanted = {(letters, row // BLOCK_ROWS) for row, name in enumerate(names) for letters in terms_of(folder + name)}
    assert seen == wanted


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Files that count up, as frames do, in two folders."""
    folder = tmp_path_factory.mktemp("counted")
    for side in ("left", "right"):
        (folder / "tree" / side).mkdir(parents=True)
        for number in range(1200):
            (folder / "tree" / side / f"{side}_{number:09d}.txt").touch()
    store = Store(folder / "home")
    scan(store, folder / "tree", "counted")
    with open_dataset(store, "counted") as opened:
        yield opened


def test_zeros_before_a_number_tell_it_from_longer_ones(counted: Dataset) -> None:
    candidates = Lookup(counted.connection, "part0", 2400).candidates(counted.condition("path~left_00000007"))
    assert candidates is not None
    assert set(range(70, 80)) <= set(candidates.rows)
    assert not set(range(700, 800)) & set(candidates.rows)  # which have the same trigrams


PARTS = ("t_00000007", "right_000001", "left/left_00000010", "00001199.txt", "0000000000", "2")


@pytest.mark.parametrize("text", PARTS)
def test_files_with_a_part_of_a_path_are_those_that_sql_gives(counted: Dataset, text: str) -> None:
    condition = counted.condition(f"path~{text}")
    wanted = rows_by_sql(counted, condition)
    found = [match.path for match in counted.find(condition)]
    assert len(found) == counted.count_files(condition) == counted.count(condition)[0] == len(wanted)
    assert found == sorted(path for path in found if text in path)
    assert [match.path for match in counted.find(condition, 3)] == found[:3]


def test_a_part_of_paths_is_looked_for_once_by_a_list_and_its_count(counted: Dataset) -> None:
    asked = Asked(counted)
    part = _Part(cast("DuckDBPyConnection", asked), CatalogFile("part0", 2400))
    condition = counted.condition("path~left_00000007")
    assert len(list(part.find(condition, (), 4))) == 4
    assert part.count(condition) == 10
    assert sum("contains(" in query for query in asked.queries) == 1


def test_sets_that_are_read_one_by_one_are_kept_as_they_are(counted: Dataset) -> None:
    for table, column in (("bitmap", "rows"), ("trigram", "blocks")):
        query = f"""SELECT DISTINCT compression FROM pragma_storage_info('part0.{table}')
            WHERE column_name = '{column}' AND segment_type <> 'VALIDITY'"""
        assert counted.connection.execute(query).fetchall() == [("Uncompressed",)]


def test_more_sets_are_read_than_are_kept(counted: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_MAX_KEPT", 2)
    asking = Lookup(counted.connection, "part0", 2400)
    for text in ("left_00000007", "right_00000007", "left_00000007"):
        condition = counted.condition(f"path~{text}")
        candidates = asking.candidates(condition)
        assert candidates is not None
        assert rows_by_sql(counted, condition) <= set(candidates.rows)


def test_a_tag_of_many_values_still_narrows(dataset: Dataset, tmp_path: Path) -> None:
    condition = dataset.condition("weather>3.5")
    candidates = Lookup(dataset.connection, "part0", 77).candidates(condition)
    assert candidates is not None
    assert not candidates.exact
    assert dataset.count_files(condition) == 12
