"""What a person sees of a run: a real terminal, eight GPUs of which one lags, a progress bar and a retry."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from podwright import launch
from podwright.runs import Home
from tests.fixtures.launching import home  # noqa: F401
from tests.fixtures.screen import Open, Screen, open_screen  # noqa: F401
from tests.paths import ROOT

PODWRIGHT = str(Path(sys.executable).with_name("podwright"))
WORKLOAD = """\
name: segmentation
code: code
command: python barred_trainer.py {stop}
ranks_per_node: 2
retries: 1
"""


@pytest.fixture
def machine(tmp_path: Path) -> Mapping[str, str]:
    """The variables of a machine with eight GPUs, by a stand-in for NVIDIA's library: the third lags."""
    source = ROOT / "tests" / "fakes" / "fakenvml.c"
    library = tmp_path / "lib" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    readings = ["-1 count 8", f"-1 memory_total {80 << 30}", f"-1 memory_used {71 << 30}", "-1 power_mw 402000"]
    readings += ["-1 utilization 93", "3 utilization 12", "3 power_mw 121000"]
    (tmp_path / "readings").write_text("\n".join(readings) + "\n")
    return {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": str(tmp_path / "readings")}


@pytest.fixture
def scene(tmp_path: Path, home: Home, machine: Mapping[str, str]) -> tuple[Path, dict[str, str]]:  # noqa: F811
    """A folder with a workload, and the environment that a command in it gets."""
    (tmp_path / "work" / "code").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "fixtures" / "barred_trainer.py", tmp_path / "work" / "code")
    (tmp_path / "work" / "workload.yaml").write_text(WORKLOAD.format(stop=tmp_path / "stop"))
    names = ("PATH", "PYTHONPATH", "HOME")
    own = {name: os.environ[name] for name in names if name in os.environ}
    own["PATH"] = f"{Path(sys.executable).parent}:{own['PATH']}"
    return tmp_path / "work", {**own, **machine, "PODWRIGHT_HOME": str(home.path), "LANG": "C.UTF-8"}


def status_of(screen: Screen) -> str:
    """The status, on as many lines as it has."""
    lines = screen.lines()
    first = next(number for number, line in enumerate(lines) if line.startswith("running "))
    return " ".join(" ".join(lines[first : first + 2]).split())


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_a_run_with_a_bar_a_straggler_and_a_retry(
    open_screen: Open,  # noqa: F811
    scene: tuple[Path, dict[str, str]],
    columns: int,
    rows: int,
) -> None:
    folder, environment = scene
    screen = open_screen(columns, rows)
    screen.start([PODWRIGHT, "run"], environment, folder)
    shown = screen.until(lambda text: "attempt 2" in text and "ETA" in text and "straggler" in text, "the status")
    assert not screen.is_broken(), shown
    status = status_of(screen)
    assert re.search(r"running step \d+/100000 ╌+ ETA \S+ \S+ \S+/s loss 0\.\d+", status)
    assert re.search(r"gpu 83% mean, straggler 12% \S+ gpu 3 mem 71/80 GiB", status)
    assert re.search(r"^retry     attempt 2: rank 0 on \S+ exited with 1$", shown, re.MULTILINE)
    assert "RuntimeError: CUDA error" in shown
    bars = [line for line in shown.splitlines() if line.startswith("train: ")]
    assert len(bars) == 2, "the bar of the first attempt as it ended, and that of the second in place"
    screen.press("C-c")
    shown = screen.until(lambda text: "podwright attach segmentation-" in text, "how to come back")
    assert "left      the run goes on; to come back:" in shown
    assert "running " not in shown

    screen.press("C-c")
    again = open_screen(columns, rows)
    again.start([PODWRIGHT, "top"], environment, folder)
    shown = again.until(lambda text: "straggler" in text, "the straggler")
    assert not again.is_broken(), shown
    [marked] = [line.split() for line in again.lines() if line.endswith("straggler")]
    assert marked == ["gpu", "3", "12%", "71/80", "GiB", "121", "W", "straggler"]

    (folder.parent / "stop").touch()
    run = launch.find(launch.Session(Home.open(Path(environment["PODWRIGHT_HOME"]))), "last")
    assert run.wait(120).state == "succeeded"
