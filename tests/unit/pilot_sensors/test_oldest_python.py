"""The sensors give the same on the oldest Python the pilot runs on."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import podwright.pilot

PILOT = Path(podwright.pilot.__file__).parent
CORE = Path(__file__).with_name("core.py")


def oldest_python():
    """The oldest Python from 3.8 on that can be found; this one where there is no other."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for folder in versions.glob("3.*/bin/python"):
        minor = re.match(r"3\.(\d+)", folder.parts[-3])
        if minor and int(minor[1]) >= 8:
            found.setdefault(int(minor[1]), str(folder))
    for minor in range(8, sys.version_info.minor):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            found.setdefault(minor, path)
    return found[min(found)] if found else sys.executable


def answer(python, machine, library):
    command = [python, "-W", "error", str(CORE), str(PILOT), str(machine.root), library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_oldest_python_samples_the_same(plain, fake_nvml):
    stat = f"100 (train) S 1 {'0 ' * 9} 5 5 0 0 20 0 3 0 0 0 7\n"
    plain.write({"/proc/100/stat": stat, "/sys/class/powercap/intel-rapl:0/name": "package-0\n"})
    plain.write({"/sys/class/powercap/intel-rapl:0/energy_uj": "5000000\n"})
    plain.write({"/sys/class/powercap/intel-rapl:0/max_energy_range_uj": "9000000\n"})
    plain.write({"/sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec\n"})
    plain.write({"/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "5\n"})
    plain.write({"/sys/devices/system/node/node0/cpulist": "0-1\n"})
    fake = fake_nvml("-1 count 1", "0 field82 50", "0 lost 0", "0 power_mw 70000", "0 ecc_corrected unsupported")
    there = answer(oldest_python(), plain, fake.path)
    assert there == answer(sys.executable, plain, fake.path)
    assert there["values"][0]["gpu.0.power_watts"] == 70
    assert there["values"][0]["rank.0.threads"] == 3
    assert there["values"][0]["cpu_energy_joules_total"] == 5
    assert ["sensor", {"name": "gpu.ecc_corrected_total", "error": "not supported by this GPU"}] in there["events"]
    assert [place[3] for place in there["bound"]] == [[0], [1]]
