"""The sampler as a whole."""

import json
import threading

import pytest

from podwright.pilot.metrics import METRICS, is_of, metric_of
from podwright.pilot.sensors.proc import Scope
from podwright.pilot.sensors.sampler import Sampler, main


def test_every_metric_has_a_row_with_unit_and_help():
    assert len({row.name for row in METRICS}) == len(METRICS)
    assert len({row.title for row in METRICS}) == len(METRICS)
    assert all(row.unit and row.title and row.help and row.period_s >= 1 for row in METRICS)
    assert {row.kind for row in METRICS} == {"gauge", "counter"}
    assert all((row.kind == "counter") == row.name.endswith("_total") for row in METRICS)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("cpu_percent", "cpu_percent"),
        ("gpu.3.power_watts", "gpu.N.power_watts"),
        ("gpu.1/2.memory_used_bytes", "gpu.N.memory_used_bytes"),
        ("ib.mlx5_0/1.received_bytes_total", "ib.DEV/PORT.received_bytes_total"),
        ("rank.12.cpu_percent", "rank.R.cpu_percent"),
    ],
)
def test_the_row_of_a_sampled_name(name, row):
    assert metric_of(name).name == row


def test_what_is_drawn_of_a_counter_is_its_rate():
    units = {row.name: row.drawn_unit for row in METRICS}
    assert units["memory_used_bytes"] == "bytes"
    assert units["disk_read_bytes_total"] == "bytes_per_s"
    assert units["cpu_energy_joules_total"] == "watts"
    assert units["gpu.N.pcie_replay_total"] == "packets_per_s"


def test_a_sampled_name_is_of_one_row_and_an_unknown_row_is_an_error():
    assert is_of("gpu.3.power_watts", "gpu.N.power_watts")
    assert not is_of("gpu.3.power_instant_watts", "gpu.N.power_watts")
    assert not is_of("memory_used_bytes", "gpu.N.memory_used_bytes")
    with pytest.raises(KeyError):
        is_of("gpu.3.power_watts", "gpu.N.watts")


@pytest.mark.parametrize("name", ["nothing", "gpu.3.nothing", "power_watts", "disk.0.cpu_percent", "gpu.power_watts"])
def test_names_without_a_row(name):
    assert metric_of(name) is None


def test_an_empty_machine_gives_nothing_and_says_what_is_missing(tmp_path, events):
    taken = Sampler(events.say, scope=Scope(root=str(tmp_path), nvml="libnothing.so"))
    taken.open()
    assert taken.sample(1.0) == {}
    assert taken.final() == {}
    assert taken.describe()["gpus"] == []
    taken.close()
    assert {fields["name"] for fields in events.of("sensor")} >= {"cpu", "memory", "network"}
    assert [kind for kind, _ in events] == ["sensor"] * len(events)


def test_a_sensor_that_breaks_does_not_take_the_others_along(plain, sampler, events):
    taken = sampler(plain.scope())
    plain.write({"/proc/loadavg": "much\n"})
    for t in range(5):
        values = taken.sample(float(t))
        assert "load1" not in values
        assert "memory_used_bytes" in values
    assert [fields["name"] for fields in events.of("sensor")] == ["load"]


def test_slower_ticks_read_what_is_due(plain, sampler):
    taken = sampler(plain.scope(), period_s=7.0)
    read = ["memory_total_bytes" in taken.sample(float(t)) for t in range(0, 71, 7)]
    assert read == [True, *[False] * 8, True, False]


def test_this_machine(sampler, events):
    taken = sampler(Scope(nvml="libnothing.so"))
    values = {**taken.sample(1.0), **taken.final()}
    assert values.keys() >= {"load1", "memory_used_bytes", "memory_total_bytes", "net_sent_bytes_total"}
    assert 0 < values["memory_used_bytes"] < values["memory_total_bytes"]
    assert taken.describe()["cpus"] >= 1


def test_closing_twice_and_threads(plain, sampler):
    before = threading.active_count()
    taken = sampler(plain.scope())
    taken.close()
    taken.close()
    assert taken.sample(1.0) == {}
    assert threading.active_count() == before


def test_the_stand_alone_mode(tmp_path, capsys):
    out = tmp_path / "metrics.jsonl"
    assert main(["--seconds", "0", "--out", str(out)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["METRIC", "VALUE", "UNIT"]
    assert any(line.startswith("memory_total_bytes ") and line.endswith("  bytes") for line in shown)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[0]["k"] == "pilot"
    assert any("memory_total_bytes" in line.get("v", {}) for line in lines)
