"""What is measured on a pod, and what the answers mean; the lines of shell are run by a real shell."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.bringup.apply.validate import CheckResult, ValidationCheck, ValidationResult, at_least, checks, member
from podwright.bringup.plan.site import site_of
from podwright.spec import load_pod
from tests.paths import CASES

POD = CASES / "bringup" / "hosts" / "small" / "pod.yaml"


@pytest.mark.parametrize(
    ("check", "answer", "state"),
    [
        (ValidationCheck("a", "g1", "", "4"), (0, "4\n", ""), "passed"),
        (ValidationCheck("a", "g1", "", "4"), (0, "3\n", ""), "failed"),
        (ValidationCheck("a", "g1", "", "200", at_least), (0, "200\n", ""), "passed"),
        (ValidationCheck("a", "g1", "", "200", at_least), (0, "100\n", ""), "failed"),
        (ValidationCheck("a", "g1", "", "200", at_least), (0, "fast\n", ""), "failed"),
        (ValidationCheck("a", "g1", "", "idle|mixed", member), (0, "down*\n", ""), "failed"),
        (ValidationCheck("a", "g1", ""), (0, "812\n", ""), "measured"),
        (ValidationCheck("a", "g1", "", "4"), (0, "cannot: there is no nvidia-smi\n", ""), "skipped"),
        (ValidationCheck("a", "g1", "", "4"), (1, "", "srun: error: no nodes\n"), "failed"),
    ],
)
def test_an_answer_is_judged(check: ValidationCheck, answer: tuple[int, str, str], state: str) -> None:
    assert check.result(*answer).state == state


def test_why_it_failed_is_its_value() -> None:
    row = ValidationCheck("a job", "m1", "", "2").result(1, "", "one\nsrun: error: no nodes\n")
    values = {"name": "a job", "host": "m1", "state": "failed", "value": "srun: error: no nodes", "expected": "2"}
    result = ValidationResult([row, replace(row, state="passed")])
    assert result.as_json()["checks"][0] == values
    assert (result.summary(), result.is_ok) == ("1 passed, 1 failed", False)


def test_every_kind_of_check_is_there() -> None:
    names = {(check.name, check.host) for check in checks(site_of(load_pod(POD)))}
    assert {("GPUs", "g1"), ("fast is mounted", "m1"), ("a job on all nodes", "m1"), ("health check", "g2")} <= names
    assert ("GPUs", "m1") not in names


def test_lines_are_what_a_shell_takes(tmp_path: Path) -> None:
    """The storage is measured for real, in a folder that plays it."""
    text = POD.read_text().replace("mount: /data", f"mount: {tmp_path}")
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    lines = {check.name: check for check in checks(site_of(load_pod(file))) if check.host == "g1"}
    for check in lines.values():
        subprocess.run(["/bin/sh", "-n", "-c", check.line], check=True)
    written = shell(lines["fast is written, MB/s"])
    assert (written.state, int(written.value) > 0) == ("measured", True)
    assert not list(tmp_path.glob(".podwright-*"))
    assert shell(lines["GPUs of the driver"]).state in ("skipped", "passed", "failed")


@pytest.mark.parametrize(("script", "value"), [("exit 0", "well"), ("echo GPU 1 is gone; exit 1", "GPU 1 is gone")])
def test_the_health_check_gives_its_own_reason_and_is_only_looked_at(tmp_path: Path, script: str, value: str) -> None:
    check = next(each for each in checks(site_of(load_pod(POD))) if each.name == "health check")
    program = tmp_path / "health.sh"
    program.write_text(f'#!/bin/sh\n[ "$1" = look ] || exit 2\necho noise of ssh >&2\n{script}\n')
    program.chmod(0o755)
    result = shell(replace(check, line=check.line.replace("/etc/slurm/podwright/health.sh", str(program))))
    assert (result.value, result.state) == (value, "passed" if value == "well" else "failed")


def shell(check: ValidationCheck) -> CheckResult:
    done = subprocess.run(["/bin/sh", "-c", check.line], capture_output=True, text=True, check=False)
    return check.result(done.returncode, done.stdout, done.stderr)
