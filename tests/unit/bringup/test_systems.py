"""Systems of hosts: what nobody has run is said and wants consent, and packages that no system has want a source."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from podwright.bringup import Bringup, BringupParts
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.systems import SYSTEMS
from podwright.cli.main import main
from podwright.spec import Pod, Refusal, load_pod
from podwright.spec.bringup import OperatingSystem
from tests.paths import CASES
from tests.unit.bringup.test_bringup import POD, Bench
from tests.unit.bringup.test_bringup import bench as bench

WHOLE = CASES / "bringup" / "hosts" / "whole" / "pod.yaml"


def on(folder: Path, system: str, source: Path = POD) -> Pod:
    path = folder / "pod.yaml"
    path.write_text(source.read_text().replace("bringup:\n", f"bringup:\n  os: {system}\n", 1))
    return load_pod(path)


def test_every_system_that_a_file_may_name_has_its_row() -> None:
    assert set(SYSTEMS) == set(get_args(OperatingSystem))
    assert [name for name, system in SYSTEMS.items() if not system.unchecked] == ["debian-12"]


def test_a_system_that_nobody_tried_wants_consent(bench: Bench, tmp_path: Path) -> None:
    pod = on(tmp_path, "ubuntu-24.04")
    with pytest.raises(Refusal) as refused:
        bench.bringup(pod).up()
    assert "`up` never ran on it" in str(refused.value)
    assert "--untested" in str(refused.value)
    assert bench.happened == []
    parts = BringupParts(bench.vault, bench, bench, bench.play, lambda asked: bench)
    Bringup(pod, parts, bench.progress.append, accepts_untested=True).up()
    bench.bringup(pod).replace("g1")
    assert bench.happened[0] == ("apply", ["m1", "g1", "g2"])
    assert bench.happened[1] == ("apply", ["g1"])


def test_a_plan_says_what_nobody_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on(tmp_path, "debian-13")
    assert main(["pod", "plan", str(tmp_path / "pod.yaml"), "--offline", "--limit", "g1"]) == 0
    assert "debian-13: rendered; `up` never ran on it" in " ".join(capsys.readouterr().err.split())


def test_each_system_has_its_own_headers_and_its_own_slurm(tmp_path: Path) -> None:
    packages = plan(on(tmp_path, "ubuntu-24.04", WHOLE))["g1"].steps["nvidia.headers"].packages
    assert packages == ("linux-headers-generic", "dkms")
    steps = list(plan(load_pod(WHOLE))["g1"].steps)
    assert steps.index("nvidia.headers") < steps.index("nvidia.driver") < steps.index("nvidia.tools")
    old = on(tmp_path, "ubuntu-22.04")
    with pytest.raises(Refusal, match=r"Slurm 21\.08 of ubuntu-22\.04 is older than 22\.05"):
        plan(old)


@pytest.mark.parametrize("more", ["", "  archive: https://10.0.0.9:3142\n"])
def test_a_package_that_could_come_from_nowhere_is_refused_with_who_has_it(tmp_path: Path, more: str) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(WHOLE.read_text().partition("  sources:")[0] + more)
    if more:
        assert plan(load_pod(path))
        return
    with pytest.raises(Refusal) as refused:
        plan(load_pod(path))
    assert "nvidia-driver-pinning-570 can come from nowhere: debian-12 has no such package" in str(refused.value)
    assert "developer.download.nvidia.com" in str(refused.value)
