"""Groups of near things among very many, without comparing each with each: what is near shares one of many keys. Pure.

Hashes of 64 bits that differ in D or fewer agree in three of D + 3 blocks at least, so every near pair is found.
Vectors of a small angle lie on the same side of many random planes: at the threshold one pair in 1000 is missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Near = Callable[[Array, Array], Array]
"""Says of pairs, as two arrays of indices, which are near."""
BITS, MOST_DISTANCE = 64, 10
_SHARED = 3
_OF_16_BITS = np.array([number.bit_count() for number in range(1 << 16)], dtype=np.uint8)
_TABLES = 64


def hash_groups(hashes: Array, distance: int) -> Array:
    """Return the first member of each hash's group: what differs in so few bits, what is near to that, and so on."""
    different, places = np.unique(np.asarray(hashes, dtype=np.uint64), return_inverse=True)

    def near(first: Array, second: Array) -> Array:
        return np.asarray(_bits_set(different[first] ^ different[second]) <= distance)

    pairs = near_pairs(_hash_keys(different, distance), near) if distance else iter(())
    _, first, inverse = np.unique(_joined(len(different), pairs)[places], return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def vector_groups(vectors: Array, distance: float) -> Array:
    """Return the first member of each vector's group: those whose cosine is so near to 1, and so on."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def near(first: Array, second: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", unit[first], unit[second]) >= 1 - distance - 1e-6)

    return _joined(len(unit), near_pairs(_plane_keys(unit), near))


def _bits_set(hashes: Array) -> Array:
    return np.asarray(_OF_16_BITS[hashes.view(np.uint16).reshape(-1, 4)].sum(axis=1))


def _hash_keys(hashes: Array, distance: int) -> Iterator[Array]:
    edges = np.linspace(0, BITS, distance + _SHARED + 1).astype(int)
    masks = [np.uint64((1 << int(high)) - (1 << int(low))) for low, high in pairwise(edges)]
    for chosen in combinations(masks, _SHARED):
        yield hashes & np.bitwise_or.reduce(np.array(chosen, dtype=np.uint64))


def _plane_keys(unit: Array) -> Iterator[Array]:
    rng = np.random.default_rng(0)
    planes = max(1, math.ceil(math.log2(max(2, len(unit)))))
    weights = 1 << np.arange(planes, dtype=np.int64)
    for _ in range(_TABLES):
        sides = unit @ rng.standard_normal((unit.shape[1], planes)).astype(np.float32) > 0
        yield sides @ weights


def near_pairs(keys: Iterable[Array], near: Near) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs that share a key and are near, those of each table of keys by their distance in its order."""
    for key in keys:
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        at = np.arange(len(order) - 1)
        step = 1
        while len(at):
            at = at[at + step < len(order)]
            at = at[ordered[at] == ordered[at + step]]
            first, second = order[at], order[at + step]
            fits = near(first, second)
            yield first[fits], second[fits]
            step += 1


def _joined(count: int, pairs: Iterable[tuple[Array, Array]]) -> Array:
    """Return the least member of the group of each thing: things are in one group that pairs lead to."""
    groups = np.arange(count)
    for first, second in pairs:
        while True:
            low = np.minimum(groups[first], groups[second])
            if np.array_equal(groups[first], low) and np.array_equal(groups[second], low):
                break
            # A group is named by its least member: what belonged to the greater of two names gets the lesser.
            np.minimum.at(groups, groups[first], low)
            np.minimum.at(groups, groups[second], low)
            groups = _flat(groups)
    return _flat(groups)


def _flat(groups: Array) -> Array:
    while True:
        above = groups[groups]
        if np.array_equal(above, groups):
            return groups
        groups = above
