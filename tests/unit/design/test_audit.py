"""The audit of `audit.py` on pods made by chance: small ones here, 300 of all sizes at night."""

from __future__ import annotations

import pytest

from tests.unit.design.audit import audited, chance

SEEDS = 40


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_pod_stands(seed: int) -> None:
    audited(chance(seed, 256))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + 300))
def test_a_pod_of_any_size_stands(seed: int) -> None:
    audited(chance(seed, 8192))


def test_a_large_pod_stands() -> None:
    given = {"name": "p", "nodes": [{"hosts": "n[0001-2048]", "model": "dgx-b200"}]}
    assert audited(given) is not None


def test_most_pods_of_chance_are_designed() -> None:
    """An audit of refusals alone would hold whatever the designs are."""
    nodes = [audited(chance(seed, 64)) for seed in range(10)]
    assert sum(design is not None for design in nodes) >= 5
