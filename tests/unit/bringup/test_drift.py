"""What a host has against what it should have; the program that looks is run on this machine."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.checks import NOT_JUDGED
from podwright.bringup.apply.drift import changes_of, drifts, status_of
from podwright.bringup.apply.findings import Drift
from podwright.bringup.apply.observe import Question, question
from podwright.bringup.apply.sent import sent
from podwright.bringup.apply.vault import Secrets
from podwright.bringup.on_host import inspect_host
from podwright.bringup.plan.host import HostFile, HostFolder, HostPlan, Step
from podwright.spec.hardware import NodeModel
from podwright.spec.problems import refuse

MODEL = NodeModel.model_validate({"gpus": {"model": "A100-SXM4-40GB", "count": 8, "memory": "40GiB"}})


def me() -> dict[str, str]:
    return {"owner": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}


def plan_of(folder: Path, text: str) -> HostPlan:
    file = HostFile(str(folder / "a.conf"), text, "0640", **me())
    secret = HostFile(str(folder / "key"), mode="0400", secret="key", **me())
    step = Step(folders=(HostFolder(str(folder), "0755", **me()),), files=(file, secret))
    return HostPlan("n1", "10.0.0.1", {"base.base": step})


def seen(plan: HostPlan, links: Sequence[str] = ()) -> dict[str, Any]:
    """Asks this machine as a host is asked: the program's text, the question on standard input."""
    program = sent("inspect_host.py")
    asked = json.dumps(question(plan, links, asked=Question(shows=True)))
    done = subprocess.run([sys.executable, "-c", program], input=asked, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def put(path: Path, text: str, mode: int) -> None:
    path.write_text(text)
    path.chmod(mode)


def test_what_differs_is_found_and_nothing_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    plan, secrets = plan_of(tmp_path, "wanted\n"), {"key": "hidden"}
    missing = [drift.found for drift in drifts(plan, seen(plan), secrets)]
    assert missing == ["missing", "missing"]
    put(tmp_path / "a.conf", "wanted\n", 0o640)
    put(tmp_path / "key", "hidden", 0o400)
    assert drifts(plan, seen(plan), secrets) == []
    put(tmp_path / "a.conf", "by hand\n", 0o640)
    (tmp_path / "key").chmod(0o444)
    rows = [(drift.what, drift.found) for drift in drifts(plan, seen(plan), secrets)]
    owner = f"{me()['owner']}:{me()['group']}"
    assert rows == [(f"{tmp_path}/a.conf", "edited"), (f"{tmp_path}/key", f"{owner} 0444")]


def test_a_plan_says_what_would_change_and_shows_no_secret(tmp_path: Path) -> None:
    put(tmp_path / "a.conf", "first\nby hand\n", 0o640)
    put(tmp_path / "key", "stolen", 0o400)
    plan = plan_of(tmp_path, "first\nwanted\n")
    answer = seen(plan)
    changes = changes_of(plan, answer, Secrets({"key": "hidden"}))
    assert [row["change"] for row in changes.as_json()["files"]] == ["edit", "edit"]
    assert list(changes_of(plan, None, Secrets()).changes.values()) == ["unknown", "unknown"]
    assert set(changes_of(plan, None, Secrets()).others) == {("unknown", str(tmp_path))}
    config, secret = plan.files()
    assert changes.diff(config) == ["@@ -1,2 +1,2 @@", " first", "-by hand", "+wanted"]
    assert changes.diff(secret) == ["(the secret key is not shown)"]
    assert "content" not in answer["files"][secret.path]
    assert "stolen" not in json.dumps(answer)


def test_a_pipe_in_a_files_place_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.conf")
    plan = plan_of(tmp_path, "wanted\n")
    assert "edited" in [drift.found for drift in drifts(plan, seen(plan), {})]


def test_packages_services_and_gpus_are_compared() -> None:
    plan = HostPlan("n1", "10.0.0.1", {"a.b": Step(packages=("munge",), services=("munge",))})
    there: dict[str, Any] = {"files": {}, "packages": {"munge": None}, "services": {"munge": "inactive, enabled"}}
    answer = {**there, "gpus": 7, "broken": True, "links": {}}
    assert drifts(plan, answer, {}, MODEL) == [
        Drift("packages", "whole", "half installed"),
        Drift("package munge", "installed", "missing"),
        Drift("service munge", "active, enabled", "inactive, enabled"),
        Drift("GPUs", "8", "7"),
    ]
    assert status_of(plan, answer, {}, MODEL).as_json()["drift"][3] == {"what": "GPUs", "expected": "8", "found": "7"}


def test_a_package_of_another_release_is_lacking_and_named() -> None:
    """dpkg is on this machine, of whatever version."""
    version = str(inspect_host.packages(["dpkg"])["dpkg"])
    for release, others in ((version[:3], []), ("0.7", ["dpkg"])):
        plan = HostPlan("n1", "10.0.0.1", {"a.b": Step(packages=("dpkg",), releases={"dpkg": release})})
        assert inspect_host.lacking({"dpkg": version}, plan.releases()) == others
        rows = [(drift.what, drift.expected, drift.found) for drift in drifts(plan, seen(plan), {})]
        assert rows == [(f"package {name}", release, version) for name in others]


@pytest.mark.parametrize(
    ("state", "rate", "found"),
    [
        ("4: ACTIVE\n", "400 Gb/sec (4X NDR)\n", None),
        ("4: ACTIVE\n", "100 Gb/sec (1X NDR)\n", "ACTIVE, 100 Gb/s"),
        ("1: DOWN\n", "10 Gb/sec (4X SDR)\n", "DOWN, 10 Gb/s"),
        (None, None, "missing"),
    ],
)
def test_a_link_that_is_down_or_slow_is_found(
    tmp_path: Path, state: str | None, rate: str | None, found: str | None
) -> None:
    """The kernel's own files of a port, as it writes them."""
    if state is not None and rate is not None:
        port = tmp_path / "mlx5_0" / "ports" / "1"
        port.mkdir(parents=True)
        (port / "state").write_text(state)
        (port / "rate").write_text(rate)
    links = {"mlx5_0": inspect_host.link("mlx5_0", str(tmp_path))}
    model = NodeModel.model_validate({"nics": [{"name": "mlx5_0", "kind": "compute", "speed": "400Gb/s"}]})
    plan = HostPlan("n1", "10.0.0.1")
    rows = drifts(plan, {**seen(plan), "links": links}, {}, model)
    assert [(row.what, row.expected, row.found) for row in rows] == (
        [("link mlx5_0", "ACTIVE, 400 Gb/s", found)] if found else []
    )


def test_a_host_says_what_it_has_of_its_links() -> None:
    plan = HostPlan("n1", "10.0.0.1")
    assert seen(plan, ["no_such_port"])["links"] == {"no_such_port": None}


def test_a_host_that_does_not_answer_is_unreachable() -> None:
    plan = HostPlan("n1", "10.0.0.1")
    rest = {"foreign": [], "not_judged": list(NOT_JUDGED)}
    assert status_of(plan, refuse("no route"), {}, NodeModel()).as_json() == {
        "state": "unreachable",
        "drift": [],
        **rest,
        "reason": "no route",
    }
    assert status_of(plan, seen(plan), {}, NodeModel()).as_json() == {"state": "ok", "drift": [], **rest}
