"""Amounts as Kubernetes writes them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

SUFFIXES = {
    "m": Decimal("0.001"),
    **{name: Decimal(1000) ** power for power, name in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate(("K", "M", "G", "T", "P", "E"), 1)},
}


def amount_of(quantity: Any) -> Decimal:
    """Return a quantity of Kubernetes (`80Gi`, `127500m`, 8) as it is."""
    text = str(quantity)
    digits = text.rstrip("mkKMGTPEi")
    return Decimal(digits) * SUFFIXES.get(text[len(digits) :], Decimal(1))


def number_of(quantity: Any) -> int:
    """Return a quantity of Kubernetes, rounded down to a whole number."""
    return int(amount_of(quantity))


def size_text(size: int) -> str | int:
    """Return a number of bytes as Kubernetes writes it, exact."""
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return size


def moment(text: str | None) -> float | None:
    """Return a time as the API server writes it in Unix seconds; None where there is none."""
    if not text:
        return None
    return datetime.fromisoformat(text).timestamp()
