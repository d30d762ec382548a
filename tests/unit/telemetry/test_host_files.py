"""The one file that hosts get: it runs with a bare Python, and carries all that is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.telemetry.host_files import host_program
from tests.fixtures.nvml import FakeNvml
from tests.unit.pilot_sensors.test_oldest_python import oldest_python


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "exporters.py"
    path.write_text(host_program())
    return path


def alone(program: Path, *words: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run it as a host does: no site-packages, nothing of ours on the way."""
    return subprocess.run(
        [python, "-I", "-S", str(program), *words], capture_output=True, text=True, check=False, cwd=program.parent
    )


@pytest.mark.parametrize("python", sorted({oldest_python(), sys.executable}))
def test_it_tells_of_gpus_with_nothing_beside_it(
    program: Path, python: str, fake_nvml: Callable[..., FakeNvml]
) -> None:
    fake = fake_nvml("-1 count 8")
    done = alone(program, "gpu", "--once", "--host", "n1", "--bridge", "off", "--nvml", fake.path, python=python)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 'podwright_gpu_power_watts{host="n1",gpu="7"} 75' in lines
    assert 'podwright_gpus{host="n1"} 8' in lines
    assert [line for line in lines if line.startswith("DCGM_FI_DEV_POWER_USAGE{")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpu", "--listen", "10.0.0.7:9835"], "exporters.py gpu: 10.0.0.7 is on a network: serving there needs"),
        (["slurm", "--listen", "10.0.0.7:9341"], "exporters.py slurm: 10.0.0.7 is on a network: serving there needs"),
        (["gpu", "--listen", "here"], "exporters.py gpu: here: is no ADDRESS:PORT"),
        ([], "gpu|slurm"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(program: Path, words: list[str], said: str) -> None:
    done = alone(program, *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_its_folder_needs_nothing_but_the_standard_library(program: Path) -> None:
    tree = ast.parse(program.read_text())
    carried = next(node for node in tree.body if isinstance(node, ast.AnnAssign))
    assert isinstance(carried.value, ast.Dict)
    sources = [str(ast.literal_eval(value)) for value in carried.value.values]
    assert len(sources) > 20
    names = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add((node.module or "").split(".")[0])
    assert names <= sys.stdlib_module_names
