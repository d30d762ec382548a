"""A profile by Nsight Systems: a small fake stands for `nsys` and for a program on a GPU, since neither is here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import ROOT
from tests.programs.test_reference import NEVER, SHORT, WAIT_S

Load = Callable[[str, str], ModuleType]
Spawn = Callable[..., "subprocess.Popen[str]"]
TRACE = """\
Processing [profile.sqlite] with [cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,Device,Strm,Name
1000000,2000000,1,8,GPU (0),7,gemm
2500000,1500000,2,8,GPU (0),9,"void add<float, 4>(float*)"
7000000,1000000,3,,GPU (0),7,[CUDA memcpy Host-to-Device]
8000000,2000000,4,8,GPU (0),7,gemm
"""
FAKE = """\
#!{python}
# A fake of nsys: it runs the program that it is given, leaves a file, and lists kernels that never ran.
import os, sys
arguments = sys.argv[2:]
print("fake nsys", sys.argv[1], flush=True)
if sys.argv[1] == "profile":
    output = [word.partition("=")[2] for word in arguments if word.startswith("--output=")][0]
    open(output, "w").close()
    at = [number for number, word in enumerate(arguments) if not word.startswith("-")][0]
    sys.exit(os.waitstatus_to_exitcode(os.spawnv(os.P_WAIT, arguments[at], arguments[at:]) << 8))
assert os.path.exists(arguments[-1])
print(open({trace!r}).read())
"""
PROGRAM = """\
import json, signal, sys, time
from pathlib import Path
sys.path.insert(0, {programs!r})
from kit import nsight
out = Path({out!r})
def stop(number, frame):
    print("asked to stop", flush=True)
    sys.exit(143)
if not nsight.begin():
    sys.exit(nsight.run_again({nsys!r}, out))
signal.signal(signal.SIGTERM, stop)
(out / "profile.json").write_text(json.dumps({{"steps": 8, "wall_s": 0.01, "parts": {{}}, "device": "GPU"}}))
print("training", flush=True)
if "wait" in sys.argv:
    time.sleep(600)
sys.exit(7)
"""


@pytest.fixture
def nsys(tmp_path: Path) -> Path:
    """The fake, on a path of its own."""
    trace, path = tmp_path / "trace.csv", tmp_path / "bin" / "nsys"
    trace.write_text(TRACE)
    path.parent.mkdir()
    path.write_text(FAKE.format(python=sys.executable, trace=str(trace)))
    path.chmod(0o755)
    return path


@pytest.fixture
def start(nsys: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a program that has itself profiled as a leader on a GPU would."""
    path = tmp_path / "program.py"
    text = PROGRAM.format(programs=str(ROOT / "programs" / "resnet"), out=str(tmp_path / "out"), nsys=str(nsys))
    path.write_text(text)

    def begin(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(path), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return begin


def test_what_it_traced_completes_the_profile(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = start()
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 7, text
    assert "fake nsys profile" in text
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert (profile["steps"], profile["device"]) == (8, "GPU")
    assert profile["busy_s"] == pytest.approx(0.006)
    assert profile["operations"][0] == {"name": "gemm", "seconds": pytest.approx(0.004), "calls": 2}
    add, copy = "void add<float, 4>(float*)", "[CUDA memcpy Host-to-Device]"
    assert profile["gaps"] == [{"seconds": pytest.approx(0.003), "after": add, "before": copy}]


def test_a_trace_that_cannot_be_read_leaves_no_profile(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    (tmp_path / "trace.csv").write_text("SKIPPED: profile.sqlite does not contain CUDA trace data.\n")
    process = start()
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 7, text
    assert "no profile: " in text
    assert not (tmp_path / "out" / "profile.json").exists()


def test_a_request_to_stop_reaches_the_program_itself(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("wait")
    assert process.stdout
    lines = iter(process.stdout.readline, "")
    assert any(line == "training\n" for line in lines)
    process.send_signal(signal.SIGTERM)
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 143
    assert "asked to stop" in text


def test_a_cpu_is_left_to_the_profiler_of_pytorch(nsys: Path, spawn: Spawn, tmp_path: Path) -> None:
    path = f"{nsys.parent}{os.pathsep}{os.environ['PATH']}"
    process = spawn(*SHORT["resnet"], *NEVER, "--out", tmp_path / "out", PODWRIGHT_PROFILE="2", PATH=path)
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, text
    assert "fake nsys" not in text
    assert json.loads((tmp_path / "out" / "profile.json").read_text())["device"] == "cpu"
