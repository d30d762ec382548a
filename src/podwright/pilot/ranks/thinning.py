"""Lines that are reported oftener than they can be kept: one for each period, with the last value of each name."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

from ..protocol import KEY_EPOCH, KEY_OF, KEY_TIME, KEY_VALUES, is_number

COUNTS = ("step", "epoch")
Row = Dict[str, Any]


class Thinner:
    """Passes rows on, at most one for each period; those between are added up, and how many they were is counted.

    `key` is where a row has its values. A period of 0 passes every row on.
    """

    def __init__(self, period_s: float = 0.0, key: str = KEY_VALUES) -> None:
        self.period_s = period_s
        self._key = key
        self._pending: Optional[Row] = None
        self._given_at = 0.0

    def take(self, row: Row) -> Optional[Row]:
        """Take a row; return it with those before it when the period is over."""
        if row[KEY_TIME] - self._given_at >= self.period_s:
            return self.give(row)
        self._pending = self._joined(row)
        return None

    def give(self, row: Row) -> Row:
        """Return a row with those before it, whether the period is over or not."""
        self._given_at = row[KEY_TIME]
        row, self._pending = self._joined(row), None
        return row

    def due(self, now: float) -> Optional[Row]:
        """Return what is held when the period is over."""
        return self.rest() if now - self._given_at >= self.period_s else None

    def rest(self) -> Optional[Row]:
        """Return what is held."""
        row, self._pending = self._pending, None
        if row is not None:
            self._given_at = row[KEY_TIME]
        return row

    def forget(self, values: Dict[str, Any]) -> None:
        """Leave out what was reported later in another way."""
        if self._pending is not None:
            values_left = {name: value for name, value in self._pending[self._key].items() if name not in values}
            self._pending = {**self._pending, self._key: values_left} if values_left else None

    def _joined(self, row: Row) -> Row:
        pending = self._pending
        if pending is None:
            return row
        count = pending.get(KEY_OF, 1) + row.get(KEY_OF, 1)
        # What was reported in an attempt before is counted, and says nothing of this one.
        earlier = pending[self._key] if pending.get(KEY_EPOCH) == row.get(KEY_EPOCH) else {}
        # A count is of the time when it was told: what came behind it does not make it later.
        counted = next((name for name in COUNTS if name in earlier or name in row[self._key]), None)
        since = pending if counted in earlier and counted not in row[self._key] else row
        return {**row, KEY_TIME: since[KEY_TIME], self._key: {**earlier, **row[self._key]}, KEY_OF: count}


def period_at(share: float, steps: Sequence[Tuple[float, float]]) -> float:
    """Return the period where this share of a bound is used, by a table of (share, period up to there)."""
    periods_s = [period_s for most, period_s in steps if share <= most]
    return (periods_s or [steps[-1][1]])[0]


def is_thinnable(row: Row, key: str = KEY_VALUES) -> bool:
    """Return whether a row of a file, which a run's program can reach, is one that can be thinned."""
    if not isinstance(row.get(key), dict) or not isinstance(row.get(KEY_OF, 1), int):
        return False
    return is_number(row.get(KEY_TIME))
