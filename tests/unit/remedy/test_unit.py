"""The unit on acts that a test does: what is done in which order, after failures, after a kill, and when it is dry."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from podwright.bringup.remedy.journal import RemedyJournal
from podwright.bringup.remedy.policy import Act, RemedyAlert, RemedyNode, RemedyPolicy
from podwright.bringup.remedy.unit import DryActing, Outcome, RemedyUnit, UnitClock
from podwright.bringup.remedy.webhook import RemedyNews, news_of
from podwright.files.journal import JournalFile, Row, append, lines_of
from podwright.spec.problems import refuse

XID = RemedyAlert("f1", "xid", "reset", "XID 119 on GPU 0 of n2")
POLICY = RemedyPolicy(frozenset({"xid", "link"}))
LIMIT_S = 120.0


@dataclass
class Stage:
    """Says what comes of each act; each is on `acts` when it was done."""

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    acts: queue.Queue[str] = field(default_factory=queue.Queue)

    def __call__(self, act: Act, node: RemedyNode) -> Outcome:
        planned = self.outcomes.get(act, [])
        outcome = planned.pop(0) if planned else Outcome(None if act == "look" else "done")
        self.acts.put(f"{act} {node.cure}" if act == "mend" else act)
        if outcome.text == "refuse":
            raise refuse("no way there")
        if outcome.text == "break":
            raise KeyError("gone")
        return outcome

    def next(self, count: int) -> list[str]:
        return [self.acts.get(timeout=LIMIT_S) for _ in range(count)]


def unit_on(folder: Path, stage: Stage, again_s: float = 0.0) -> RemedyUnit:
    clock = UnitClock(tick_s=0.01, again_s=again_s)
    return RemedyUnit(frozenset({"n2", "n3"}), POLICY, RemedyJournal.of(folder), stage, clock)


@contextmanager
def running(unit: RemedyUnit) -> Iterator[RemedyUnit]:
    thread = threading.Thread(target=unit.run)
    thread.start()
    try:
        yield unit
    finally:
        unit.stop()
        thread.join(LIMIT_S)


def fires(host: str = "n2", is_firing: bool = True) -> list[RemedyNews]:
    return [RemedyNews(host, XID, is_firing)]


def states(folder: Path, is_dry: bool = False) -> list[str]:
    return [str(row["to"]) for row in RemedyJournal.of(folder, is_dry).file.rows() if row["k"] == "node"]


def until_states(folder: Path, holds: Callable[[list[str]], bool], is_dry: bool = False) -> None:
    """Waits until the journal has come so far."""
    end = time.monotonic() + LIMIT_S
    while not holds(states(folder, is_dry)):
        assert time.monotonic() < end, states(folder, is_dry)
        time.sleep(0.01)


def test_a_node_is_drained_mended_looked_at_and_given_back(tmp_path: Path) -> None:
    stage = Stage()
    with running(unit_on(tmp_path, stage)) as unit:
        unit.hear(fires())
        assert stage.next(2) == ["drain", "mend reset"]
        unit.hear(fires(is_firing=False))
        assert stage.next(2) == ["check", "resume"]
        until_states(tmp_path, lambda seen: seen[-1] == "open")
    acts = [(row["act"], row["outcome"]) for row in RemedyJournal.of(tmp_path).file.rows() if row["k"] == "act"]
    assert acts[:4] == [("drain", "begins"), ("drain", "done"), ("mend", "begins"), ("mend", "done")]


@pytest.mark.parametrize("how", ["refuse", "break"])
def test_a_drain_that_fails_is_done_again(tmp_path: Path, how: str) -> None:
    stage = Stage({"drain": [Outcome(None, how), Outcome(None, how)]})
    with running(unit_on(tmp_path, stage)) as unit:
        unit.hear(fires())
        assert stage.next(4) == ["drain", "drain", "drain", "mend reset"]
    texts = [row["text"] for row in RemedyJournal.of(tmp_path).file.rows() if row.get("outcome") == "failed"]
    assert texts == [{"refuse": "no way there", "break": "KeyError: 'gone'"}[how]] * 2


def test_what_others_drained_is_looked_at_until_they_open_it(tmp_path: Path) -> None:
    looks = [Outcome(None), Outcome("failed", "away"), Outcome("opened")]
    stage = Stage({"drain": [Outcome("foreign", "bad DIMM")], "look": looks})
    with running(unit_on(tmp_path, stage)) as unit:
        unit.hear(fires())
        assert stage.next(4) == ["drain", "look", "look", "look"]
        until_states(tmp_path, lambda seen: seen == ["draining", "left", "open"])


def test_hosts_of_others_and_other_kinds_of_alerts_do_nothing(tmp_path: Path) -> None:
    unit = unit_on(tmp_path, Stage())
    unit.hear([RemedyNews("n9", XID, True), RemedyNews("n2", replace(XID, remedy="heat"), True)])
    unit.stop()
    unit.run()
    assert states(tmp_path) == []


def test_after_a_kill_a_drain_is_done_again_and_a_cure_is_not(tmp_path: Path) -> None:
    journal = RemedyJournal.of(tmp_path)
    draining = RemedyNode("n2", "draining", (XID,), cure="reset")
    journal.note(1.0, "fires", RemedyNode("n2"), draining)
    journal.note(1.0, "done", RemedyNode("n3"), replace(draining, host="n3", state="mending", alerts=()))
    stage = Stage()
    with running(unit_on(tmp_path, stage)):
        acts = stage.next(4)
    assert sorted(acts) == ["check", "drain", "mend reset", "resume"]


def test_what_alertmanager_does_not_say_any_more_is_over(tmp_path: Path) -> None:
    now = [1000.0]
    stage = Stage()
    unit = unit_on(tmp_path, stage)
    unit.clock = UnitClock(lambda: now[0], tick_s=0.01, again_s=0.0)
    with running(unit):
        unit.hear(fires())
        assert stage.next(2) == ["drain", "mend reset"]
        now[0] += 901.0
        assert stage.next(2) == ["check", "resume"]


def waited(times: int, seen: list[str]) -> bool:
    return seen.count("waiting") == times


def test_alerts_that_go_on_after_a_cure_lead_to_the_next(tmp_path: Path) -> None:
    now = [1000.0]
    stage = Stage()
    unit = replace(unit_on(tmp_path, stage), policy=replace(POLICY, patience_s=600.0))
    unit.clock = UnitClock(lambda: now[0], tick_s=0.01, again_s=0.0)
    with running(unit):
        unit.hear(fires())
        stage.next(2)
        for waits, wanted in ((1, "mend reboot"), (2, "serve")):
            until_states(tmp_path, partial(waited, waits))
            unit.hear(fires())
            now[0] += 700.0
            assert stage.next(1) == [wanted]


def test_a_dry_unit_says_the_whole_way_and_does_nothing(tmp_path: Path) -> None:
    stage = Stage()
    unit = RemedyUnit(frozenset({"n2"}), POLICY, RemedyJournal.of(tmp_path, is_dry=True), DryActing(stage))
    unit.clock = UnitClock(tick_s=0.01)
    unit.hear(fires())
    unit.hear(fires(is_firing=False))
    rows = RemedyJournal.of(tmp_path, is_dry=True).file
    with running(unit):
        until_states(tmp_path, lambda seen: "open" in seen, is_dry=True)
    assert stage.acts.empty()
    assert {row["dry"] for row in rows.rows()} == {True}
    assert [row["to"] for row in rows.rows() if row["k"] == "node"][-2:] == ["resuming", "open"]
    assert not (tmp_path / "journal.jsonl").exists()


class FullDisk(JournalFile):
    """A journal on a disk without room."""

    def append(self, *rows: Row) -> None:
        append(Path("/dev/full"), lines_of(*rows))


def test_nothing_is_done_that_a_full_disk_cannot_keep(tmp_path: Path) -> None:
    stage = Stage()
    unit = replace(unit_on(tmp_path, stage), journal=RemedyJournal(FullDisk(tmp_path / "journal.jsonl")))
    unit.hear(fires())
    unit.stop()
    with pytest.raises(OSError, match="No space left on device"):
        unit.run()
    assert stage.acts.empty()


def test_alertmanagers_message_is_read_and_nothing_else() -> None:
    labels = {"alertname": "GpuXidReset", "host": "n2", "remedy": "xid", "cure": "reset"}
    entry = {"status": "firing", "fingerprint": "f1", "labels": labels, "annotations": {"summary": 'it\'s "bad"\n$(x)'}}
    assert list(news_of({"alerts": [entry, {**entry, "labels": {}}, {**entry, "status": "?"}, 7]})) == [
        RemedyNews("n2", RemedyAlert("f1", "xid", "reset", "its bad(x)"), True)
    ]
    other = {**entry, "status": "resolved", "annotations": None, "labels": {**labels, "cure": "prayer"}}
    assert list(news_of({"alerts": [other]})) == [
        RemedyNews("n2", RemedyAlert("f1", "xid", "wait", "GpuXidReset"), False)
    ]
    nothing: tuple[object, ...] = (None, [], {}, {"alerts": "x"}, 7)
    for message in nothing:
        assert list(news_of(message)) == []
