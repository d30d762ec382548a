"""The whole exporter, with its threads: GPUs that hang, sensors that fail, XIDs of the kernel's log, DCGM's page."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter.main import ExporterSettings, HostExporter, bridged
from podwright.telemetry.exporter.sensors import PanelSensor, SensorThread
from podwright.telemetry.page import MetricSample
from podwright.telemetry.server import place_of
from tests.fixtures.nvml import FakeNvml

NVML = Callable[..., FakeNvml]
PLAIN = {
    "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n",
    "proc/loadavg": "1.25 0.50 0.25 1/234 5678\n",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 500 kB\nNode 0 MemFree: 50 kB\n",
    "sys/devices/system/node/node0/numastat": "numa_hit 9\nnuma_miss 3\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "25\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "2\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "1\n",
    "sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n",
    "sys/class/infiniband/mlx5_1/ports/1/link_layer": "Ethernet\n",
    "sys/class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent": "7\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    for name, text in PLAIN.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@contextlib.contextmanager
def running(root: Path, fake: FakeNvml | None = None, **more: object) -> Iterator[HostExporter]:
    scope = Scope(root=str(root), environ={}, cpus=frozenset({0}), nvml=fake.path if fake else "libnothing.so")
    log = root / "kern.log"
    log.touch()
    exporter = HostExporter(ExporterSettings("n1", scope=scope, kernel_log=str(log), **more))  # type: ignore[arg-type]
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.close()


def page_with(exporter: HostExporter, *wanted: str, without: str = "nothing at all") -> str:
    """Ask until a page has all of these."""
    pause = threading.Event()
    while True:
        text = exporter.text()
        if all(part in text for part in wanted) and without not in text:
            return text
        pause.wait(0.02)


def test_a_host_tells_of_itself_its_ports_and_its_gpus(fake_nvml: NVML, root: Path) -> None:
    with running(root, fake_nvml("-1 count 8"), gpus=8) as exporter:
        text = page_with(exporter, *(f'podwright_gpu_power_watts{{host="n1",gpu="{index}"}} 75' for index in range(8)))
        lines = page_with(
            exporter, 'sensor_up{host="n1",sensor="ports"} 1', 'sensor="host"} 1', "podwright_gpus{"
        ).splitlines()
    assert {
        'podwright_gpus_expected{host="n1"} 8',
        'podwright_gpus{host="n1"} 8',
        'podwright_host_load1{host="n1"} 1.25',
        'podwright_host_memory_used_bytes{host="n1"} 614400',
        'podwright_host_numa_memory_free_bytes{host="n1",node="0"} 51200',
        'podwright_host_numa_misses_total{host="n1",node="0"} 3',
        'podwright_port_up{host="n1",device="mlx5_0",port="1"} 1',
        'podwright_port_up{host="n1",device="mlx5_1",port="1"} 0',
        'podwright_port_rate_bytes_per_second{host="n1",device="mlx5_0",port="1"} 50000000000',
        'podwright_port_sent_bytes_total{host="n1",device="mlx5_0",port="1"} 100',
        'podwright_port_errors_total{host="n1",device="mlx5_0",port="1",error="symbol"} 2',
        'podwright_port_ecn_total{host="n1",device="mlx5_1",port="1",event="notice_sent"} 7',
        'podwright_port_info{host="n1",device="mlx5_1",port="1",link_layer="Ethernet"} 1',
    } <= set(lines)
    assert "DCGM_FI_DEV_GPU_TEMP{" in text
    assert "DCGM_FI_DEV_GPU_TEMP_CELSIUS{" in text


def test_a_gpu_whose_driver_hangs_is_down_and_takes_no_other_with_it(fake_nvml: NVML, root: Path) -> None:
    fake = fake_nvml("-1 count 2")
    with running(root, fake) as exporter:
        page_with(exporter, 'podwright_gpu_up{host="n1",gpu="0"} 1', 'podwright_gpu_up{host="n1",gpu="1"} 1')
        fake.set("-1 count 2", "1 blocks 1")
        down = 'podwright_exporter_sensor_up{host="n1",sensor="gpu1"} 0'
        text = page_with(exporter, down, 'podwright_gpu_up{host="n1",gpu="1"} 0')
        assert 'podwright_gpu_power_watts{host="n1",gpu="0"} 75' in text
        assert 'podwright_gpu_power_watts{host="n1",gpu="1"}' not in text
        fake.set("-1 count 2")
        page_with(exporter, 'podwright_gpu_power_watts{host="n1",gpu="1"} 75')


def test_a_host_without_the_library_has_no_gpus_and_one_that_should_have_some_is_told(root: Path) -> None:
    with running(root) as exporter:
        page_with(exporter, 'podwright_gpus{host="n1"} 0', 'podwright_exporter_sensor_up{host="n1",sensor="gpus"} 1')
    with running(root, gpus=8) as exporter:
        page_with(exporter, 'sensor_up{host="n1",sensor="gpus"} 0', 'sensor_up{host="n1",sensor="host"} 1')


def test_what_the_log_held_before_is_told_by_the_gpus_number_alone(fake_nvml: NVML, root: Path) -> None:
    with (root / "kern.log").open("a") as log:
        log.write("1700000000.5 n1 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.\n")
    with running(root, fake_nvml("-1 count 1")) as exporter:
        text = page_with(exporter, "podwright_gpu_xid_errors_total{", without='gpu="0000:07:00')
    assert 'podwright_gpu_xid_errors_total{host="n1",gpu="0",xid="79",action="reboot"} 1' in text


def test_xids_are_counted_from_the_kernels_log_and_the_last_is_told_in_dcgms_words(fake_nvml: NVML, root: Path) -> None:
    with running(root, fake_nvml("-1 count 1"), names="dcgm-4") as exporter:
        page_with(exporter, 'podwright_gpu_up{host="n1",gpu="0"} 1', 'sensor_up{host="n1",sensor="xid"} 1')
        with (root / "kern.log").open("a") as log:
            log.write("1700000000.5 n1 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.\n")
            log.write("1700000001.5 n1 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.\n")
        labels = '{host="n1",gpu="0",xid="79",action="reboot"}'
        text = page_with(exporter, f"podwright_gpu_xid_errors_total{labels} 2")
    assert f"podwright_gpu_xid_last_timestamp_seconds{labels} 1700000001.5" in text
    assert next(line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_XID_ERRORS{")).endswith(" 79")


PAGE = """\
# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",modelName="A \\"B\\""} 41
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-a"} 9223372036854775794
what is this
"""


@pytest.fixture
def dcgm() -> Iterator[str]:
    """A page of DCGM's exporter on this machine."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
        server.shutdown()


def test_dcgms_own_page_is_passed_on_with_the_owner_instead_of_our_rendering(
    fake_nvml: NVML, root: Path, dcgm: str
) -> None:
    fake = fake_nvml("-1 count 1", "0 processes 1", "0 process0 5 1")
    (root / "proc/5").mkdir()
    (root / "proc/5/status").write_text("Uid:\t54321\t0\t0\t0\n")
    (root / "proc/5/environ").write_text("PODWRIGHT_RUN=mine-7f3k\0")
    with running(root, fake, bridge=dcgm) as exporter:
        text = page_with(exporter, 'modelName="A \\"B\\"",run="mine-7f3k",user="54321"} 41')
    assert "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C)." in text
    assert "DCGM_FI_DEV_MEMORY_TEMP{" not in text
    assert text.count("DCGM_FI_DEV_GPU_TEMP{") == 1
    assert "DCGM_FI_DEV_POWER_USAGE" not in text


def test_a_sensor_that_fails_tells_nothing_old(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[list[MetricSample]] = [[MetricSample("a", (), 1)]]

    def read(now: float) -> list[MetricSample]:
        if not answers:
            raise OSError("the card is gone")
        return answers.pop()

    thread = SensorThread(PanelSensor("cards", 1.0, read), threading.Event())
    thread.once()
    look = thread.look
    assert look is not None
    assert thread.fresh(look.at + 2.9) == look
    assert thread.fresh(look.at + 3.1) is None
    thread.once()
    thread.once()
    assert thread.fresh(look.at) is None
    assert capsys.readouterr().err == "cards: the card is gone\n"


def test_addresses_and_bridges_are_read_as_people_write_them() -> None:
    assert (place_of("10.0.0.1:9835"), place_of("[::1]:80"), place_of(":81")) == (
        ("10.0.0.1", 9835),
        ("::1", 80),
        ("127.0.0.1", 81),
    )
    with pytest.raises(ValueError, match="n1: is no ADDRESS:PORT"):
        place_of("n1")
    assert (bridged("off"), bridged("http://127.0.0.1:1/x")) == ("", "http://127.0.0.1:1/x")
