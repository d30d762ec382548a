"""Near-duplicates: every made pair is found and nothing else, across folders; what crosses a split is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pyarrow import parquet

from podwright.data.catalog.store import Store
from podwright.data.similar import groups
from podwright.data.similar.groups import hash_groups, near_pairs, vector_groups
from tests.unit.data.conftest import Say

Array = np.ndarray[Any, Any]
HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=12)
FLIPS = st.lists(st.tuples(st.integers(0, 11), st.sets(st.integers(0, 63), max_size=8)), max_size=12)


def brute_force(hashes: list[int], distance: int) -> list[int]:
    """Return the least member of each hash's group, by comparing each with each."""
    names = list(range(len(hashes)))
    for first, one in enumerate(hashes):
        for second in range(first):
            if (one ^ hashes[second]).bit_count() <= distance:
                low, high = sorted((names[first], names[second]))
                names = [low if name == high else name for name in names]
    return names


def partition(names: Array | list[int]) -> set[frozenset[int]]:
    members: dict[int, set[int]] = {}
    for number, name in enumerate(names):
        members.setdefault(int(name), set()).add(number)
    return set(map(frozenset, members.values()))


@given(HASHES, FLIPS, st.integers(0, 10))
def test_groups_of_hashes_are_those_of_comparing_each_with_each(
    hashes: list[int], flips: list[tuple[int, set[int]]], distance: int
) -> None:
    for at, bits in flips:
        if at < len(hashes):
            hashes.append(hashes[at] ^ sum(1 << bit for bit in bits))
    found = hash_groups(np.array(hashes, dtype=np.uint64), distance)
    assert partition(found) == partition(brute_force(hashes, distance))


def test_very_few_of_all_pairs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    count, compared = 20_000, 0

    def counted(keys: Any, near: groups.Near) -> Any:
        def look(first: Array, second: Array) -> Array:
            nonlocal compared
            compared += len(first)
            return near(first, second)

        return near_pairs(keys, look)

    monkeypatch.setattr(groups, "near_pairs", counted)
    rng = np.random.default_rng(2)
    hash_groups(rng.integers(0, 2**64, count, dtype=np.uint64), 6)
    assert 0 < compared < count * 84


def test_near_vectors_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((600, 32))
    near = vectors[:200] + 0.15 * rng.standard_normal((200, 32))
    both = np.concatenate([vectors, near])
    unit = both / np.linalg.norm(both, axis=1, keepdims=True)
    cosine = unit @ unit.T
    pairs = np.argwhere(np.triu(cosine >= 0.95, 1))
    found = vector_groups(both, 0.05)
    hit = sum(found[first] == found[second] for first, second in pairs)
    assert len(pairs) > 150
    assert hit >= 0.99 * len(pairs)
    size_of = np.bincount(found)
    assert (size_of[found[200:600]] == 1).all()


def picture(seed: int) -> Image.Image:
    """Draw a street that no other seed has: blocks of grey."""
    blocks = np.random.default_rng(seed).integers(0, 256, (8, 9), dtype=np.uint8)
    return Image.fromarray(blocks).resize((180, 160), Image.Resampling.NEAREST)


@pytest.fixture
def twins(tmp_path: Path, ask: Say) -> Path:
    """Write 40 images, and of 15 a near-duplicate in another folder: brighter, smaller, or saved with losses."""
    root = tmp_path / "twins"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    for seed in range(40):
        picture(seed).save(root / "a" / f"{seed}.png")
    for seed in range(15):
        image = picture(seed)
        if seed % 3 == 0:
            image.point(lambda value: min(255, value + 6)).save(root / "b" / f"{seed}.png")
        elif seed % 3 == 1:
            image.resize((90, 80)).save(root / "b" / f"{seed}.png")
        else:
            image.save(root / "b" / f"{seed}.jpg", quality=60)
    ask("scan", root, "--name", "d", "--layout", "plain")
    return root


def test_made_pairs_are_found_across_folders_and_nothing_else(ask: Say, twins: Path) -> None:
    similar = ask("similar", "d")
    found = {frozenset(Path(path).stem for path in group["paths"]) for group in similar["groups"]}
    made = {frozenset([str(seed)]) for seed in range(15)}
    assert (similar["images"], similar["by"], similar["crossing"]) == (55, "hash", 0)
    recall, precision = len(found & made) / len(made), len(found & made) / len(found)
    assert (recall, precision) == (1, 1)


def test_a_group_in_two_splits_is_named_and_no_duplicates_leave_none(ask: Say, tell: Say, twins: Path) -> None:
    ask("select", "d", "--name", "s", "--split", "train=0.5,test=0.5", "--by", "sample")
    leaking = ask("similar", "s", code=1)
    assert 0 < leaking["crossing"] == sum(len(group["splits"]) == 2 for group in leaking["groups"])
    out, err = tell("similar", "s", code=1)
    assert "2 images in train, test" in out
    assert "in more than one split; --no-duplicates" in err
    apart = ask("select", "d", "--name", "t", "--split", "train=0.5,test=0.5", "--by", "sample", "--no-duplicates")
    assert apart["lineage"]["duplicates"] == {"count": 15, "by": "hash"}
    assert sum(split["count"] for split in apart["splits"].values()) == 40
    assert ask("similar", "t")["groups"] == []


def test_hashes_are_computed_once_and_again_for_what_was_touched(ask: Say, store: Store, twins: Path) -> None:
    ask("similar", "d")
    path = store.home / "similar" / "d" / "hashes.parquet"
    assert parquet.read_table(path).num_rows == 55
    before = path.stat().st_mtime_ns
    ask("similar", "d", "--distance", "0")
    assert path.stat().st_mtime_ns == before
    picture(39).save(twins / "a" / "38.png")
    ask("scan", twins, "--name", "d")
    assert ["a/38.png", "a/39.png"] in [group["paths"] for group in ask("similar", "d")["groups"]]


def test_what_is_no_image_is_counted_as_unknown(ask: Say, twins: Path) -> None:
    (twins / "a" / "words.png").write_text("no picture")
    ask("scan", twins, "--name", "d")
    assert ask("similar", "d")["unknown"] == 1


def test_vectors_count_in_place_of_hashes(ask: Say, twins: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    vectors = {f"a/{seed}.png": rng.standard_normal(16) for seed in range(40)}
    vectors["a/9.png"] = vectors["a/8.png"] * 3
    table = pa.table({"path": list(vectors), "vector": [vector.tolist() for vector in vectors.values()]})
    parquet.write_table(table, tmp_path / "v.parquet")
    assert ask("vectors", "d", tmp_path / "v.parquet") == {"dataset": "d", "vectors": 40, "dimensions": 16}
    similar = ask("similar", "d", "--distance", "0.02")
    assert [sorted(group["paths"]) for group in similar["groups"]] == [["a/8.png", "a/9.png"]]
    assert (similar["by"], similar["unknown"]) == ("vector", 15)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"path": ["a"], "vectors": [[1.0]]}, "is no file of vectors"),
        ({"path": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, "has no vectors, or not all of one length"),
        ({"path": ["a"], "vector": [[float("nan")]]}, "has a vector with a number that is not finite"),
    ],
)
def test_bad_files_of_vectors_are_refused(
    tell: Say, twins: Path, tmp_path: Path, columns: dict[str, list[Any]], message: str
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "v.parquet")
    assert message in tell("vectors", "d", tmp_path / "v.parquet", code=2)[1]


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        ("11", "must be a whole number from 0 to 10"),
        ("-1", "must be a whole number from 0 to 10"),
        ("2.5", "must be a whole number from 0 to 10"),
        ("near", '"near" is no number'),
    ],
)
def test_a_distance_that_cannot_be_is_refused(tell: Say, twins: Path, distance: str, message: str) -> None:
    _, err = tell("similar", "d", f"--distance={distance}", code=2)
    assert f"--distance: {message}" in err
