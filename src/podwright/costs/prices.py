"""Price tables of clouds: dated files that ship, and files of the same form that a user has."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from podwright.costs.ranges import Range
from podwright.spec.forms import read_text
from podwright.spec.source import decode, read_source
from podwright.spec.types import Count, Line, Name, Number, PriceRange, RangedPrice, Strict, wrong

Positive = Annotated[Number, Field(gt=0)]


def _positive(price: float) -> float:
    if price <= 0:
        raise wrong("must be more than zero")
    return price


class PriceOffer(Strict):
    """Something that can be rented by the hour."""

    name: Line = Field(description="what the seller calls it")
    accelerator: Line = Field(description="which GPU it has")
    gpus: Count = Field(description="how many of them")
    per_hour: Annotated[RangedPrice, AfterValidator(_positive)] = Field(description="price of an hour of all of it")
    interruptions_per_day: Annotated[Number, Field(ge=0)] = Field(
        default=0.0, description="how often a day it, or a part of it, is taken away: of spot machines"
    )
    work_per_gpu_hour: Positive | None = Field(
        default=None, description="samples or results that one GPU does in an hour, measured or published"
    )

    @property
    def per_gpu_hour(self) -> float:
        """Return the price of a GPU hour."""
        return self.per_hour / self.gpus

    @property
    def per_gpu_hour_range(self) -> Range | None:
        """Return the same at both ends of a price that is a range."""
        if not isinstance(self.per_hour, PriceRange):
            return None
        low, high = self.per_hour.ends
        return low / self.gpus, high / self.gpus


class PriceTable(Strict):
    """Prices from one source, as they were on one day."""

    name: Name = Field(description="of the table")
    source: Line = Field(description="where the prices come from")
    seen: Line = Field(description="when they were read: 2026-11")
    trust: Literal["low", "medium", "high"] = Field(description="how far to believe them")
    currency: Line = Field(description="such as USD")
    offers: tuple[PriceOffer, ...] = Field(min_length=1, description="what can be rented")


def price_tables(paths: Sequence[Path] = ()) -> list[PriceTable]:
    """Return the tables of these files; without a file those that ship."""
    if not paths:
        folder = resources.files("podwright.costs") / "data" / "prices"
        texts = {entry.name: entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".yaml")}
        return [read_text(PriceTable, texts[name], name) for name in sorted(texts)]
    return [read_text(PriceTable, decode(read_source(path), str(path)), str(path)) for path in paths]
