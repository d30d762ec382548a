"""The second generation of Slurm: what its report says, and that a root of its own is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from scripts import second_slurm
from scripts.second_slurm import Told, page, read_report, versions

REPORT = """\
<testsuites><testsuite name="pytest" tests="4">
  <testcase file="tests/contract/test_contract.py" name="test_a[slurm]@slurm"/>
  <testcase file="tests/contract/test_contract.py" name="test_b[slurm-2]@slurm">
    <failure message="no">no</failure>
  </testcase>
  <testcase file="tests/contract/test_slurm_sites.py" name="test_c@slurm"/>
  <testcase file="tests/contract/test_slurm_sites.py" name="test_d@slurm">
    <error message="no">no</error>
  </testcase>
</testsuite></testsuites>
"""

STATUS = """\
Package: slurmctld
Status: install ok installed
Version: 24.11.5-4

Package: mariadb-server
Architecture: all
Version: 1:11.8.3-0+deb13u1
Depends: slurmctld

Package: halfway
Status: deinstall ok config-files

Package: munge
Version: 0.5.16-1+b1
"""


def test_the_report_is_read_per_file_and_site() -> None:
    assert read_report(REPORT) == [
        Told("test_contract", "slurm", "passed"),
        Told("test_contract", "slurm", "failed"),
        Told("test_slurm_sites", "", "passed"),
        Told("test_slurm_sites", "", "failed"),
    ]


def test_versions_are_upstreams() -> None:
    assert versions(STATUS, ["slurmctld", "mariadb-server", "halfway", "munge"]) == {
        "slurmctld": "24.11.5",
        "mariadb-server": "11.8.3",
        "munge": "0.5.16",
    }


def test_the_page_counts_what_passed() -> None:
    text = page(read_report(REPORT), {"slurmctld": "24.11.5"}, "trixie", "2026-11-16")
    assert "Slurm 24.11.5: 2 of 4 tests passed." in text
    assert "| test_contract | slurm | 1 | 1 |\n| test_slurm_sites |  | 1 | 1 |\n" in text
    assert text.endswith(
        "| slurmctld | 24.11.5 |\n\n2026-11-16, `python -m scripts.second_slurm`, which `make test-nightly` calls.\n"
    )


@pytest.mark.netns
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo .venv/bin/python -m pytest -m netns")
def test_what_runs_inside_has_a_root_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    """This machine's programs are bound into an empty root, which is enough to look around in it."""
    root, work, checkout = tmp_path / "root", tmp_path / "work", tmp_path / "checkout"
    for folder in ("dev", "etc", "proc", "sys", "tmp"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    work.mkdir()
    checkout.mkdir()
    look = "ls -A /; cat /etc/hosts; echo $$; touch /made here; exit 7"
    places = [str(root), str(work), str(checkout), f"{checkout}\n/usr"]
    line = ["/bin/sh", "-c", second_slurm.INSIDE, "inside", *places, "sh", "-c", look]
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    done = subprocess.run([*spaces, *line], env=second_slurm.ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    seen = done.stdout.split()
    assert {"usr", "proc", "etc"} <= set(seen)
    assert "home" not in seen
    assert "localhost" in seen
    assert int(seen[-1]) < 100, "it counts its processes anew"
    assert [path.name for path in checkout.iterdir()] == ["here"]
    assert not (root / "made").exists()
    assert list(work.iterdir()) == []
