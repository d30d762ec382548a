"""The acceptance sheet for NCCL tests: what to expect of these nodes at each size, and below what to raise an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podwright.design.csv_text import write_csv
from podwright.design.predict.collectives import (
    CHECKED_NODES,
    HELD_OUT_ERRORS,
    RING_IN_SAMPLE_ERROR,
    TREE_IN_SAMPLE_ERROR,
    VALIDATED,
    Estimate,
    available,
    chosen,
    estimate,
)
from podwright.design.predict.placement import BrokenPart, Placement, failures, job
from podwright.spec.hostlist import fold_hosts

SIZES = tuple(1 << power for power in range(20, 33, 2))
VERDICT_SIZE = 1 << 30
# From a size on, the part of what is expected below which something is broken: no published curve that the model was
# not fitted on lies so low. Of smaller messages the model is too far off for any alarm.
ALARM_SHARES = ((1 << 30, 0.85), (64 << 20, 0.75))
# NCCL tests' own program, one rank for each GPU.
TEST = "all_reduce_perf -b 1M -e 4G -f 4 -g 1"
CSV_HEAD = ("nodes", "size_bytes", "algorithm", "protocol", "time_us", "bus_gb_s", "alarm_under_gb_s")


@dataclass(frozen=True, slots=True)
class AcceptanceRow:
    """One size of the sheet."""

    expected: Estimate
    others: tuple[Estimate, ...]
    is_checked: bool = True

    @property
    def alarm_gb_s(self) -> float | None:
        """Return the bus bandwidth under which something is broken; None where the model cannot tell."""
        if not self.is_checked:
            return None
        shares = [share for size_bytes, share in ALARM_SHARES if self.expected.size_bytes >= size_bytes]
        if not shares:
            return None
        return self.expected.bus_gb_s * shares[0]


@dataclass(frozen=True, slots=True)
class AcceptanceSheet:
    """What to expect of a job's nodes, size by size, with everything that it rests on."""

    placement: Placement

    def rows(self, order: str = "in order", sizes: Sequence[int] = SIZES) -> list[AcceptanceRow]:
        """Return a row for each size: what NCCL chooses, and every algorithm that these nodes can use."""
        collective = job(self.placement, order)
        names = available(collective)
        table = []
        for size in sizes:
            estimates = tuple(estimate(collective, name, size) for name in names)
            table.append(AcceptanceRow(chosen(collective, size), estimates, self.is_checked))
        return table

    @property
    def verdict(self) -> AcceptanceRow:
        """Return the row that stands for all."""
        return self.rows(sizes=[VERDICT_SIZE])[0]

    @property
    def is_checked(self) -> bool:
        """Return whether published curves of so many nodes have checked the model; of NVLink domains there are none."""
        return not self.placement.domains and len(self.placement.hosts) <= CHECKED_NODES

    @property
    def scattered_share(self) -> float:
        """Return the part of the wires that ranks have which are scattered over units."""
        return job(self.placement, "scattered").share

    @property
    def failures(self) -> list[BrokenPart]:
        """Return what is left of the wires when one thing is broken."""
        return failures(self.placement)

    @property
    def origin(self) -> str:
        """Return what the sheet rests on, in lines."""
        lines = list(VALIDATED)
        if self.placement.domains:
            lines[-1] += ";"
            lines.append("nothing has checked it on NVLink domains of several nodes: no alarm")
        elif not self.is_checked:
            lines[-1] += ";"
            lines.append(f"above {CHECKED_NODES} nodes nothing has checked it: no alarm")
        return "\n".join(lines)

    @property
    def settings(self) -> str:
        """Return the command of the test and the variables it needs to measure what the sheet expects."""
        nodes = self.placement.machines
        if nodes == 1:
            return TEST
        if nodes == 2 and not self.placement.domains:
            return f"NCCL_ALGO=Ring {TEST}"
        return f"NCCL_COLLNET_ENABLE=0 {TEST}"

    def as_csv(self) -> str:
        """Return the sheet for a program that compares measured values."""
        rows = []
        for row in self.rows():
            expected = row.expected
            numbers = [f"{expected.time_s * 1e6:.1f}", f"{expected.bus_gb_s:.1f}", _tenths(row.alarm_gb_s)]
            size = expected.size_bytes
            rows.append([len(self.placement.hosts), size, expected.algorithm, expected.protocol, *numbers])
        return write_csv(CSV_HEAD, rows)

    def as_json(self) -> dict[str, Any]:
        """Return the key `collectives` of the document of `predict`."""
        placement, wires = self.placement, self.placement.wires
        return {
            "nodes": len(placement.hosts),
            "hosts": fold_hosts(list(placement.hosts)),
            "gpus": placement.gpus,
            "nvlink_domains": len(placement.domains) or None,
            "span": placement.span,
            "nvlink_gb_s": round(wires.family.nvlink_gb_s, 1),
            "network_gb_s": round(wires.network_gb_s, 1),
            "test": self.settings,
            "sizes": [_row_json(row) for row in self.rows()],
            "scattered": [_estimate_json(row.expected) for row in self.rows("scattered")],
            "failures": [failure.as_json() for failure in self.failures],
            "origin": {
                "kind": "modelled",
                "error": max(HELD_OUT_ERRORS.values()),
                "error_from_bytes": min(HELD_OUT_ERRORS),
                "in_sample_error": max(RING_IN_SAMPLE_ERROR, TREE_IN_SAMPLE_ERROR),
                "note": self.origin.replace("\n", " "),
            },
        }


def _row_json(row: AcceptanceRow) -> dict[str, Any]:
    return {
        **_estimate_json(row.expected),
        "alarm_under_gb_s": _tenths(row.alarm_gb_s),
        "algorithms": {estimated.algorithm: _estimate_json(estimated) for estimated in row.others},
    }


def _tenths(value: float | None) -> float | None:
    if value is None:
        return None
    return round(value, 1)


def _estimate_json(estimated: Estimate) -> dict[str, Any]:
    return {
        "size_bytes": estimated.size_bytes,
        "algorithm": estimated.algorithm,
        "protocol": estimated.protocol,
        "time_us": round(estimated.time_s * 1e6, 1),
        "bus_gb_s": round(estimated.bus_gb_s, 1),
    }
