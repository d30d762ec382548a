"""GPUs of a host by a stand-in for NVIDIA's library: what is told of them, whose they are, and when they are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter.cards import GIB, Cards, named_gb
from podwright.telemetry.exporter.gpus import Board, gpus_on_bus
from podwright.telemetry.exporter.jobs import JobRecord, Owners, Processes
from podwright.telemetry.exporter.telling import Holding, board_samples, foreign_samples
from podwright.telemetry.page import MetricSample
from tests.fixtures.nvml import FakeNvml

NVML = Callable[..., FakeNvml]
EIGHT = ("-1 count 8", "-1 driver 580.159.04")


class Host:
    """A folder that stands for a host, whose processes a test makes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scope = Scope(root=str(root), environ={})

    def process(self, pid: int, *, uid: int = 1000, group: str = "/", **environment: str) -> None:
        folder = self.root / "proc" / str(pid)
        folder.mkdir(parents=True)
        # The name of a process is its own to choose.
        (folder / "stat").write_text(f"{pid} (a ) b) R 1 {' '.join('0' * 17)} 4711 0 0\n")
        (folder / "status").write_text(f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (folder / "cgroup").write_text(f"0::{group}\n")
        (folder / "environ").write_text("".join(f"{name}={value}\0" for name, value in environment.items()))

    def owners(self, jobs: dict[str, JobRecord] | None = None) -> Owners:
        return Owners(Processes(self.scope), (jobs or {}).get, {}.get)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "host")


def board_of(fake: FakeNvml, host: Host, index: int = 0) -> Board:
    lib = Cards(fake.path)
    lib.open()
    board = Board(lib, index, host.scope)
    board.read(0.0)
    return board


def told(samples: Iterable[MetricSample]) -> dict[str, float]:
    """Return samples by how a page would write them."""
    return {f"{name}{ {key: label for key, label in labels if label} }": value for name, labels, value in samples}


def own(board: Board, owners: Owners) -> dict[str, float]:
    owners.look(holder.pid for holders in board.holders.values() for holder in holders)
    return told(board_samples(board, Holding(board, owners), is_up=True))


def test_a_card_is_told_in_base_units_with_its_own_limits(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "0 utilization 93", "0 power_mw 402000", "0 sm_clock 1980", "0 memory_used 1073741824")
    said = own(board_of(fake, host), host.owners())
    expected = {
        "podwright_gpu_up{'gpu': '0'}": 1,
        "podwright_gpu_utilization_ratio{'gpu': '0'}": 0.93,
        "podwright_gpu_power_watts{'gpu': '0'}": 402,
        "podwright_gpu_sm_clock_hertz{'gpu': '0'}": 1.98e9,
        "podwright_gpu_memory_used_bytes{'gpu': '0'}": 1 << 30,
        "podwright_gpu_temperature_limit_celsius{'gpu': '0', 'limit': 'slowdown'}": 89,
        "podwright_gpu_temperature_limit_celsius{'gpu': '0', 'limit': 'shutdown'}": 95,
        "podwright_gpu_temperature_margin_celsius{'gpu': '0'}": 55,
        "podwright_gpu_power_limit_watts{'gpu': '0', 'limit': 'min'}": 200,
        "podwright_gpu_power_limit_watts{'gpu': '0', 'limit': 'enforced'}": 700,
        "podwright_gpu_pcie_link_generation{'gpu': '0'}": 5,
        "podwright_gpu_row_remap_pending{'gpu': '0'}": 0,
        "podwright_gpu_owners{'gpu': '0'}": 0,
    }
    assert {name: round(said[name], 6) for name in expected} == expected


def test_health_is_told_by_kind(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(
        *EIGHT,
        *("0 throttle 68", "0 ecc_uncorrected 2", "0 ecc_lifetime_corrected 9", "0 rows1 3", "0 rows2 1", "0 rows3 1"),
        *("0 field74 2500000000", "0 field252 7000000000", "0 field161 4", "0 field230 1", "0 fabric 3"),
        *("0 field91 4", "0 link2 0", "0 pcie_replay 8"),
    )
    said = own(board_of(fake, host), host.owners())
    expected = {
        "podwright_gpu_throttled{'gpu': '0', 'reason': 'power_cap'}": 1,
        "podwright_gpu_throttled{'gpu': '0', 'reason': 'thermal_hardware'}": 1,
        "podwright_gpu_throttled{'gpu': '0', 'reason': 'power_brake'}": 0,
        "podwright_gpu_throttle_seconds_total{'gpu': '0', 'reason': 'power'}": 2.5,
        "podwright_gpu_throttle_seconds_total{'gpu': '0', 'reason': 'thermal_hardware'}": 7,
        "podwright_gpu_ecc_errors_total{'gpu': '0', 'error': 'uncorrected'}": 2,
        "podwright_gpu_ecc_lifetime_errors_total{'gpu': '0', 'error': 'corrected'}": 9,
        "podwright_gpu_remapped_rows_total{'gpu': '0', 'error': 'uncorrected'}": 3,
        "podwright_gpu_row_remap_pending{'gpu': '0'}": 1,
        "podwright_gpu_row_remap_failed{'gpu': '0'}": 1,
        "podwright_gpu_nvlink_errors_total{'gpu': '0', 'error': 'replay'}": 4,
        "podwright_gpu_nvlink_links{'gpu': '0'}": 4,
        "podwright_gpu_nvlink_links_active{'gpu': '0'}": 3,
        "podwright_gpu_nvlink_up{'gpu': '0', 'link': '2'}": 0,
        "podwright_gpu_recovery_action{'gpu': '0'}": 1,
        "podwright_gpu_fabric_state{'gpu': '0'}": 3,
        "podwright_gpu_fabric_error{'gpu': '0'}": 0,
        "podwright_gpu_pcie_replays_total{'gpu': '0'}": 8,
    }
    assert {name: round(said[name], 6) for name in expected} == expected


def test_dcgms_dashboards_find_their_names_units_and_labels(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "3 utilization 93", "3 sm_clock 1980", "3 energy_mj 5000", "3 memory_used 1073741824")
    board = board_of(fake, host, 3)
    vocabularies = ("dcgm-4", "dcgm-4.9")
    said = list(foreign_samples(board, Holding(board, host.owners()), "n1", vocabularies, 79))
    values = {sample.name: round(sample.value, 9) for sample in said}
    expected = {
        "DCGM_FI_DEV_GPU_UTIL": 93,
        "DCGM_FI_DEV_GPU_UTIL_RATIO": 0.93,
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_SM_CLOCK_HERTZ": 1.98e9,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 5000,
        "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL": 5,
        "DCGM_FI_DEV_FB_USED": 1024,
        "DCGM_FI_DEV_FB_USED_BYTES": 1 << 30,
        "DCGM_FI_DEV_XID_ERRORS": 79,
        "DCGM_FI_DEV_XID_ERROR": 79,
    }
    assert {name: values[name] for name in expected} == expected
    labels = {name: dict(next(sample.labels for sample in said if sample.name == name)) for name in expected}
    shared = {
        **{"gpu": "3", "UUID": "GPU-000000a3-0000-0000-0000-000000000000", "pci_bus_id": "00000000:1F:00.0"},
        **{"device": "nvidia3", "modelName": "NVIDIA H200"},
    }
    assert shared.items() <= labels["DCGM_FI_DEV_GPU_UTIL"].items()
    assert (labels["DCGM_FI_DEV_GPU_UTIL"]["Hostname"], labels["DCGM_FI_DEV_GPU_UTIL_RATIO"]["hostname"]) == (
        "n1",
        "n1",
    )
    assert labels["DCGM_FI_DEV_GPU_UTIL_RATIO"]["DCGM_FI_SYSTEM_DRIVER_VERSION"] == "580.159.04"


def test_what_a_card_lacks_is_left_out_and_not_asked_again(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "0 temperature unsupported", "0 margin unsupported")
    board = board_of(fake, host)
    fake.set(*EIGHT)
    board.read(1000.0)
    said = own(board, host.owners())
    assert not [
        name for name in said if name.startswith(("podwright_gpu_temperature_celsius", "podwright_gpu_temperature_m"))
    ]
    assert "podwright_gpu_power_watts{'gpu': '0'}" in said


def test_a_lost_gpu_is_told_as_lost_and_told_again_when_it_is_back(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT)
    board = board_of(fake, host)
    fake.set(*EIGHT, "0 lost 1")
    board.read(1.0)
    assert board.is_lost
    assert told(board_samples(board, Holding(board, host.owners()), is_up=False)) == {"podwright_gpu_up{'gpu': '0'}": 0}
    fake.set(*EIGHT)
    board.read(2.0)
    assert not board.is_lost
    assert "podwright_gpu_temperature_limit_celsius{'gpu': '0', 'limit': 'slowdown'}" in own(board, host.owners())


def test_activity_is_told_where_the_card_counts_it(fake_nvml: NVML, host: Host) -> None:
    readings = (*EIGHT, "0 gpm 1", "0 gpm2 62.5", "0 gpm5 41", "0 gpm20 2048", "0 gpm60 1024", "0 gpm61 3072")
    board = board_of(fake_nvml(*readings), host)
    assert "sm_active_ratio" not in board.values[""]
    board.read(100.0)
    expected = {
        **{"sm_active_ratio": 0.625, "tensor_active_ratio": 0.41, "pcie_sent_bytes_per_second": 2048 * 2**20},
        **{"nvlink_bytes_per_second": 4096 * 2**20},
    }
    assert {key: round(board.values[""][key], 6) for key in expected} == expected
    assert "dram_active_ratio" not in board.values[""]


def test_two_runs_on_one_node_are_told_apart_by_slurms_record(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "0 processes 1", "0 process0 100 1000", "1 processes 1", "1 process0 200 2000")
    host.process(100, group="/system.slice/slurmstepd.scope/job_17/step_0/user/task_0", RANK="0")
    host.process(200, group="/slurm/uid_1001/job_18/step_batch", RANK="3", PODWRIGHT_RUN="theirs-aaaa")
    owners = host.owners({"17": JobRecord("ann", "17", "mine-7f3k"), "18": JobRecord("bob", "18", "other-9k2p")})
    said = {**own(board_of(fake, host, 0), owners), **own(board_of(fake, host, 1), owners)}
    mine = "'run': 'mine-7f3k', 'user': 'ann', 'job': '17', 'rank': '0'}"
    # What a process says of itself does not count against the job that it is in.
    other = "'run': 'other-9k2p', 'user': 'bob', 'job': '18', 'rank': '3'}"
    assert said["podwright_run_info{'gpu': '0', " + mine] == 1
    assert said["podwright_run_info{'gpu': '1', " + other] == 1
    assert said["podwright_gpu_run_memory_bytes{'gpu': '1', " + other] == 2000
    assert "podwright_gpu_power_watts{'gpu': '0', " + mine in said
    assert not [name for name in said if "theirs" in name]


def test_points_of_a_matrix_are_told_apart_within_their_own_job_alone(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "0 processes 1", "0 process0 100 1")
    host.process(100, group="/slurm/uid_1000/job_17/step_0", PODWRIGHT_RUN="sweep-7f3k-12")
    said = own(board_of(fake, host), host.owners({"17": JobRecord("ann", "17", "sweep-7f3k")}))
    assert "podwright_run_info{'gpu': '0', 'run': 'sweep-7f3k-12', 'user': 'ann', 'job': '17'}" in said


def test_without_a_scheduler_a_process_speaks_for_the_gpu_it_holds(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "2 processes 1", "2 process0 300 1")
    host.process(300, uid=54321, PODWRIGHT_RUN="alone-1234", RANK="x")
    said = own(board_of(fake, host, 2), host.owners())
    assert "podwright_run_info{'gpu': '2', 'run': 'alone-1234', 'user': '54321'}" in said


def test_a_gpu_that_runs_share_in_time_is_of_none_of_them_alone(fake_nvml: NVML, host: Host) -> None:
    fake = fake_nvml(*EIGHT, "0 processes 3", "0 process0 1 10", "0 process1 2 20", "0 process2 3 40")
    host.process(1, uid=54321, PODWRIGHT_RUN="one", RANK="0")
    host.process(2, uid=54321, PODWRIGHT_RUN="one", RANK="1")
    host.process(3, uid=54321, PODWRIGHT_RUN="two", RANK="0")
    said = own(board_of(fake, host), host.owners())
    assert said["podwright_gpu_owners{'gpu': '0'}"] == 2
    assert said["podwright_gpu_run_memory_bytes{'gpu': '0', 'run': 'one', 'user': '54321', 'rank': '0,1'}"] == 30
    assert said["podwright_gpu_run_memory_bytes{'gpu': '0', 'run': 'two', 'user': '54321', 'rank': '0'}"] == 40
    assert "podwright_gpu_power_watts{'gpu': '0'}" in said


def test_slices_have_owners_and_memory_of_their_own(fake_nvml: NVML, host: Host) -> None:
    slices = ("16 processes 1", "16 process0 1 10", "17 processes 1", "17 process0 2 20", "17 memory_used 4096")
    fake = fake_nvml(*EIGHT, "0 mig 2", "17 slices 3", "17 slice_mib 70912", *slices)
    host.process(1, uid=54321, PODWRIGHT_RUN="one", RANK="0")
    host.process(2, uid=54322, PODWRIGHT_RUN="two", RANK="0")
    board, owners = board_of(fake, host), host.owners()
    said = own(board, owners)
    second = "{'gpu': '0', 'mig': '1', 'run': 'two', 'user': '54322', 'rank': '0'}"
    assert said["podwright_run_info" + second] == 1
    assert said["podwright_gpu_memory_used_bytes" + second] == 4096
    assert "podwright_run_info{'gpu': '0', 'mig': '0', 'run': 'one', 'user': '54321', 'rank': '0'}" in said
    # Power is the board's, which nobody has alone.
    assert "podwright_gpu_power_watts{'gpu': '0'}" in said
    assert not [name for name in said if name.startswith("podwright_gpu_power_watts") and "mig" in name]
    foreign = list(foreign_samples(board, Holding(board, owners), "n1", ("dcgm-4",), 0))
    used = {
        labels["GPU_I_ID"]: labels
        for sample in foreign
        if (labels := dict(sample.labels)) and sample.name.endswith("FB_USED")
    }
    assert {used["1"][name] for name in ("GPU_I_PROFILE", "run")} == {"3g.71gb", "two"}
    assert used["1"]["UUID"].startswith("GPU-")


@pytest.mark.parametrize(
    ("slice_gib", "board_bytes", "name"),
    # As nvidia-smi lists them of an H200 and of an A100 with 40 GB.
    [
        (16.0, 150754820096, 18),
        (32.5, 150754820096, 35),
        (69.25, 150754820096, 71),
        (4.75, 42505273344, 5),
        (19.62, 42505273344, 20),
    ],
)
def test_a_slice_is_named_as_nvidia_names_it(slice_gib: float, board_bytes: float, name: int) -> None:
    assert named_gb(slice_gib * GIB, board_bytes) == name


def test_gpus_of_the_bus_are_counted_without_the_driver(host: Host) -> None:
    rows = {
        "0000:07:00.0": ("0x10de", "0x030200"),
        "0000:08:00.0": ("0x10de", "0x068000"),
        "0000:09:00.0": ("0x15b3", "0x020700"),
    }
    for address, (vendor, kind) in rows.items():
        folder = host.root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
    assert gpus_on_bus(host.scope) == 1
