"""The commands on real runs of the local engine: what is on stdout, what on stderr, and the exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main

KEYS = {
    *("id", "name", "parent", "matrix", "target", "state", "reason", "exit_code", "attempts", "nodes", "hosts"),
    *(
        "world_size",
        "created_at",
        "started_at",
        "ended_at",
        "duration_s",
        "time_to_train_s",
        "results",
        "cost",
        "folder",
    ),
}
TELL = """
echo '{"podwright": {"epoch": 1, "epochs": 1, "loss": 0.25}}'
echo rank $RANK
mkdir -p $PODWRIGHT_FOLDER/results
echo kept > $PODWRIGHT_FOLDER/results/model
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for all runs of this file; what still runs in it at the end is cancelled and waited for."""
    path = tmp_path_factory.mktemp("home")
    before = os.environ.get("PODWRIGHT_HOME")
    os.environ["PODWRIGHT_HOME"] = str(path)
    try:
        yield path
        _end_all()
    finally:
        os.environ.pop("PODWRIGHT_HOME")
        if before is not None:
            os.environ["PODWRIGHT_HOME"] = before


def _end_all() -> None:
    from podwright import launch
    from podwright.runs import Home

    opened = Home.open()
    for record in launch.recent(launch.Session(opened), limit=None):
        if not record.is_final:
            run = launch.find(launch.Session(opened), record.id)
            run.cancel()
            assert run.wait(60).is_final


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Workloads that take no time, one that fails, one that only an order ends."""
    folder = tmp_path_factory.mktemp("workloads")
    commands = {"good": TELL, "bad": "echo before; echo broken >&2; exit 3", "long": "exec sleep 600"}
    for name, script in commands.items():
        text = {"name": name, "command": ["sh", "-c", script], "nodes": 1, "ranks_per_node": 2, "grace": "1s"}
        (folder / f"{name}.yaml").write_text(json.dumps(text))
    return {name: str(folder / f"{name}.yaml") for name in commands}


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line; gives its exit code, stdout and stderr."""

    def run(*args: str) -> tuple[int, str, str]:
        code = main(list(args))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def good(home: Path, files: dict[str, str]) -> str:
    """The id of a run that succeeded."""
    return _started(files["good"], "succeeded")


@pytest.fixture(scope="module")
def bad(home: Path, files: dict[str, str]) -> str:
    """The id of a run that failed."""
    return _started(files["bad"], "failed")


def _started(path: str, state: str) -> str:
    from podwright import launch, spec

    run = launch.start(launch.Session.open(), spec.load_workload(Path(path)))
    assert run.wait(60).state == state
    return run.id


@pytest.mark.usefixtures("home")
def test_run_follows_to_the_end(call: Run, files: dict[str, str]) -> None:
    code, out, err = call("run", files["good"])
    assert (code, out) == (0, "rank 0\n")
    words = [line.split()[0] for line in err.splitlines() if not line.startswith(" ")]
    assert words == ["run", "joined", "succeeded", "report", "next"]
    report = re.search(r"^report    file://(.*)$", err, re.MULTILINE)
    assert report is not None
    assert Path(report[1]).read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("home")
def test_run_prints_one_document_with_json(call: Run, files: dict[str, str]) -> None:
    code, out, _ = call("run", files["bad"], "--json")
    document = json.loads(out)
    assert (code, document["state"]) == (1, "failed")
    assert set(document) >= KEYS


@pytest.mark.usefixtures("home")
def test_a_failed_run_shows_who_failed_and_its_last_lines(call: Run, files: dict[str, str]) -> None:
    code, out, err = call("run", files["bad"], "--rank", "all")
    assert code == 1
    # One rank may be stopped before it has said anything, since the other failed.
    assert {line.split("] ")[1] for line in out.splitlines()} == {"before", "broken"}
    rank = re.search(r"^failed    rank (\d) on \S+ exited with 3 after ", err, re.MULTILINE)
    assert rank is not None
    name = err.split()[1]
    assert "\n          before\n          broken\n" in err
    assert f"\nlog       podwright logs {name} --rank {rank[1]}\n" in err


@pytest.mark.usefixtures("home")
def test_detached_run_is_cancelled_waited_for_and_removed(call: Run, files: dict[str, str]) -> None:
    code, out, err = call("run", files["long"], "--detach")
    name = out.strip()
    assert (code, re.fullmatch(r"long-\w{4}", name) is not None) == (0, True)
    assert err.endswith(f"next      podwright attach {name}\n")
    code, out, err = call("rm", name)
    assert (code, out) == (2, "")
    assert re.match(rf"{name}: is \w+; only runs that have ended are removed\n", err)
    code, out, _ = call("wait", name, "--timeout", "10ms", "--json")
    assert (code, json.loads(out)["state"] in ("pending", "starting", "running")) == (1, True)
    assert call("cancel", name)[0] == 0
    code, out, err = call("wait", name)
    assert (code, out) == (4, "")
    assert err.startswith(f"cancelled {name} after ")
    assert call("cancel", name) == (0, "", f"cancelled {name} had ended before\n")
    question = f"Remove {name} with logs, results and checkpoints? Nobody can be asked here"
    assert call("rm", name) == (2, "", f"--yes: {question}\n\nhint: say --yes\n")
    assert call("show", name)[0] == 0
    assert call("rm", name, "--yes") == (0, "", f"removed   {name}\n")
    assert call("show", name) == (2, "", f"there is no run '{name}'\n\nhint: `podwright ps --all` lists them\n")


def test_wait_for_several_gives_the_worst_code(call: Run, good: str, bad: str) -> None:
    code, out, err = call("wait", good, bad, "--json")
    assert code == 1
    assert [document["state"] for document in json.loads(out)] == ["succeeded", "failed"]
    assert err.startswith(f"succeeded {good} loss 0.25 in ")


@pytest.mark.usefixtures("home")
def test_wait_refuses_a_time_without_unit(call: Run, good: str) -> None:
    code, out, err = call("wait", good, "--timeout", "5")
    assert (code, out) == (2, "")
    assert err.startswith('--timeout: "5"')


def test_ps_lists_runs(call: Run, good: str) -> None:
    code, out, err = call("ps")
    assert (code, err) == (0, "")
    assert out.startswith("RUN ")
    assert re.search(rf"^{good}  +succeeded  +local  +1 .* loss 0.25$", out, re.MULTILINE)
    (listed,) = (record for record in json.loads(call("ps", "--all", "--json")[1]) if record["id"] == good)
    assert set(listed) >= KEYS


def test_show_prints_facts(call: Run, good: str) -> None:
    code, out, err = call("show", good)
    assert (code, err) == (0, "")
    words = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert words == ["run", "succeeded", "target", "nodes", "times", "results", "folder", "command", "goodput", "size"]
    assert json.loads(call("show", good, "--json")[1])["id"] == good


def test_show_of_a_failed_run_says_why(call: Run, bad: str) -> None:
    code, out, _ = call("show", bad)
    assert code == 0
    assert "\n          before\n          broken\n" in out


def test_attach_to_a_run_that_has_ended(call: Run, good: str) -> None:
    code, out, err = call("attach", good)
    assert (code, out) == (0, "")
    assert err.splitlines()[0] == f"run       {good} on local: 1 node x 2 ranks, ranks"


def test_logs(call: Run, good: str) -> None:
    code, out, err = call("logs", good, "--grep", "rank")
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == ["[0] rank 0", "[1] rank 1"]
    assert call("logs", good, "--rank", "1", "--grep", "rank") == (0, "rank 1\n", "")
    assert call("logs", good, "--node", "0", "--rank", "0", "--grep", "rank", "-f") == (0, "rank 0\n", "")


def test_logs_by_ranks_pattern_and_time(call: Run, good: str) -> None:
    assert sorted(call("logs", good, "--rank", "0-1", "--regex", "^rank [01]$")[1].splitlines()) == [
        "[0] rank 0",
        "[1] rank 1",
    ]
    assert len(call("logs", good, "--tail", "1")[1].splitlines()) == 1
    assert call("logs", good, "--tail", "0", "-f") == (0, "", "")
    assert call("logs", good, "--since", "1h", "--rank", "1", "--grep", "rank")[1] == "rank 1\n"
    assert re.fullmatch(r"\d\d:\d\d:\d\d rank 1\n", call("logs", good, "-t", "--rank", "1", "--grep", "rank")[1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rank", "1-0"), "--rank: {good} has no 1-0\n\nhint: it has 0 to 1\n"),
        (("--rank", "x"), '--rank: "x" names no ranks\n\nhint: write it like `0,3-5`\n'),
        (("--node", "5"), "--node: {good} has no node 5\n\nhint: they are "),
        (("--regex", "["), "--regex: is no regular expression: unterminated character set at position 0\n"),
        (("--regex", "a", "--grep", "a"), "--regex: goes without --grep\n\nhint: give one of the two\n"),
        (("--since", "soon"), '--since: "soon" is not a time'),
    ],
)
def test_logs_refuse_what_would_print_nothing(call: Run, good: str, words: tuple[str, ...], message: str) -> None:
    code, out, err = call("logs", good, *words)
    assert (code, out) == (2, "")
    assert err.startswith(message.format(good=good))


def test_logs_of_a_host_it_is_not_on(call: Run, good: str) -> None:
    code, _, err = call("logs", good, "--node", "nowhere")
    assert code == 2
    assert err.startswith(f"--node: {good} has no node nowhere\n\nhint: they are ")
    name = re.findall("they are (.*), or by number from 0 to 0", err)[0]
    assert call("logs", good, "--node", name)[:2] == call("logs", good, "--node", "0")[:2]


def test_runs_are_chosen(call: Run, good: str) -> None:
    state = json.loads(call("show", good, "--json")[1])["state"]
    for words in (("--state", state), ("--name", good.rpartition("-")[0]), ("--on", "local"), ("--since", "1d")):
        assert good in [row["id"] for row in json.loads(call("ps", *words, "--json")[1])]
    for words in (("--state", "pending"), ("--name", "no*"), ("--on", "nowhere")):
        assert good not in [row["id"] for row in json.loads(call("ps", *words, "--json")[1])]
    assert call("ps", "--state", "runing") == (
        2,
        "",
        '--state: "runing" is not a state\n\nhint: a state is one of pending, starting, running, succeeded, failed,'
        " cancelled, lost; did you mean `running`?\n",
    )


def test_logs_as_json(call: Run, good: str) -> None:
    (line,) = json.loads(call("logs", good, "--rank", "1", "--grep", "rank", "--json")[1])
    assert {**line, "t": 0} == {"t": 0, "node": 0, "rank": 1, "stream": "o", "text": "rank 1"}
    assert json.loads(call("logs", good, "--grep", "nowhere", "--json")[1]) == []


def test_logs_of_a_rank_there_is_not(call: Run, good: str) -> None:
    assert call("logs", good, "--rank", "2") == (2, "", f"--rank: {good} has no 2\n\nhint: it has 0 to 1\n")


def test_pull(call: Run, good: str, tmp_path: Path) -> None:
    code, out, err = call("pull", good, "results", "--to", str(tmp_path))
    assert (code, err) == (0, "")
    assert (Path(out.strip()) / "model").read_text() == "kept\n"
    code, out, err = call("pull", good, "nowhere")
    assert (code, out) == (2, "")
    assert err.startswith(f"{good} has no nowhere")


def test_pull_says_what_it_leaves_out(call: Run, good: str, tmp_path: Path) -> None:
    folder = Path(json.loads(call("show", good, "--json")[1])["folder"])
    (folder / "results" / "stolen\n").symlink_to("/etc/passwd")
    os.mkfifo(folder / "results" / "pipe")
    try:
        code, out, err = call("pull", good, "results", "--to", str(tmp_path))
        document = json.loads(call("pull", good, "results", "--to", str(tmp_path), "--json")[1])
    finally:
        (folder / "results" / "stolen\n").unlink()
        (folder / "results" / "pipe").unlink()
    copied = str(tmp_path / good / "results")
    assert (code, out) == (0, f"{copied}\n")
    assert err.splitlines() == [
        "left out  results/pipe: a pipe, no plain file",
        r"left out  results/stolen\n: a link that leads out of the run",
    ]
    assert document == {
        "copied": [copied],
        "left_out": [
            {"path": "results/pipe", "why": "a pipe, no plain file"},
            {"path": "results/stolen\n", "why": "a link that leads out of the run"},
        ],
    }


def test_report(call: Run, good: str, bad: str) -> None:
    code, out, err = call("report", good)
    assert (code, err) == (0, f"open      file://{out}")
    one, both = (json.loads(call("report", *runs, "--json")[1])["report"] for runs in ([good], [good, bad]))
    assert Path(one).is_file()
    assert Path(both).is_file()
    assert one != both


def test_rebuild(call: Run, good: str, bad: str) -> None:
    code, out, err = call("rebuild", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["runs"] >= 2
    assert call("show", good)[0] == 0


@pytest.mark.usefixtures("home")
def test_a_matrix_has_points(call: Run, tmp_path: Path) -> None:
    text = {"name": "sweep", "command": ["sh", "-c", "exit {matrix.code}"], "matrix": {"code": [0, 5]}}
    (tmp_path / "sweep.yaml").write_text(json.dumps(text))
    code, out, err = call("run", str(tmp_path / "sweep.yaml"), "--json")
    document = json.loads(out)
    assert (code, document["state"]) == (1, "failed")
    assert [point["matrix"] for point in document["points"]] == [{"code": 0}, {"code": 5}]
    assert re.search(r"^succeeded sweep-\w{4}-1 code=0: in ", err, re.MULTILINE)
    code, out, _ = call("show", document["id"])
    assert f"\n{document['id']}-2  failed " in out
    assert call("logs", document["id"])[0] == 2


@pytest.mark.usefixtures("home")
def test_render_prints_and_writes_the_same(call: Run, files: dict[str, str], tmp_path: Path) -> None:
    code, out, err = call("render", files["good"], "--json")
    rendered: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    text = call("render", files["good"])[1]
    assert text == "\n".join(f"# {name}\n{body.rstrip()}\n" for name, body in rendered.items())
    code, out, _ = call("render", files["good"], "--out", str(tmp_path / "job"))
    assert (code, out) == (0, "")
    assert {name: (tmp_path / "job" / name).read_text() for name in rendered} == rendered


def test_check_tells_all_problems_of_all_files(call: Run, files: dict[str, str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: x\ncommand: x\nnodez: 2\n")
    code, out, err = call("check", files["good"], str(wrong), str(tmp_path / "none.yaml"))
    assert (code, out) == (2, f"ok        {files['good']}: workload good\n")
    assert err.startswith(f"{wrong}:3:1: nodez: unknown field\n{tmp_path}/none.yaml: ")
    code, out, err = call("check", str(wrong), str(tmp_path / "none.yaml"), "--json")
    assert (code, err, len(json.loads(out)["errors"])) == (2, "", 2)
    answer = {"file": files["good"], "kind": "workload", "name": "good", "notes": [], "warnings": []}
    assert json.loads(call("check", files["good"], "--json")[1]) == [answer]


@pytest.mark.parametrize(("claim", "notes"), [("", 1), (", claim: runs", 0)])
def test_check_says_where_nothing_is_kept(call: Run, tmp_path: Path, claim: str, notes: int) -> None:
    pod = tmp_path / "pod.yaml"
    scheduler = f"{{kind: kubernetes, image: registry.example/base:1{claim}}}"
    pod.write_text(f'name: adas\nnodes: [{{hosts: "n[1-4]", model: dgx-a100}}]\nschedulers: [{scheduler}]\n')
    code, out, err = call("check", str(pod))
    assert (code, out) == (0, f"ok        {pod}: pod adas\n")
    assert err.count("note      kubernetes has no claim: of the files that ranks write") == notes
    assert len(json.loads(call("check", str(pod), "--json")[1])[0]["notes"]) == notes


def test_set_is_checked_like_the_file(call: Run, files: dict[str, str]) -> None:
    code, out, err = call("run", files["good"], "--set", "nodes=none")
    assert (code, out) == (2, "")
    assert err.startswith("--set: nodes: ")


@pytest.mark.parametrize("kind", ["pod", "workload"])
def test_schema(kind: str, call: Run) -> None:
    code, out, err = call("schema", kind)
    assert (code, err) == (0, "")
    assert json.loads(out)["type"] == "object"
    assert call("schema", kind, "--json")[1] == out


@pytest.mark.usefixtures("home")
def test_unknown_target_is_a_refusal(call: Run, files: dict[str, str]) -> None:
    code, out, err = call("run", files["good"], "--on", "nowhere")
    assert (code, out) == (2, "")
    assert "nowhere" in err


class Terminal:
    """A command on a terminal of 80 columns, typed at and read as a person would."""

    def __init__(self, *args: str) -> None:
        parent, child = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        command = [sys.executable, "-c", "import sys; from podwright.cli.main import main; sys.exit(main())", *args]
        self._program = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
        )
        os.close(child)
        self._terminal, self.seen = parent, ""

    def until(self, text: str) -> None:
        """Reads until the text was seen; fails with all that was seen when the command ends without it."""
        while text not in self.seen:
            assert self._read(), f"{text!r} was never shown: {self.seen}"

    def _read(self) -> bool:
        if not select.select([self._terminal], [], [], 60)[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.seen += data.decode()
        return bool(data)

    def press_ctrl_c(self) -> None:
        """Sends what a terminal sends to the command in front."""
        self._program.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Reads to the end and gives the exit code."""
        while self._read():
            pass
        os.close(self._terminal)
        return self._program.wait(60)


@pytest.mark.usefixtures("home", "interruptible")
def test_live_view_shows_nodes_and_ctrl_c_leaves_the_run_going(call: Run, files: dict[str, str]) -> None:
    terminal = Terminal("run", files["long"])
    terminal.until("cpu ")
    terminal.press_ctrl_c()
    code = terminal.end()
    name = re.search(r"long-\w{4}", terminal.seen)
    assert name is not None
    assert code == 130
    assert terminal.seen.splitlines()[-1] == f"podwright attach {name[0]}"
    assert terminal.seen.rindex("\x1b[?25h") > terminal.seen.rindex("\x1b[?25l"), "the cursor was left hidden"
    document = json.loads(call("show", name[0], "--json")[1])
    assert document["state"] in ("starting", "running")
    top = json.loads(call("top", "--json")[1])
    (row,) = (row for row in top if row["id"] == name[0])
    assert "cpu_percent" in row["node_values"][0]["values"]
    assert re.search(rf"^{name[0]} .*running\n  \S+  +\d+%", call("top", "--once")[1], re.MULTILINE)
    assert call("cancel", name[0])[0] == 0
    assert call("wait", name[0])[0] == 4


def test_removal_asks_a_person(good: str, call: Run) -> None:
    terminal = Terminal("rm", good)
    terminal.until(f"Remove {good} with logs, results and checkpoints? [y/N] ")
    os.write(terminal._terminal, b"n\n")
    assert terminal.end() == 1
    assert call("show", good)[0] == 0
