"""Shipping a record as frames: all of it within the budget, what matters most in any case."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.frames import assemble
from podwright.pilot.carry.ship import RESERVE_BYTES, Shipper
from podwright.pilot.protocol import rows_of, series_name
from tests.unit.pilot.made import ORDER

MIB = 1 << 20
START = 1_700_000_000.0
GPU_NAMES = ("power_watts", "sm_clock_mhz", "temperature_celsius", "utilization_percent")


class Sent:
    """A node's record folder, its shipper, and the output that carries the frames."""

    def __init__(self, folder: Path, budget: int = 8 * MIB, **options: Any) -> None:
        self.record, self.log, self.there = folder / "n1.r0", folder / "n1.r0.log", folder / "there"
        self.record.mkdir()
        self.lines: list[str] = []
        order = ORDER._replace(frames_bytes=budget)
        self.shipper = Shipper(order, str(self.record), 1, 0, self.lines.append, **options)

    def add(self, name: str, data: bytes) -> None:
        with (self.record / name).open("ab") as file:
            file.write(data)

    def say(self, kind: str, t: float, **fields: Any) -> None:
        self.add(
            "events.jsonl", json.dumps({"t": START + t, "e": [0, 0], "n": 1, "k": kind, **fields}).encode() + b"\n"
        )

    def sample(self, t: float, **values: float) -> None:
        self.add("metrics.jsonl", json.dumps({"t": START + t, "n": 1, "e": [0, 0], "v": values}).encode() + b"\n")

    def tell(self, t: float, rank: int, **values: float) -> None:
        line = json.dumps({"t": START + t, "e": [0, 0], "v": values}).encode() + b"\n"
        self.add(series_name(rank), line)

    @property
    def size(self) -> int:
        return sum(len(line) + 1 for line in self.lines)

    def assemble(self) -> list[str]:
        self.log.write_text("".join(line + "\n" for line in self.lines))
        return assemble([self.log], self.there)

    def read(self, name: str) -> list[dict[str, Any]]:
        return list(rows_of(str(self.there / "n1.r0" / name)))


@pytest.fixture
def sent(tmp_path: Path) -> Sent:
    return Sent(tmp_path)


def log_lines(count: int, seed: int = 1) -> bytes:
    luck = random.Random(seed)
    return b"".join(
        b"%.3f %d o step %d loss %.6f\n" % (START + i, luck.randrange(8), i, luck.random()) for i in range(count)
    )


def test_a_record_within_the_budget_arrives_as_it_is(sent: Sent) -> None:
    for i in range(50):
        sent.say("result", i, rank=0, values={"step": i})
        sent.sample(i, cpu_percent=i / 3)
        sent.tell(i, i % 2, step=i, loss=1 / (i + 1))
        sent.add("merged.log", log_lines(40, i))
        sent.shipper.events()
        if i % 10 == 9:
            sent.shipper.rest()
    sent.say("end", 50, state="succeeded")
    sent.add("merged.log", "1.0 0 o größer\n".encode())
    sent.shipper.final()
    assert sent.assemble() == []
    for row in (*sent.read(series_name(0)), *sent.read(series_name(1))):
        assert "of" not in row
    for name in ("events.jsonl", "metrics.jsonl", "merged.log"):
        assert (sent.there / "n1.r0" / name).read_bytes() == (sent.record / name).read_bytes()
    assert all(len(line) < 8 * 1024 for line in sent.lines)


def test_a_torn_line_waits_for_its_end(sent: Sent) -> None:
    sent.add("events.jsonl", b'{"k":"pilot"}\n{"k":')
    sent.shipper.events()
    sent.shipper.events()
    sent.assemble()
    assert sent.read("events.jsonl") == [{"k": "pilot"}]
    sent.add("events.jsonl", b'"end"}\n')
    sent.shipper.events()
    sent.assemble()
    assert [row["k"] for row in sent.read("events.jsonl")] == ["pilot", "end"]


def test_nothing_there_sends_nothing(sent: Sent) -> None:
    sent.shipper.events()
    sent.shipper.rest()
    sent.shipper.final()
    assert sent.lines == []


def day_of_metrics() -> Iterator[tuple[float, dict[str, float]]]:
    luck = random.Random(3)
    for t in range(0, 86_400, 20):
        yield t, {f"gpu.{i}.{name}": luck.random() * 400 for i in range(8) for name in GPU_NAMES}


def test_a_hundred_megabytes_of_log_and_a_day_of_metrics_hold_the_budget(tmp_path: Path) -> None:
    sent = Sent(tmp_path)
    noise = log_lines(25_000)
    for i, (t, values) in enumerate(day_of_metrics()):
        for second in range(20) if i < 30 else (0,):
            sent.sample(t + second, **values)
        if i % 45 == 0:
            sent.add("merged.log", noise + b"%.3f 3 o batch %d\n" % (START + t, i))
        sent.shipper.events()
        sent.shipper.rest()
    sent.add("merged.log", b"1700086400.000 3 e Traceback: the last words\n")
    sent.say("failed", 86_400, rank=3)
    sent.say("end", 86_401, state="failed")
    sent.shipper.final()
    assert (sent.record / "merged.log").stat().st_size > 80 * MIB
    assert sent.size <= 8 * MIB
    assert sent.assemble() == []
    assert [row["k"] for row in sent.read("events.jsonl")] == ["failed", "end"]
    lines = (sent.there / "n1.r0" / "merged.log").read_bytes()
    assert lines.startswith(noise[:1000])
    assert lines.endswith(b"the last words\n")
    times = [row["t"] - START for row in sent.read("metrics.jsonl")]
    assert times[:100] == list(range(100)), "the first samples come each second"
    assert max(b - a for a, b in itertools.pairwise(times)) <= 70.0
    assert times[-1] > 86_300
    thinned = [(row["what"], row.get("from_s"), row.get("to_s")) for row in sent.read("ship.jsonl")]
    assert ("log", None, None) in thinned
    assert [row for row in thinned if row[0] == "metrics"] == [("metrics", 1.0, 10.0), ("metrics", 10.0, 60.0)]


def test_a_long_series_thins_within_its_share_and_says_how_many_lines_came(tmp_path: Path) -> None:
    sent, luck = Sent(tmp_path), random.Random(7)
    for start in range(0, 300_000, 1000):
        rows = ((i, {"step": i, "loss": luck.random()}) for i in range(start, start + 1000))
        lines = (json.dumps({"t": START + i / 50, "e": [0, 0], "v": values}) + "\n" for i, values in rows)
        sent.add(series_name(4), "".join(lines).encode())
        sent.shipper.rest()
    sent.say("end", 6001, state="succeeded")
    sent.shipper.final()
    assert sent.size <= 0.25 * 8 * MIB
    assert sent.assemble() == []
    rows = sent.read(series_name(4))
    assert sum(row.get("of", 1) for row in rows) == 300_000, "each line says how many it stands for"
    assert rows[-1]["v"]["step"] == 299_999, "the last values come"
    whole = [row for row in rows if "of" not in row]
    assert len(whole) > 20_000, "the first lines come whole"
    notes = [row for row in sent.read("ship.jsonl") if row["what"] == "series"]
    assert [(row["from_s"], row["to_s"]) for row in notes[:1]] == [(0.0, 1.0)]
    assert notes[-1]["text"] == f"node 1 sent {len(rows)} of the 300000 lines that its ranks reported"


def test_a_burst_that_takes_long_is_counted_and_its_last_values_come(tmp_path: Path) -> None:
    late = iter([0.0, 0.0, *([9.0] * 20)])
    sent = Sent(tmp_path, monotonic=lambda: next(late))
    lines = (json.dumps({"t": START + i / 1e5, "e": [0, 0], "v": {"step": i}}) + "\n" for i in range(60_000))
    sent.add(series_name(0), "".join(lines).encode())
    sent.shipper.rest()
    sent.shipper.final()
    sent.assemble()
    rows = sent.read(series_name(0))
    assert sum(row.get("of", 1) for row in rows) == 60_000
    assert rows[-1]["v"] == {"step": 59_999}
    assert 10_000 < len(rows) < 30_000, "the first piece came whole"
    assert sent.read("ship.jsonl")[-1]["text"] == f"node 1 sent {len(rows)} of the 60000 lines that its ranks reported"


@pytest.mark.parametrize(
    "line", ["{}", '{"t": "x", "v": {}}', '{"t": 1, "v": []}', '{"t": 1, "v": {}, "of": "many"}', "[]", "\0"]
)
def test_lines_that_are_none_do_not_end_the_shipper(sent: Sent, line: str) -> None:
    for name in (series_name(0), "events.jsonl"):
        sent.add(name, line.encode() + b"\n")
        sent.add(name, b'{"t": 1, "k": "result", "values": 7}\n')
    sent.tell(1.0, 0, step=1)
    sent.shipper.final()
    sent.assemble()
    assert [row["v"] for row in sent.read(series_name(0))] == [{"step": 1}]


def test_a_sparse_series_of_a_terabyte_is_passed_over(sent: Sent) -> None:
    sent.tell(1.0, 0, step=1)
    os.truncate(sent.record / series_name(0), 1 << 40)
    sent.tell(2.0, 0, step=2)
    sent.shipper.final()
    sent.assemble()
    assert [row["v"]["step"] for row in sent.read(series_name(0))] == [1, 2]


def test_end_states_arrive_though_results_filled_the_budget(tmp_path: Path) -> None:
    sent, luck = Sent(tmp_path, 2 * MIB), random.Random(5)
    for i in range(8_000):
        sent.say("result", i / 2, rank=i % 4, values={"step": i, "noise": luck.randbytes(400).hex()})
        if i == 4_000:
            sent.say("result", i / 2, rank=0, values={"mean_iou": 0.625})
            sent.say("retry", i / 2, attempt=2, why="rank 1 exited with 1")
        if i % 40 == 0:
            sent.shipper.events()
    sent.say("end", 4000, state="succeeded")
    sent.shipper.events()
    sent.shipper.final()
    assert sent.size <= 2 * MIB
    assert sent.assemble() == []
    rows = sent.read("events.jsonl")
    assert [row["k"] for row in rows if row["k"] != "result"] == ["retry", "end"]
    last: dict[str, float] = {}
    for row in sorted((row for row in rows if row["k"] == "result"), key=lambda row: row["t"]):
        last |= row["values"]
    assert (last["step"], last["mean_iou"]) == (7_999, 0.625)
    assert sent.read("ship.jsonl")


def test_end_states_arrive_when_the_budget_is_used_up_at_once(tmp_path: Path) -> None:
    sent, luck = Sent(tmp_path, MIB), random.Random(5)
    for i in range(2_000):
        sent.say("seen", i, text=luck.randbytes(800).hex())
    sent.shipper.events()
    sent.say("end", 2_000, state="failed")
    sent.shipper.events()
    assert sent.size <= MIB - RESERVE_BYTES // 2
    sent.shipper.final()
    assert sent.size <= MIB
    assert sent.assemble() == []
    assert sent.read("events.jsonl")[-1]["k"] == "end"


def test_a_first_burst_of_log_is_cut_and_its_end_still_comes(tmp_path: Path) -> None:
    sent = Sent(tmp_path, MIB)
    sent.add("merged.log", log_lines(100_000) + b"1800000000.000 0 e the last words\n")
    sent.say("end", 1, state="succeeded")
    sent.shipper.final()
    assert sent.size <= MIB
    assert sent.assemble() == []
    text = (sent.there / "n1.r0" / "merged.log").read_bytes()
    assert text.endswith(b"\n1800000000.000 0 e the last words\n")
    assert all(line.split(b" ")[2] == b"o" for line in text.splitlines()[1:-1]), "no line is half a line"
    assert [row["what"] for row in sent.read("ship.jsonl")] == ["log"]


def test_what_a_log_said_between_its_cut_and_the_end_is_in_its_tail(tmp_path: Path) -> None:
    sent = Sent(tmp_path, MIB)
    sent.add("merged.log", log_lines(20_000))
    sent.shipper.rest()
    sent.add("merged.log", b"1800000000.000 0 e RuntimeError: why it failed\n")
    sent.shipper.rest()
    sent.add("merged.log", b"1800000001.000 0 o goodbye\n")
    sent.shipper.final()
    sent.assemble()
    text = (sent.there / "n1.r0" / "merged.log").read_bytes()
    assert text.endswith(b"why it failed\n1800000001.000 0 o goodbye\n")


def test_a_log_that_was_turned_over_goes_on_from_its_new_start(sent: Sent) -> None:
    sent.add("merged.log", b"1.0 0 o old and long\n" * 10)
    sent.shipper.rest()
    (sent.record / "merged.log").replace(sent.record / "merged.log.1")
    sent.add("merged.log", b"2.0 0 o new\n")
    sent.shipper.rest()
    sent.assemble()
    assert (sent.there / "n1.r0" / "merged.log").read_bytes() == b"1.0 0 o old and long\n" * 10 + b"2.0 0 o new\n"
