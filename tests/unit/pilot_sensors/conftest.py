"""Made machines: trees of /proc and /sys under a temporary folder, and a fake of NVIDIA's library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.sensors.proc import Scope
from podwright.pilot.sensors.sampler import Sampler
from tests.fixtures.nvml import fake_nvml, nvml_builds  # noqa: F401


class Events(list[tuple[str, dict[str, Any]]]):
    """What a sampler said."""

    def say(self, kind: str, **fields: Any) -> None:
        self.append((kind, fields))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [fields for said, fields in self if said == kind]


class Machine:
    """A machine to look at: files under a folder that stands for its root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: Mapping[str, str]) -> Machine:
        for path, text in files.items():
            target = self.root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return self

    def scope(self, **changes: Any) -> Scope:
        given = {"root": str(self.root), "environ": {}, "cpus": frozenset({0, 1}), "nvml": "libnothing.so", **changes}
        return Scope(**given)


PLAIN = {
    "/proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n"
    "cpu0 90 0 90 20 0 0 0 0 0 0\ncpu1 10 0 10 780 0 0 0 0 0 0\nintr 5 1 2\n",
    "/proc/loadavg": "1.25 0.50 0.25 1/234 5678\n",
    "/proc/meminfo": "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     400 kB\n",
    "/proc/net/dev": "Inter-| Receive | Transmit\n face |bytes ...\n"
    "    lo:    7 1 0 0 0 0 0 0    7 1 0 0 0 0 0 0\n"
    "  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n"
    " veth9:  500 1 0 0 0 0 0 0  600 1 0 0 0 0 0 0\n",
    "/proc/diskstats": "   7 0 loop0 9 9 9 9 9 9 9 9 0 0 0\n"
    " 259 0 nvme0n1 10 0 100 5 20 0 200 5 0 0 0\n"
    " 259 1 nvme0n1p1 10 0 90 5 20 0 190 5 0 0 0\n",
    "/proc/vmstat": "nr_free_pages 5\noom_kill 0\n",
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/sys/block/nvme0n1/device/model": "disk\n",
    "/sys/block/nvme0n1/dev": "259:0\n",
    "/sys/block/loop0/dev": "7:0\n",
    "/sys/class/net/eth0/device/vendor": "0x15b3\n",
}


@pytest.fixture
def plain(tmp_path: Path) -> Machine:
    """A machine without control group, GPU or InfiniBand."""
    return Machine(tmp_path / "machine").write(PLAIN)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def sampler(events: Events):  # type: ignore[no-untyped-def]
    """Makes open samplers, and closes them."""
    opened: list[Sampler] = []

    def make(scope: Scope, period_s: float = 1.0) -> Sampler:
        made = Sampler(events.say, period_s, scope)
        made.open()
        opened.append(made)
        return made

    yield make
    for made in opened:
        made.close()
