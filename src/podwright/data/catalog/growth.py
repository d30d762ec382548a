"""How fast a dataset grows, and what curation left of it: what a fleet really brings home, for `capacity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.data.catalog.dataset import open_dataset
from podwright.data.policies.curation import KEEP, WHY

if TYPE_CHECKING:
    from podwright.data.catalog.store import Store


@dataclass(frozen=True)
class DatasetGrowth:
    """What each day brought, by the times of files in UTC, and what was kept of the images that curation judged."""

    dataset: str
    days: int
    files: int
    size_bytes: int
    bytes_per_day: int
    """The median over days on which something came."""
    judged_bytes: int
    kept_bytes: int
    reasons: dict[str, int]
    """How many images were kept or dropped, by the first word of why: new, rare, near."""

    @property
    def kept_share(self) -> float | None:
        """Return the share of bytes that was kept; None where nothing was judged."""
        return self.kept_bytes / self.judged_bytes if self.judged_bytes else None


_SIZES = "SELECT count(*), coalesce(sum(size), 0)::BIGINT FROM file"
_DAYS = """WITH day AS (SELECT make_timestamp_ns(mtime_ns)::DATE AS day, sum(size) AS bytes FROM file GROUP BY ALL)
    SELECT count(*), coalesce(median(bytes), 0)::BIGINT FROM day"""
_JUDGED = f"""SELECT coalesce(sum(f.size), 0)::BIGINT, coalesce(sum(f.size) FILTER (t.value = 'yes'), 0)::BIGINT
    FROM tag t JOIN file f ON f.id = t.file WHERE t.name = '{KEEP}'"""
_REASONS = f"""SELECT split_part(w.value, ' ', 1) AS reason, count(*) FROM tag w
    JOIN tag k ON k.file = w.file AND k.name = '{KEEP}' WHERE w.name = '{WHY}' GROUP BY ALL ORDER BY ALL"""


def growth(store: Store, name: str) -> DatasetGrowth:
    """Return how fast a dataset grows."""
    with open_dataset(store, name) as opened:
        connection = opened.connection
        ((files, size_bytes),) = connection.execute(_SIZES).fetchall()
        days, per_day = connection.execute(_DAYS).fetchone() or (0, 0)
        judged, kept_bytes = connection.execute(_JUDGED).fetchone() or (0, 0)
        reasons = dict(connection.execute(_REASONS).fetchall())
    return DatasetGrowth(name, days, files, size_bytes, per_day, judged, kept_bytes, reasons)
