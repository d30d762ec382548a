"""Suites: the file, the order of runs, a client that is killed, the report, and running until it is proven."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.prove.suite_file import parse_suite
from podwright.prove.suite_folder import CellKey, SuiteFolder, known_suite
from podwright.prove.suites import in_turn, lay_out
from podwright.runs import Home
from podwright.spec.problems import Refusal

Write = Callable[..., Path]
CLIENT = "import sys; from podwright.cli.main import main; sys.exit(main())"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    return Home.open(tmp_path / "home")


@pytest.fixture
def write(tmp_path: Path, home: Home) -> Write:
    """Writes a suite with its workloads, each by name and command."""

    def make(fields: str, **commands: str) -> Path:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        for name, command in commands.items():
            (folder / f"{name}.yaml").write_text(f"name: {name}\ncommand: {json.dumps(command)}\n")
        path = folder / "suite.yaml"
        path.write_text(f"name: night\nworkloads: [{', '.join(f'{name}.yaml' for name in commands)}]\n{fields}\n")
        return path

    return make


def problems(text: str) -> list[str]:
    with pytest.raises(Refusal) as refusal:
        parse_suite(text, "suite.yaml")
    return str(refusal.value).splitlines()


def test_what_is_wrong_with_a_file_is_said_with_its_place() -> None:
    text = "name: Night\nworkloads: [a.yaml, a.yaml]\nrepeats: 0\nordr: alternate\nruntimes: [jail]\n"
    assert problems(text) == [
        'suite.yaml:1:7: name: "Night" is not a name',
        "suite.yaml:2:21: workloads[1]: is listed twice",
        "suite.yaml:3:10: repeats: must be a whole positive number",
        "suite.yaml:4:1: ordr: unknown field",
        'suite.yaml:5:12: runtimes[0]: "jail" is not a runtime',
        "",
        "hint: a name is lower-case letters, digits and dashes, starts with a letter, and has at most 40 of them",
        "hint: take one out; `repeats` says how often a cell is run",
        "hint: ordr: did you mean `order`?",
        "hint: runtime is one of bare, container",
    ]
    assert (
        "images: mean nothing to `runtimes: bare`"
        in problems("name: n\nworkloads: [a.yaml]\nimages: [i]\nruntimes: [bare]")[0]
    )
    assert problems("name: n\nworkloads: []")[0].startswith("suite.yaml:2:12: workloads: ")
    assert problems("")[0] == "suite.yaml: is empty"


def test_the_matrix(write: Write) -> None:
    path = write("targets: [local]\nsizes: [1, 2]", toy="true", other="true")
    plan = lay_out(parse_suite(path.read_text(), str(path)), path)
    assert [key.name for key in plan.cells] == [
        "toy/local/bare/1",
        "toy/local/bare/2",
        "other/local/bare/1",
        "other/local/bare/2",
    ]
    assert [workload.nodes for workload in plan.cells.values()] == [1, 2, 1, 2]


def test_two_workloads_of_one_name(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("repeats: 1", toy="true", other="true")
    (path.parent / "other.yaml").write_text("name: toy\ncommand: 'true'\n")
    assert main(["bench", "run", str(path)]) == 2
    assert "workloads: other.yaml and toy.yaml are both named toy" in capsys.readouterr().err


def test_cells_that_are_left_out(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("sizes: [1, 2]\nexclude: [{workload: toy, size: 2}]", toy="true", other="true")
    plan = lay_out(parse_suite(path.read_text(), str(path)), path)
    assert [key.name for key in plan.cells] == ["toy/local/bare/1", "other/local/bare/1", "other/local/bare/2"]
    path = write("exclude: [{target: local}]", toy="true")
    assert main(["bench", "run", str(path)]) == 2
    assert "exclude: leaves no cell to run" in capsys.readouterr().err


def test_cells_take_turns_and_one_that_lags_catches_up_first() -> None:
    a, b = CellKey("a", "local", "bare", 1), CellKey("b", "local", "bare", 1)
    assert list(in_turn({a: 2, b: 2}, "alternate")) == [a, b, b, a]
    assert list(in_turn({a: 1, b: 3}, "alternate")) == [b, b, a, b]
    assert list(in_turn({a: 2, b: 1}, "blocks")) == [a, a, b]
    assert list(in_turn({a: 0, b: 0}, "alternate")) == []


def test_a_suite_from_start_to_report(home: Home, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("repeats: 2\nwarmup: 1", quick="sleep 0.05", slow="sleep 0.2")
    assert main(["bench", "run", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["suite"] == "night"
    assert [(cell["workload"], cell["runtime"], cell["size"], cell["n"]) for cell in document["cells"]] == [
        ("quick", "bare", 1, 2),
        ("slow", "bare", 1, 2),
    ]
    folder = known_suite(home, "night")
    trials = folder.trials()
    assert [(trial.key.workload, trial.warmup) for trial in trials] == [
        ("quick", True),
        ("slow", True),
        ("quick", False),
        ("slow", False),
        ("slow", False),
        ("quick", False),
    ]
    # Complete: nothing is run again, until a new round is asked for.
    assert main(["bench", "run", str(path)]) == 0
    assert len(folder.trials()) == 6
    assert main(["bench", "run", str(path), "--again"]) == 0
    assert (len(folder.trials()), folder.round()) == (12, 2)
    page = (folder.path / "report.html").read_text()
    assert "No cell is shown to differ. Of 1 comparison 1 not proven; 2 cells, 4 runs that count." in page
    assert "By workload" in page
    assert page.count('class="strip-dot"') == 4
    capsys.readouterr()
    assert main(["compare", "night/quick", "night@1/slow", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["n"] == [2, 2]
    assert main(["compare", "night/bare", "night/slow"]) == 2
    assert "may be any of quick/local/bare/1, slow/local/bare/1" in capsys.readouterr().err


def test_the_page_says_where_the_time_went(home: Home, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """Shares of what the program tells, which sum to the whole; a cell that tells nothing has no line."""
    told = 'echo \'{"podwright": {"step": 1, "input_s": 0.1, "compute_s": 0.25, "compile_s": 0.05}}\''
    path = write("repeats: 2", tells=told, silent="true")
    assert main(["bench", "run", str(path)]) == 0
    page = (known_suite(home, "night").path / "report.html").read_text()
    section = page.split('id="shares"')[1].split("</section>")[0]
    assert [share for share in ("25.0%", "62.5%", "12.5%") if f">{share}<" in section] == ["25.0%", "62.5%", "12.5%"]
    assert "tells/local/bare/1" in section
    assert "silent/local" not in section
    assert 'x="25.0%" width="62.5%"' in section


def test_a_cell_that_fails_is_left_and_tried_the_next_time(
    home: Home, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("repeats: 2", good="true", bad="false")
    assert main(["bench", "run", str(path), "--json"]) == 1
    cells = {cell["workload"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert (cells["good"]["n"], cells["bad"]["n"], cells["bad"]["failed"]) == (2, 0, 1)
    (path.parent / "bad.yaml").write_text("name: bad\ncommand: 'true'\n")
    assert main(["bench", "run", str(path), "--json"]) == 0
    cells = {cell["workload"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert (cells["good"]["n"], cells["bad"]["n"]) == (2, 2)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass within a minute")


def test_a_killed_client_repeats_no_finished_run(home: Home, write: Write) -> None:
    path = write("repeats: 2", a="sleep 0.3", b="sleep 0.3")
    folder = SuiteFolder(home.path / "suites" / "night")
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, "bench", "run", str(path)],
        env=os.environ | {"PODWRIGHT_HOME": str(home.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: len([trial for trial in folder.trials() if trial.state]) >= 1 and len(folder.trials()) >= 2)
    client.send_signal(signal.SIGKILL)
    client.wait()
    finished = {trial.run for trial in folder.trials() if trial.state}
    assert finished
    assert main(["bench", "run", str(path)]) == 0
    trials = folder.trials()
    counted = [trial.run for trial in trials if trial.counts]
    assert len(counted) == len(set(counted)) == 4
    assert finished <= set(counted)
    # What was in flight went on without its client and counts too, unless it had not become a run yet.
    assert [trial.state for trial in trials if not trial.counts] in ([], ["never started"])


def test_two_clients_do_not_measure_each_other(home: Home, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    from podwright.prove.suites import alone

    path = write("repeats: 1", toy="true")
    with alone(SuiteFolder(home.path / "suites" / "night")):
        assert main(["bench", "run", str(path)]) == 2
    assert "is being run by another client" in capsys.readouterr().err


def test_cells_are_run_until_the_rule_decides(home: Home, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("repeats: 2", quick="sleep 0.02", slow="sleep 2")
    assert main(["bench", "run", str(path)]) == 0
    capsys.readouterr()
    asked = ["compare", "night/quick", "night/slow", "--until", "proven", "--limit", "8", "--json"]
    assert main(asked) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "different"
    assert document["n"][0] >= 4
    assert document["n"][0] == document["n"][1]


def test_runs_are_started_again_until_the_rule_decides(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the code that they had: it is changed and its folder gone meanwhile."""
    code = tmp_path / "code"
    code.mkdir()
    ids = []
    for name, seconds in (("quick", 0.02), ("slow", 2.0)):
        (code / "wait.py").write_text(f"import time\ntime.sleep({seconds})\n")
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"name: {name}\ncode: code\ncommand: python3 wait.py\n")
        assert main(["run", str(path), "--repeat", "2", "--detach"]) == 0
        ids.append(capsys.readouterr().out.split()[-1])
        assert main(["wait", ids[-1]]) == 0
    (code / "wait.py").unlink()
    code.rmdir()
    capsys.readouterr()
    assert main(["compare", *ids, "--until", "proven", "--limit", "8", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "different"
    assert document["n"][0] == document["n"][1] >= 4
    assert [len(side["added"]) for side in document["sides"]] == [n - 2 for n in document["n"]]
    assert document["causes"][0]["what"] in ("snapshot", "compute_s", "CPU cores in use")


def test_how_a_workload_scales(home: Home, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("", toy="sleep 0.1")
    asked = ["bench", "scale", str(path.parent / "toy.yaml"), "--sizes", "2,1", "--repeats", "2"]
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], [row["size"] for row in document["sizes"]]) == ("strong", [1, 2])
    first, second = document["sizes"]
    assert (first["efficiency"], first["efficiency_interval"]) == (1.0, None)
    assert second["efficiency"] == pytest.approx(first["median_s"] / second["median_s"] / 2)
    assert second["fitted_s"] == pytest.approx(second["median_s"])
    assert main(asked) == 0
    assert "strong scaling on local" in capsys.readouterr().out
    assert main([*asked, "--metric", "epoch_s"]) == 1
    assert "no run has succeeded and reported epoch_s" in capsys.readouterr().err
    assert main([*asked, "--sizes", "1,x"]) == 2
    assert "--sizes: '1,x' are no numbers of nodes" in capsys.readouterr().err


def test_names_that_are_no_suite(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for ref in ("night/toy", "../etc/passwd", "night@x/toy"):
        assert main(["compare", ref, ref]) == 2
        assert "there is no suite" in capsys.readouterr().err
