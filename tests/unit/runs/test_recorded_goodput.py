"""Goodput of real runs that were recorded, against the stamps of the program that was run in them.

Made on one machine by the local engine with tests/contract/programs/stamped.py: one that went well, one that failed
once, one that hung, one that was cancelled, one that lost a node, and one as it was while it went on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.reading.run_data import gather
from podwright.runs import Fold, RunFolder
from podwright.runs.goodput import AttemptLane, Goodput, GoodputLedger
from podwright.runs.record import Record
from tests.fixtures.stamps import TOLD, stamped_seconds

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RECORDED = FIXTURES / "goodput"
RUNS = ("succeeded", "retried", "hang", "cancelled", "lost-node", "live")
LIVE_AT = 1795099951.394
"""When the one that goes on was copied."""
SHARE = 0.02
OLD = ("broken-byxe", "frames-wky8", "sweep-ah23-1", "unseen-mzk7")
"""Runs of version 0.1, which told of no checkpoint when it was written and of no time of their own."""


def folder_of(name: str) -> RunFolder:
    if name in RUNS:
        return RunFolder(RECORDED / name)
    return RunFolder(FIXTURES / "home-0.1" / "home" / "runs" / name)


def record_of(name: str) -> Record:
    folder = folder_of(name)
    fold = Fold(folder.asked, str(folder.path))
    fold.take(folder.events())
    return fold.record(LIVE_AT)


def goodput_of(name: str) -> Goodput:
    folder, record = folder_of(name), record_of(name)
    ledger = GoodputLedger(folder.asked.created_at, folder.asked.nodes, folder.asked.gpus)
    for event in folder.events():
        ledger.take(event)
    found = ledger.goodput(record.ended_at or LIVE_AT, record.state)
    assert found is not None
    return found


def order_of(lane: AttemptLane) -> list[str]:
    """Return what an attempt's time was, piece after piece; neighbours that are alike are one."""
    order: list[str] = []
    for stretch in lane.stretches:
        text = " ".join(stretch.parts)
        if not order or order[-1] != text:
            order.append(text)
    return order


@pytest.mark.parametrize("name", [*RUNS, *OLD])
def test_the_classes_and_their_order(name: str, golden: Callable[[Path, str], None]) -> None:
    found, record = goodput_of(name), record_of(name)
    document = {
        "state": record.state,
        "goodput": found.as_json(),
        "attempts": [{"number": lane.number, "order": order_of(lane)} for lane in found.lanes],
    }
    golden(RECORDED / "expected" / f"{name}.json", json.dumps(document, indent=1) + "\n")


@pytest.mark.parametrize("name", RUNS[:-1])
def test_each_class_is_what_the_program_itself_says(name: str) -> None:
    found, record = goodput_of(name), record_of(name)
    stamps = stamped_seconds(RECORDED / name / "results", record.nodes, record.state == "succeeded")
    for part in TOLD:
        within_s = SHARE * found.allocated / 1000
        if record.state == "cancelled":  # what it was at when it was stopped, nobody told
            within_s += stamps["productive"] / 20
        assert found.classes.get(part, 0) / 1000 == pytest.approx(stamps[part], abs=within_s), part
    # Before its first stamp Python starts, and after its last it ends.
    assert found.classes["init"] / 1000 >= stamps["init"]
    assert found.classes["teardown"] / 1000 >= stamps["teardown"]


@pytest.mark.parametrize("name", [*RUNS, *OLD])
def test_all_places_tell_the_same(name: str) -> None:
    folder, record = folder_of(name), record_of(name)
    data = gather(folder.path, LIVE_AT)
    assert data.goodput is not None
    assert record.goodput is not None
    assert data.goodput.as_json() == record.goodput
    thousandths = sum(round(1000 * seconds) for seconds in record.goodput["classes"].values())
    assert thousandths == round(1000 * record.goodput["allocated_s"])
