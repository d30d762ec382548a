"""The loader: its law, its order, and what it reads."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections import Counter
from itertools import chain, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.pilot.data.loader import EpochOrder, Loader, Permutation, RankPlace, SampleFolder, share

LENGTHS = st.integers(1, 400)
SEEDS = st.integers(0, 2**32)


@given(LENGTHS, SEEDS)
def test_a_permutation_has_every_number_once(length: int, seed: int) -> None:
    shuffled = Permutation(length, seed)
    numbers = shuffled.numbers(range(length))
    assert sorted(numbers) == list(range(length))
    # One by one, as where there is no torch, and some of them, as a rank asks.
    assert [shuffled[position] for position in range(length)] == numbers
    assert shuffled.numbers(range(1, length, 3)) == numbers[1::3]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), SEEDS, st.integers(0, 5), st.booleans())
def test_an_epoch_has_every_sample_once(blocks: list[int], seed: int, epoch: int, shuffle: bool) -> None:
    order = EpochOrder(blocks, seed, epoch, shuffle)
    numbers = order.numbers(range(len(order)))
    assert sorted(numbers) == list(range(sum(blocks)))
    assert order.numbers(range(2, len(order), 3)) == numbers[2::3]


def test_epochs_and_seeds_differ_and_the_order_is_the_same_everywhere() -> None:
    seeds = (-1, 0, 1, 1 << 40)
    orders = {tuple(EpochOrder([50], seed, epoch).numbers(range(50))) for seed, epoch in product(seeds, range(3))}
    assert len(orders) == 12
    # Written down: a checkpoint of today must go on tomorrow, with any Python and any torch.
    assert EpochOrder([10], 1, 0).numbers(range(10)) == [2, 4, 7, 8, 9, 0, 6, 1, 3, 5]


@given(
    LENGTHS,
    SEEDS,
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_the_law_of_the_loader(
    length: int, seed: int, batch: int, lives: list[tuple[int, int]], last_world: int
) -> None:
    """Killed at any step on any number of ranks, again and again, and resumed on others: the multiset is exact."""
    order, taken = EpochOrder([length], seed, 0), 0
    seen: Counter[int] = Counter()
    for world, steps in lives:
        before = taken
        for rank in range(world):
            seen.update(order.numbers(share(length, before, RankPlace(rank, world)).positions[: steps * batch]))
        taken = min(before + steps * batch * world, length)
    for rank in range(last_world):
        seen.update(order.numbers(share(length, taken, RankPlace(rank, last_world)).positions))
    assert seen == Counter(range(length))


class Numbers:
    """So many samples, each its own number."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> int:
        return number


@given(
    LENGTHS,
    SEEDS,
    st.integers(1, 40),
    st.integers(1, 12),
    st.sampled_from(["pad", "drop"]),
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), max_size=3),
)
def test_the_law_of_equal_steps(
    length: int, seed: int, batch: int, world: int, tail: str, lives: list[tuple[int, int]]
) -> None:
    """Whatever batch, world and size, after any lives on other numbers of ranks: all ranks make the same steps."""
    taken = 0
    for ranks, steps in lives:
        taken = min(taken + steps * batch * ranks, length)
    order = EpochOrder([length], seed, 0)
    left = order.numbers(range(taken, length))
    shares = [share(length, taken, RankPlace(rank, world), batch, tail) for rank in range(world)]
    assert len({len(mine) for mine in shares}) == 1
    seen: Counter[int] = Counter()
    for mine in shares:
        again = [] if mine.again is None else order.numbers(range(mine.again, mine.again + 1))
        seen.update(order.numbers(mine.positions) + again)
    whole, repeated = Counter(left), shares[0].repeated
    if tail == "pad":
        assert seen - whole == seen - (seen & whole)
        assert whole <= seen
        assert (seen.total() - len(left), repeated < world) == (repeated, True)
    else:
        assert seen <= whole
        assert (len(left) - seen.total()) < batch * world
        assert len(shares[0]) % batch == 0


@pytest.mark.parametrize(("length", "batch", "world"), [(57, 7, 8), (56, 14, 4), (1, 2, 3), (40, 7, 3), (4100, 4, 1)])
def test_what_a_loader_gives_in_an_epoch(length: int, batch: int, world: int) -> None:
    """57 samples, batch 7, 8 ranks gave 2, 1, 1, ... steps, at which DDP waits for ever."""
    gotten: Counter[int] = Counter()
    sizes = []
    loaders = [Loader(Numbers(length), batch, seed=2).among(rank, world) for rank in range(world)]
    for loader in loaders:
        assert len(loader) == loader.steps
        batches = [given_batch.tolist() for given_batch in loader]
        gotten.update(chain.from_iterable(batches))
        sizes.append([len(one) for one in batches])
    assert sizes == [sizes[0]] * world
    assert gotten.total() == length + loaders[0].repeated
    assert set(gotten) == set(range(length))


def test_fewer_samples_than_a_step_of_all_ranks() -> None:
    padded = Loader(Numbers(2), 4).among(2, 3)
    assert (len(padded), padded.repeated) == (1, 1)
    assert [len(batch) for batch in padded] == [1]
    dropping = Loader(Numbers(2), 1, tail="drop").among(0, 3)
    with pytest.raises(RuntimeError, match='2 samples fill no step of 3 ranks with 1 each: give tail="pad"'):
        len(dropping)
    with pytest.raises(ValueError, match='tail "even" is none of pad, drop, uneven'):
        Loader(Numbers(2), 1, tail="even")


def test_a_draw_belongs_to_seed_epoch_and_sample() -> None:
    """Alike on any number of ranks, and another in every epoch."""

    class Drawn(Numbers):
        draws = True

        def __getitem__(self, key: tuple[int, int]) -> tuple[int, int]:  # type: ignore[override]
            return key

    def drawn(world: int, epoch: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for rank in range(world):
            loader = Loader(Drawn(9), 2, seed=4, collate_fn=dict).among(rank, world)
            loader.epoch = epoch
            for batch in loader:
                found |= batch
        return found

    assert drawn(1, 0) == drawn(4, 0)
    assert len({*drawn(1, 0).values(), *drawn(1, 1).values()}) == 18


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = []
    for number in range(11):
        (tmp_path / f"{number}.png").write_bytes(b"image %d" % number)
        (tmp_path / f"{number}.txt").write_bytes(b"label %d" % number)
        split = "train" if number < 10 else "test"
        rows.append(json.dumps({"split": split, "image": f"{number}.png", "label": f"{number}.txt"}) + "\n")
    (tmp_path / "samples.jsonl").write_text("".join(rows))
    return tmp_path


def number_of(sample: dict[str, bytes]) -> int:
    assert sample["image"].split()[1] == sample["label"].split()[1]
    return int(sample["image"].split()[1])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [2, 3])
def test_killed_on_four_ranks_and_resumed_on_others(folder: Path, world: int, workers: int) -> None:
    seen: Counter[int] = Counter()
    states = []
    for rank in range(4):
        loader = Loader(SampleFolder(str(folder), number_of), 1, seed=3, num_workers=workers).among(rank, 4)
        iterator = iter(loader)
        seen.update(next(iterator).tolist())
        states.append(loader.state_dict())
        del iterator
    assert states == [states[0]] * 4
    for rank in range(world):
        loader = Loader(SampleFolder(str(folder), number_of), 2, tail="uneven").among(rank, world)
        loader.load_state_dict(states[0])
        for batch in loader:
            seen.update(batch.tolist())
        assert (loader.epoch, loader.taken) == (1, 0)
    assert seen == Counter(range(11))


def test_a_split_and_the_length_of_what_is_left(folder: Path) -> None:
    loader = Loader(SampleFolder(str(folder), number_of, split="train"), 3).among(1, 2)
    assert (len(loader.samples), len(loader)) == (10, 2)
    assert [len(batch) for batch in loader] == [3, 2]
    with pytest.raises(RuntimeError, match="of 11 samples, and here are 10"):
        loader.load_state_dict({"epoch": 0, "taken": 0, "seed": 0, "samples": 11})


def write_shard(folder: Path, shard: int) -> Path:
    path = folder / f"train-{shard}.tar"
    with tarfile.open(path, "w") as archive:
        for number, suffix in product(range(3), ("png", "cls.txt")):
            info = tarfile.TarInfo(f"d/{shard}{number}.{suffix}")
            data = f"{suffix} {shard}{number}".encode()
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("mode", [0o644, 0o444])
def test_shards_are_read_member_by_member(tmp_path: Path, mode: int) -> None:
    """Those that nobody may write to are mapped, others are read."""
    for shard in range(2):
        write_shard(tmp_path, shard).chmod(mode)
    samples = SampleFolder(str(tmp_path))
    assert len(samples) == 6
    assert samples[4] == {"key": "d/11", "png": b"png 11", "cls.txt": b"cls.txt 11"}
    views = SampleFolder(str(tmp_path), lambda sample: bytes(sample.view("png")))
    assert [views[0], pickle.loads(pickle.dumps(SampleFolder(str(tmp_path))))[0]["png"]] == [b"png 00", b"png 00"]
    (tmp_path / "x.tar").write_bytes(b"\x1f\x8b no tar")
    with pytest.raises(RuntimeError, match="no plain tar"):
        SampleFolder(str(tmp_path))


def test_an_index_is_used_where_it_is_that_of_the_shard(tmp_path: Path) -> None:
    """It names one sample of three, so that it can be told whether it was used."""
    write_shard(tmp_path, 0)
    index = tmp_path / "train-0.idx"
    index.write_text("v1.2 1\npng 1536 6 d/00.png cls.txt 2560 10 d/00.cls.txt\n")
    assert len(SampleFolder(str(tmp_path))) == 3, "what it names lies elsewhere"
    index.write_text("v1.2 1\npng 512 6 d/00.png cls.txt 1536 10 d/00.cls.txt\n")
    samples = SampleFolder(str(tmp_path))
    assert [samples[number] for number in range(len(samples))] == [
        {"key": "d/00", "png": b"png 00", "cls.txt": b"cls.txt 00"}
    ]
    for other in ("", "v1.2 1\n", "v1.2 1\n\n", "v1.1 1\npng 512 6\n", "v1.2 1\npng x 6 d/00.png\n", "v1.2 0\n"):
        index.write_text(other)
        assert len(SampleFolder(str(tmp_path))) == 3, other


def test_parquet_is_read_row_by_row_and_shuffled_group_by_group(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"n": list(range(20))}), tmp_path / "a.parquet", row_group_size=5)
    samples = SampleFolder(str(tmp_path), lambda row: row["n"])
    assert (samples.blocks, samples[7]) == ([5, 5, 5, 5], 7)
    numbers = [batch.tolist() for batch in Loader(samples, 5, seed=1)]
    assert [{number // 5 for number in batch} for batch in numbers] == [{b[0] // 5} for b in numbers]
    assert sorted(chain.from_iterable(numbers)) == list(range(20))
