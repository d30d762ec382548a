"""Every command over a home with many damaged runs: good ones answer as before, nothing hangs, nothing is our fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.runs import Home
from tests.fixtures.bad_runs import BAD, add_run, bad_home, call
from tests.unit.engines.kubernetes.small_cluster import small_cluster
from tests.unit.launch.test_bad_runs import DAMAGES, EVENTS, append, as_folder, as_pipe

__all__ = ["bad_home"]

Answers = dict[tuple[str, ...], tuple[int, str]]
ENDS = (0, 1, 2, 3, 4)
"""Exit codes with words; 70 is a fault of ours."""
PATIENCE_S = 300
"""A command that takes longer hangs."""
POD = """\
name: far
nodes: [{hosts: "n[1-2]", model: dgx-a100}]
schedulers: [{kind: kubernetes, kubeconfig: KUBECONFIG}]
"""
SITE = {"namespace": "lab", "kind": "Job", "claim": None, "payload": {}, "code": [], "image": "x", "uid": None}


def far(site: object) -> Callable[[Path], None]:
    """A run that is on a Kubernetes which knows nothing of it, with this in place of what tells where it is."""

    def damage(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "target": "far:kubernetes"}))
        (folder / "job" / "site.json").write_text(json.dumps(site))
        (folder / "spec").mkdir(exist_ok=True)
        (folder / "spec" / "pod.yaml").write_text(POD.replace("KUBECONFIG", str(folder.parent.parent / "kubeconfig")))
        lines = (folder / EVENTS).read_text().splitlines()
        (folder / EVENTS).write_text("\n".join(lines[:-1]) + "\n")

    return damage


def results(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / "results").mkdir()
        as_pipe(f"results/{name}")(folder)

    return damage


MORE: dict[str, Callable[[Path], None]] = {
    "metrics that are a pipe": as_pipe("record/n0.r0/metrics.jsonl"),
    "a log that is a pipe": as_pipe("record/n0.r0/merged.log"),
    "engine.jsonl that is a pipe": as_pipe("engine.jsonl"),
    "client.jsonl that is a pipe": as_pipe("client.jsonl"),
    "an order that is no JSON": append("job/order.json", "{"),
    "a report that is a folder": as_folder("report.html"),
    "a record.json that is a list": append("record.json", "[]"),
    "results that are a pipe": results("iou.json"),
    "a far run": far(SITE),
    "a far run whose place is not known": far({}),
    "a far run whose place is no object": far([]),
    "a far run of an odd kind": far({**SITE, "kind": "ships"}),
    "a far run with a namespace that is none": far({**SITE, "namespace": 7}),
}
ALL = {**DAMAGES, **MORE}
GOOD = ("good-2222", "good-3333", "sweep-4444", "sweep-4444-1")
ANSWERS = (
    *(("show", run, "--json") for run in GOOD),
    *(("wait", run, "--timeout", "9s", "--json") for run in GOOD),
    ("logs", "good-2222"),
    ("logs", "sweep-4444-1", "--json"),
    ("cancel", "good-2222"),
    ("report", "good-2222"),
    ("report", "good-2222", "good-3333"),
)
OF_ONE = (("show",), ("show", "--json"), ("logs",), ("pull",), ("attach",), ("report",), ("wait", "--timeout", "0s"))
"""What is asked of each bad run."""
OF_ALL = (
    ("ps",),
    ("ps", "--all", "--json"),
    ("top", "--once"),
    ("top", "--json"),
    ("rebuild",),
    ("prune", "--older", "0s", "--dry-run"),
    ("prune", "--older", "0s", "--dry-run", "--checkpoints"),
    ("waste",),
)


def bad_id(number: int) -> str:
    return f"{BAD}{number:02d}"


@pytest.fixture
def answers(bad_home: Home) -> Iterator[Answers]:
    """What is said of the good runs while all is well; then the bad ones come."""
    for words in ANSWERS:
        call(*words)  # a first report makes a run's folder larger
    before = {words: call(*words)[:2] for words in ANSWERS}
    with small_cluster() as cluster:
        (bad_home.path / "kubeconfig").write_text(cluster.kubeconfig)
        for number, damage in enumerate(ALL.values()):
            damage(add_run(bad_home, bad_id(number)))
        yield before


def check(code: int, err: str, *what: object) -> None:
    assert code in ENDS, (what, err)
    assert "Traceback" not in err, (what, err)


def test_every_command_on_every_bad_run_ends_with_words(bad_home: Home, answers: Answers, tmp_path: Path) -> None:
    for number, name in enumerate(ALL):
        for command, *options in OF_ONE:
            more = ["--to", str(tmp_path / "pulled")] if command == "pull" else []
            code, _, err = call(command, bad_id(number), *options, *more)
            check(code, err, name, command)
        code, _, err = call("report", bad_id(number), "good-2222")
        check(code, err, name, "comparison")
    for words, answer in answers.items():
        assert call(*words)[:2] == answer, words


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a user does."""
    program = "import sys; from podwright.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(
        command, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
    )


@pytest.mark.slow
def test_one_round_of_processes_over_all_of_them(bad_home: Home, answers: Answers, tmp_path: Path) -> None:
    bad = [bad_id(number) for number in range(len(ALL))]
    for words in OF_ALL:
        done = run(*words)
        check(done.returncode, done.stderr, words)
        assert done.returncode == 0, (words, done.stderr)
    for number, (command, *options) in enumerate(OF_ONE):
        more = ["--to", str(tmp_path / "pulled")] if command == "pull" else []
        done = run(command, bad[number], *options, *more)
        check(done.returncode, done.stderr, command)
    done = run("report", *bad, "good-2222")
    check(done.returncode, done.stderr, "comparison of all")
    for words in (("wait", *bad, "--timeout", "0s"), ("cancel", *bad)):
        done = run(*words)
        check(done.returncode, done.stderr, words[0])
    listed = {row["id"]: row["state"] for row in json.loads(run("ps", "--all", "--json").stdout)}
    assert {run_id: listed.get(run_id) for run_id in ("good-2222", "good-3333", "sweep-4444")} == {
        "good-2222": "succeeded",
        "good-3333": "failed",
        "sweep-4444": "succeeded",
    }
    for words in ANSWERS[::3]:
        done = run(*words)
        assert (done.returncode, done.stdout) == answers[words], words


def test_every_bad_run_can_be_removed_and_what_may_remain_is_said(bad_home: Home, answers: Answers) -> None:
    may_remain = set()
    for number, name in enumerate(ALL):
        code, _, err = call("rm", "--yes", bad_id(number))
        check(code, err, name)
        if name == "a far run":
            assert code == 2, "nobody knows whether it goes on"
            continue
        assert (code, (bad_home.runs / bad_id(number)).exists()) == (0, False), (name, err)
        if "what it left on far:kubernetes may still be there: job/site.json cannot be read: " in err:
            may_remain.add(name)
    assert may_remain == {name for name in MORE if name.startswith("a far run ")}
