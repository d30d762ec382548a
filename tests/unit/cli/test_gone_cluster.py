"""A cluster that is gone: what is here is shown, with the moment since when it is silent; a person's word ends it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.lab import home as lab_home
from podwright.launch import Session, find, pods
from podwright.runs import Home
from tests.unit.runs.made import asked, end, go, result, write_lines

Call = Callable[..., tuple[int, str, str]]
POD = """\
name: far
nodes: [{{hosts: "n[1-2]", model: dgx-a100}}]
schedulers: [{{kind: slurm, login: far, ssh_config: {config}}}]
"""
CONFIG = """\
Host far
    HostName 127.0.0.1
    Port {port}
    BatchMode yes
    ConnectTimeout 2
"""
RUN = "toy-2222"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    def run(*args: str) -> tuple[int, str, str]:
        code = main(list(args))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A run that was at work on a cluster when that went away: a port is bound, and nobody listens on it."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        (tmp_path / "config").write_text(CONFIG.format(port=closed.getsockname()[1]))
    (tmp_path / "far.yaml").write_text(POD.format(config=tmp_path / "config"))
    made = Home.open(tmp_path / "home")
    pods.add(made, tmp_path / "far.yaml")
    site = json.dumps({"folder": "/scratch/u", "step": [], "wrap": []}).encode()
    spec = {"spec/pod.yaml": made.store((pods.folder(made) / "far.yaml").read_bytes(), "pod.yaml")}
    folder = made.create(asked(RUN, target="far", engine="slurm"), {"job/site.json": site}, spec)
    write_lines(folder.path / "client.jsonl", {"t": 1.0, "k": "submitted", "handle": "70"})
    write_lines(folder.record_path / "n0.r0" / "events.jsonl", go(), result(2.0, loss=0.5))
    (folder.record_path / "n0.r0" / "merged.log").write_text("1700000002.0 0 o step 1\n")
    return made


SINCE = "far has not answered since "


def test_what_is_here_is_shown(home: Home, call: Call) -> None:
    code, out, _ = call("ps")
    assert code == 0
    assert "not answered since " in out
    code, out, _ = call("show", RUN)
    assert (code, "starting" in out, SINCE in out) == (0, True, True)
    code, out, err = call("logs", RUN)
    assert (code, "step 1" in out, SINCE in err) == (0, True, True)
    code, out, err = call("report", RUN)
    assert (code, out.strip().endswith("report.html"), SINCE in err) == (0, True, True)
    assert not home.folder(RUN).is_sealed


def test_only_a_persons_word_removes_it(home: Home, call: Call) -> None:
    code, _, err = call("rm", RUN)
    assert code == 2
    assert SINCE in err
    assert f"`podwright rm --yes {RUN}` removes what is here, and leaves what is there" in err
    assert home.has(RUN)
    code, _, err = call("rm", "--yes", RUN)
    assert code == 0
    assert f"removed   {RUN}" in err
    assert f"left      far may have the folder of {RUN}, and run it under the name 70" in " ".join(err.split("\n"))
    assert not Home.open(home.path).has(RUN)


def test_who_forgets_the_pod_gives_its_runs_up(home: Home, call: Call) -> None:
    code, _, err = call("pod", "forget", "far")
    assert code == 0
    assert f"far may have the folder of {RUN}" in err
    code, out, _ = call("show", "--json", RUN)
    shown = json.loads(out)
    assert (code, shown["state"]) == (0, "lost")
    assert shown["reason"].startswith(f"the pod far was forgotten; {SINCE}")
    assert home.folder(RUN).is_sealed


def test_the_runs_of_a_lab_that_was_taken_down_are_lost(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = tmp_path / "podwright-20001" / RUN / "n0.r0"
    other = tmp_path / "podwright-20001" / "other-2222"
    scratch.mkdir(parents=True)
    other.mkdir()
    assert lab_home.lose_runs("far") == [RUN]
    record = find(Session(home), RUN).record()
    assert (record.state, record.reason) == ("lost", "its lab was taken down")
    assert (home.folder(RUN).is_sealed, scratch.exists(), other.exists()) == (True, False, True)
    assert lab_home.lose_runs("far") == []


def test_what_a_run_that_ended_left_on_the_nodes_of_a_lab_goes_with_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = tmp_path / "podwright-20001" / RUN
    scratch.mkdir(parents=True)
    write_lines(home.folder(RUN).record_path / "n0.r0" / "events.jsonl", end())
    assert lab_home.lose_runs("far") == []
    assert not scratch.exists()


def test_a_sweep_of_a_lab_that_was_taken_down_is_listed_as_lost(home: Home) -> None:
    home.create(asked("sw-2222", target="far", engine="slurm", points=2), {}, {})
    for index in range(2):
        home.create(asked(f"sw-2222-{index + 1}", target="far", engine="slurm", parent="sw-2222", index=index), {}, {})
    home.sync()
    assert sorted(lab_home.lose_runs("far")) == ["sw-2222", RUN]
    known = {record.id: record.state for record in home.index.latest(None)}
    assert known == {"sw-2222": "lost", RUN: "lost"}
