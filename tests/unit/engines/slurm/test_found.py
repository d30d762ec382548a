"""Runs that lie in a user's folder on a cluster, where each of their ranks may have written whatever it likes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.ssh import Answer, reach_to
from podwright.engines.found import FoundRun
from podwright.engines.site import SITE
from podwright.engines.slurm.found import found_runs
from podwright.engines.slurm.queue import QueueRow
from podwright.spec.problems import Refusal
from tests.unit.runs.made import asked


class There:
    """A cluster that is a folder of this machine, reached as one that is far away."""

    is_here = False

    def call(self, argv: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        return reach_to(None, None).call(argv, stdin, env)


def add(folder: Path, run_id: str, **changes: Any) -> Path:
    run = folder / "runs" / run_id
    (run / "job").mkdir(parents=True)
    row = {**asked(run_id, engine="slurm", **changes).as_json()}
    (run / "run.json").write_text(json.dumps(row))
    (run / "job" / "site.json").write_text(json.dumps({"folder": "/elsewhere", "step": ["--overlap"], "wrap": []}))
    (run / "owner").symlink_to("70")
    return run


def found(folder: Path, *ids: str, queue: Mapping[str, Sequence[QueueRow]] | None = None) -> dict[str, FoundRun]:
    runs = found_runs(There(), sys.executable, str(folder), ids, queue or {})  # type: ignore[arg-type]
    return {run.asked.id: run for run in runs}


def ended(run: Path, state: object) -> None:
    (run / "lease").mkdir()
    (run / "lease" / "ended").write_text(json.dumps({"state": state}))


def test_a_run_is_as_far_as_the_queue_or_its_pilots_say(tmp_path: Path) -> None:
    ended(add(tmp_path, "over-2222"), "succeeded")
    ended(add(tmp_path, "odd-2222"), ["succeeded"])
    (add(tmp_path, "stopped-2222") / "cancelled").touch()
    add(tmp_path, "works-2222")
    add(tmp_path, "sweep-2222", points=2)
    for index in range(2):
        add(tmp_path, f"sweep-2222-{index + 1}", parent="sweep-2222", index=index)
    queue = {
        "works-2222": [QueueRow("71", "71", "RUNNING", "None", "", "works-2222")],
        "sweep-2222-2": [QueueRow("72_2", "72", "PENDING", "Resources", "", "sweep-2222-2")],
    }
    runs = found(tmp_path, queue=queue)
    assert {name: (run.state, run.handle) for name, run in runs.items()} == {
        "over-2222": ("succeeded", "70"),
        "odd-2222": ("ended", "70"),
        "stopped-2222": ("cancelled", "70"),
        "works-2222": ("running", "71"),
        "sweep-2222": ("pending", "72"),
    }
    assert list(found(tmp_path, "sweep-2222-1", "gone-2222")) == ["sweep-2222-1"]


def test_a_run_lies_where_we_looked_whatever_its_own_file_says(tmp_path: Path) -> None:
    run = add(tmp_path, "toy-2222")
    site = json.loads(found(tmp_path)["toy-2222"].files[SITE])
    assert site == {"folder": str(tmp_path), "step": ["--overlap"], "wrap": []}
    (run / "job" / "site.json").write_text('{"step": "--all", "wrap": {"a": 1}}')
    site = json.loads(found(tmp_path)["toy-2222"].files[SITE])
    assert site == {"folder": str(tmp_path), "step": [], "wrap": []}


FORGED = {
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "torn": lambda path: path.write_text('{"id": "toy-22'),
    "no object": lambda path: path.write_text("[]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "too long": lambda path: path.write_text(json.dumps({"id": "toy-2222", "name": "x" * (5 << 20)})),
    "another's": lambda path: path.write_text(json.dumps(asked("other-2222", engine="slurm").as_json())),
    "another engine's": lambda path: path.write_text(json.dumps(asked("toy-2222", engine="local").as_json())),
    "of a parent that is no id": lambda path: path.write_text(
        json.dumps(asked("toy-2222", engine="slurm", parent="../../x").as_json())
    ),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_ranks_forge_is_no_run(tmp_path: Path, forged: str) -> None:
    path = add(tmp_path, "toy-2222") / "run.json"
    add(tmp_path, "whole-2222")
    path.unlink()
    FORGED[forged](path)
    assert list(found(tmp_path)) == ["whole-2222"]
    assert list(found(tmp_path, "toy-2222")) == []


def test_an_owner_that_is_no_job_is_none(tmp_path: Path) -> None:
    run = add(tmp_path, "toy-2222")
    (run / "owner").unlink()
    (run / "owner").symlink_to("--me")
    assert found(tmp_path)["toy-2222"].handle == ""


def test_a_folder_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    assert found(tmp_path / "none") == {}
    with pytest.raises(Refusal, match="cannot be listed: "):
        list(found_runs(There(), "/bin/false", str(tmp_path), (), {}))  # type: ignore[arg-type]
