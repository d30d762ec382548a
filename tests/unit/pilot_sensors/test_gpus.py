"""GPUs through a fake of NVIDIA's library."""

import time

import pytest

from podwright.pilot.metrics import METRICS
from podwright.pilot.sensors.gpus import choose

UUIDS = [f"GPU-{i:08x}-0000-0000-0000-000000000000" for i in (0xA0, 0xA1, 0xA2, 0xB0)]
EVERYTHING = (
    "-1 count 1",
    "0 utilization 93",
    "0 memory_utilization 41",
    "0 memory_used 34359738368",
    "0 temperature 61",
    "0 field82 70",
    "0 power_mw 655250",
    "0 field186 701500",
    "0 energy_mj 123456789",
    "0 sm_clock 1980",
    "0 memory_clock 3201",
    "0 throttle 4",
    "0 ecc_corrected 5",
    "0 ecc_uncorrected 1",
    "0 pcie_replay 2",
    "0 field197 1000",
    "0 field198 2000",
    "0 field138 3",
    "0 field139 4",
    "0 processes 2",
)
VALUES = {
    "gpu.0.utilization_percent": 93,
    "gpu.0.memory_percent": 41,
    "gpu.0.memory_used_bytes": 34359738368,
    "gpu.0.temperature_celsius": 61,
    "gpu.0.memory_temperature_celsius": 70,
    "gpu.0.power_watts": 655.25,
    "gpu.0.power_instant_watts": 701.5,
    "gpu.0.energy_joules_total": 123456.789,
    "gpu.0.sm_clock_mhz": 1980,
    "gpu.0.memory_clock_mhz": 3201,
    "gpu.0.throttle_reasons": 4,
    "gpu.0.ecc_corrected_total": 5,
    "gpu.0.ecc_uncorrected_total": 1,
    "gpu.0.pcie_replay_total": 2,
    "gpu.0.pcie_sent_bytes_total": 1000,
    "gpu.0.pcie_received_bytes_total": 2000,
    "gpu.0.nvlink_sent_bytes_total": 3 * 1024,
    "gpu.0.nvlink_received_bytes_total": 4 * 1024,
    "gpu.0.processes": 2,
}


def gpu_values(values):
    return {name: value for name, value in values.items() if name.startswith("gpu.")}


def without(*keys):
    return [line for line in EVERYTHING if line.split()[1] not in keys]


@pytest.mark.parametrize("build", ["new", "old"])
def test_every_reading(plain, sampler, events, fake_nvml, build):
    fake = fake_nvml(*EVERYTHING, build=build)
    taken = sampler(plain.scope(nvml=fake.path))
    assert gpu_values(taken.sample(1.0)) == pytest.approx(VALUES)
    assert {f"gpu.N.{name.split('.')[2]}" for name in VALUES} == {m.name for m in METRICS if m.name.startswith("gpu.")}
    assert events == []


def test_each_reading_comes_as_often_as_it_is_cheap(plain, sampler, fake_nvml):
    taken = sampler(plain.scope(nvml=fake_nvml(*EVERYTHING).path))
    read = [gpu_values(taken.sample(float(t))).keys() for t in range(31)]
    rare = {"gpu.0.energy_joules_total"}
    slow = {name for name in VALUES if "pcie_replay" in name or "nvlink" in name}
    assert read[0] == VALUES.keys()
    assert all(read[t] == VALUES.keys() - rare - slow for t in (1, 2, 9, 11, 29))
    assert read[10] == read[20] == VALUES.keys() - rare
    assert read[30] == VALUES.keys()
    assert gpu_values(taken.final()).keys() == VALUES.keys()


def test_a_reading_that_no_gpu_supports_is_said_once(plain, sampler, events, fake_nvml):
    fake = fake_nvml("-1 count 2", "-1 power_mw unsupported")
    taken = sampler(plain.scope(nvml=fake.path))
    for t in range(40):
        assert "gpu.1.temperature_celsius" in taken.sample(float(t))
    broken = ("memory_temperature_celsius", "power_watts", "power_instant_watts", "pcie_sent_bytes_total")
    broken += ("pcie_received_bytes_total", "nvlink_sent_bytes_total", "nvlink_received_bytes_total")
    assert events == [("sensor", {"name": f"gpu.{name}", "error": "not supported by this GPU"}) for name in broken]


def test_a_reading_that_one_gpu_supports_is_kept_for_it(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "-1 count 2", "1 power_mw unsupported", *(f"1 field{n} 1" for n in (82, 186)))
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    values = taken.sample(2.0)
    assert "gpu.0.power_watts" in values
    assert "gpu.1.power_watts" not in values
    assert [fields["name"] for fields in events.of("sensor")][:1] == ["gpu.power_watts"]


def test_blank_values_are_dropped(plain, sampler, events, fake_nvml):
    blanks = ("0 power_mw 4294967295", "0 field82 2147483632", "0 energy_mj 9223372036854775794")
    blanks += ("0 field186_double nan", "0 field138_double 140737488355328")
    fake = fake_nvml(*without("power_mw", "field82", "energy_mj", "field186", "field138"), *blanks)
    taken = sampler(plain.scope(nvml=fake.path))
    dropped = ("power_watts", "memory_temperature_celsius", "energy_joules_total", "power_instant_watts")
    left = VALUES.keys() - {f"gpu.0.{name}" for name in (*dropped, "nvlink_sent_bytes_total")}
    assert gpu_values(taken.sample(1.0)).keys() == left
    fake.set(*EVERYTHING)
    assert gpu_values(taken.final()).keys() == VALUES.keys()
    assert events == []


def test_pcie_bytes_grow_on_when_their_counter_starts_again(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "0 field197 4294967290")
    taken = sampler(plain.scope(nvml=fake.path))
    assert taken.sample(1.0)["gpu.0.pcie_sent_bytes_total"] == 4294967290
    fake.set(*EVERYTHING, "0 field197 4")
    assert taken.sample(2.0)["gpu.0.pcie_sent_bytes_total"] == 4294967300
    assert events == []


def test_pcie_bytes_that_cannot_be_trusted_are_said_and_left_out(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING)
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    fake.set(*EVERYTHING, "0 field197 3000000000")
    assert "gpu.0.pcie_sent_bytes_total" not in taken.sample(2.0)
    assert "gpu.0.pcie_received_bytes_total" in taken.sample(3.0)
    error = "its 32-bit counter turns over too fast at this rate"
    assert events == [("sensor", {"name": "gpu.pcie_sent_bytes_total", "error": error})]


def test_pcie_bytes_of_64_bits_are_taken_as_they_are(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "0 wide 1", "0 field197 5")
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    fake.set(*EVERYTHING, "0 wide 1", "0 field197 90000000000")
    assert taken.sample(2.0)["gpu.0.pcie_sent_bytes_total"] == 90000000000
    assert events == []


def test_a_lost_gpu_is_seen_once_and_the_others_go_on(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "-1 count 2", *(f"1 field{n} 1" for n in (82, 138, 139, 186, 197, 198)))
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    fake.set(*EVERYTHING, "-1 count 2", "1 lost 1")
    for t in range(2, 15):
        values = taken.sample(float(t))
        assert "gpu.0.power_watts" in values
        assert not any(name.startswith("gpu.1.") for name in values)
    lost = {"what": "gpu_lost", "device": "gpu 1", "value": 15, "text": "the GPU is lost"}
    assert events == [("seen", lost)]


def test_an_xid_is_seen(plain, sampler, events, fake_nvml):
    fake = fake_nvml("-1 count 4")
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    fake.set("-1 count 4", "3 xid 48", "3 xid_count 1", "1 xid 777", "1 xid_count 1")
    deadline = time.monotonic() + 20
    while len(events.of("seen")) < 2 and time.monotonic() < deadline:
        taken.sample(time.monotonic())
        time.sleep(0.02)
    assert sorted(events.of("seen"), key=lambda fields: fields["value"]) == [
        {"what": "xid", "device": "gpu 3", "value": 48, "text": "uncorrectable memory error"},
        {"what": "xid", "device": "gpu 1", "value": 777, "text": "an error of the GPU that NVIDIA numbers 777"},
    ]


def test_gpus_without_events_are_read_all_the_same(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "0 xid unsupported")
    assert gpu_values(sampler(plain.scope(nvml=fake.path)).sample(1.0)) == pytest.approx(VALUES)
    assert events == [("sensor", {"name": "gpu.xid", "error": "not supported by this GPU"})]


def test_a_watch_that_breaks_is_said_once(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING, "-1 wait_fails 4")
    taken = sampler(plain.scope(nvml=fake.path))
    deadline = time.monotonic() + 20
    while not events and time.monotonic() < deadline:
        taken.sample(time.monotonic())
        time.sleep(0.02)
    taken.sample(time.monotonic() + 5)
    assert events == [("sensor", {"name": "gpu.xid", "error": "not permitted"})]


def test_new_ecc_errors_are_seen(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING)
    taken = sampler(plain.scope(nvml=fake.path))
    taken.sample(1.0)
    fake.set(*EVERYTHING, "0 ecc_uncorrected 2", "0 ecc_corrected 8")
    taken.sample(2.0)
    fake.set(*EVERYTHING, "0 ecc_uncorrected 2", "0 ecc_corrected 9")
    taken.sample(3.0)
    fake.set(*EVERYTHING, "0 ecc_uncorrected 2", "0 ecc_corrected 10")
    taken.sample(62.0)
    assert [(fields["device"], fields["value"], fields["text"]) for fields in events.of("seen")] == [
        ("gpu 0", 3, "3 corrected ECC errors"),
        ("gpu 0", 1, "1 uncorrectable ECC error"),
        ("gpu 0", 2, "2 corrected ECC errors"),
    ]
    assert {fields["what"] for fields in events.of("seen")} == {"ecc"}


def test_throttling_is_seen_when_it_begins(plain, sampler, events, fake_nvml):
    fake = fake_nvml(*EVERYTHING)
    taken = sampler(plain.scope(nvml=fake.path))
    for t, reasons in ((1, 1), (2, 0x48), (3, 0x48), (4, 4), (5, 0x40), (80, 0x40)):
        fake.set(*EVERYTHING, f"0 throttle {reasons}")
        taken.sample(float(t))
    assert [(fields["what"], fields["value"], fields["text"]) for fields in events.of("seen")] == [
        ("throttle", 0x08, "clocks are held down by hardware"),
        ("throttle", 0x40, "clocks are held down by hardware: too hot"),
        ("throttle", 0x40, "clocks are held down by hardware: too hot"),
    ]


@pytest.mark.parametrize("build", ["new", "old"])
def test_gpus_are_described(plain, sampler, fake_nvml, build):
    plain.write({"/sys/bus/pci/devices/0000:0f:00.0/numa_node": "3\n"})
    fake = fake_nvml("-1 count 2", "-1 driver 535.1", "-1 name NVIDIA A100-SXM4-80GB", "0 bus 193", build=build)
    about = sampler(plain.scope(nvml=fake.path)).describe()
    same = {"name": "NVIDIA A100-SXM4-80GB", "memory_bytes": 150754820096}
    assert about["gpus"] == [
        {"index": 0, "uuid": UUIDS[0], "numa": None, "pci": "0000:c1:00.0", **same},
        {"index": 1, "uuid": UUIDS[1], "numa": 3, "pci": "0000:0f:00.0", **same},
    ]
    assert about["driver"] == "535.1"


def test_only_the_gpus_of_the_run_are_read(plain, sampler, fake_nvml):
    fake = fake_nvml("-1 count 4")
    taken = sampler(plain.scope(nvml=fake.path, environ={"CUDA_VISIBLE_DEVICES": "3,1"}))
    assert {name.split(".")[1] for name in gpu_values(taken.sample(1.0))} == {"1", "3"}
    assert [gpu["index"] for gpu in taken.describe()["gpus"]] == [3, 1]


def test_mig_slices_share_one_board(plain, sampler, events, fake_nvml):
    slices = ",".join(f"MIG-{16 + 4 + i:08x}-0000-0000-0000-000000000000" for i in (2, 3))
    fake = fake_nvml("-1 count 2", "22 memory_used 1000", "23 memory_used 2000", "1 power_mw 90000", "1 field82 50")
    taken = sampler(plain.scope(nvml=fake.path, environ={"CUDA_VISIBLE_DEVICES": slices}))
    values = taken.sample(1.0)
    assert values["gpu.1/2.memory_used_bytes"] == 1000
    assert values["gpu.1/3.memory_used_bytes"] == 2000
    assert values["gpu.1/2.power_watts"] == 90
    assert "gpu.1/3.power_watts" not in values
    assert [gpu["index"] for gpu in taken.describe()["gpus"]] == ["1/2", "1/3"]


def test_a_driver_that_is_not_loaded_is_one_event(plain, sampler, events, fake_nvml):
    taken = sampler(plain.scope(nvml=fake_nvml("-1 init 9").path))
    taken.sample(1.0)
    assert taken.describe()["gpus"] == []
    assert events == [("sensor", {"name": "gpu", "error": "the driver is not loaded"})]


@pytest.mark.parametrize(
    ("cuda", "nvidia", "chosen"),
    [
        (None, None, [0, 1, 2, 3]),
        ("", None, []),
        ("-1", None, []),
        ("NoDevFiles", None, []),
        ("2,0", None, [2, 0]),
        ("2,9,0", None, [2]),
        (f"{UUIDS[1]}, GPU-000000b", None, [1, 3]),
        ("GPU-000000a", None, []),
        ("MIG-x,MIG-y", None, ["MIG-x", "MIG-y"]),
        (None, "all", [0, 1, 2, 3]),
        (None, "void", [0, 1, 2, 3]),
        (None, UUIDS[2], [2]),
        (None, "1,2", [1, 2]),
        (None, "4,5,6,7", [0, 1, 2, 3]),
        ("0", "1,2", [0]),
    ],
)
def test_which_gpus_are_visible(cuda, nvidia, chosen):
    assert choose(UUIDS, cuda, nvidia) == chosen
