"""Starting: what is rendered is what is written, secrets stay out of it, code is stored once."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.engines.local import LocalEngine
from podwright.launch.again import start_again
from podwright.pilot.protocol import Order
from podwright.runs import Home, RunFolder
from podwright.spec.problems import Refusal, refuse
from tests.fixtures.launching import Load

start_module = import_module("podwright.launch.submission")  # the package has a function of that name
SECRET = "tr0ub4dor-and-3"


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Unstarted(LocalEngine):
    """The local engine, which starts nothing: it only says that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.dies = False

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        if self.dies:
            raise KeyboardInterrupt
        self.asked.append([folder.id for folder in folders])
        return "7"


@pytest.fixture
def unstarted() -> Unstarted:
    return Unstarted()


@pytest.fixture
def session(home: Home, unstarted: Unstarted) -> launch.Session:
    return launch.Session(home, engines={"local": lambda: unstarted})


def rendered_and_written(home: Home, workload: spec.Workload, run: launch.Run) -> None:
    rendered = launch.render(workload, run_id=run.id)
    written = {}
    for name in {path.split("/")[0] for path in rendered}:
        for path, data in files_in(home.runs / name / "job").items():
            if path not in ("pilot.pyz", "code.tar"):
                written[f"{name}/job/{path}"] = data.decode()
    assert written == rendered


def test_what_render_prints_is_what_a_real_run_wrote(home: Home, load: Load) -> None:
    workload = load("command: 'true'\ncode: code\nsecrets: []\nenv: {A: b}")
    run = launch.start(launch.Session(home), workload)
    assert run.wait(60).state == "succeeded"
    rendered_and_written(home, workload, run)
    assert (run.folder.path / "spec" / "workload.yaml").read_bytes() == workload.path.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "command: train --lr {matrix.lr}\nmatrix: {lr: [1, 2], seed: [3, 4]}\ncode: code",
        "command: train\nnodes: 3\nlauncher: torchrun\nretries: 2",
    ],
)
def test_render_and_start_agree_to_the_letter(
    home: Home, load: Load, unstarted: Unstarted, session: launch.Session, text: str
) -> None:
    workload = load(text)
    run = launch.start(session, workload)
    rendered_and_written(home, workload, run)


def test_render_touches_nothing(home: Home, load: Load, tmp_path: Path) -> None:
    workload = load("command: train\ncode: code")
    before = files_in(tmp_path)
    files = launch.render(workload)
    assert sorted(files) == ["toy-0000/job/node.sh", "toy-0000/job/order.json", "toy-0000/job/start.sh"]
    assert files_in(tmp_path) == before


def test_a_parent_and_its_points(home: Home, load: Load, unstarted: Unstarted, session: launch.Session) -> None:
    run = launch.start(session, load("command: train\nmatrix: {lr: [0.1, 0.01]}"), repeat=2)
    ids = [f"{run.id}-{i}" for i in (1, 2, 3, 4)]
    assert unstarted.asked == [ids]
    points = [home.folder(one).asked for one in ids]
    assert [(point.parent, point.index, point.matrix) for point in points] == [
        (run.id, 0, {"lr": 0.1}),
        (run.id, 1, {"lr": 0.1}),
        (run.id, 2, {"lr": 0.01}),
        (run.id, 3, {"lr": 0.01}),
    ]
    parent = run.folder.asked
    assert (parent.points, parent.parent, parent.matrix, parent.index) == (4, None, None, None)
    assert [point.id for point in run.points()] == ids
    assert len({(home.runs / one / "token").read_text() for one in ids}) == 4


def test_a_profile_is_asked_for_by_a_variable(load: Load) -> None:
    workload = load("command: train\nenv: {A: b}")
    asked = launch.profiled(workload)
    assert asked.env == {"A": "b", "PODWRIGHT_PROFILE": "8"}
    assert (asked.path, asked.source) == (workload.path, workload.source)


def test_a_run_is_started_again_with_the_code_it_had(
    home: Home, load: Load, unstarted: Unstarted, session: launch.Session, tmp_path: Path
) -> None:
    (tmp_path / "work" / "frames").mkdir(parents=True)
    first = launch.start(session, load("command: train {data.frames}\ncode: code\ndata: {frames: frames}"), repeat=2)
    shutil.rmtree(tmp_path / "work" / "code")
    again = start_again(session, first.id)
    asked, before = again.folder.asked, first.folder.asked
    assert (asked.code, asked.workload, asked.file) == (before.code, before.workload, before.file)
    assert asked.points == 0
    order = (again.folder.path / "job" / "order.json").read_text()
    assert str(tmp_path / "work" / "frames") in order, "data is relative to the file as it lay then"
    (home.runs / f"{first.id}-1" / "job" / "code.tar").unlink(missing_ok=True)
    (first.folder.path / "job" / "code.tar").unlink(missing_ok=True)
    with pytest.raises(Refusal, match=f"the code of {first.id} is not there any more"):
        start_again(session, first.id)


def test_a_target_that_is_not_there(home: Home, load: Load) -> None:
    with pytest.raises(Refusal) as caught:
        launch.start(launch.Session(home), load("command: train"), on="moon")
    assert str(caught.value) == "--on: there is no target 'moon'\n\nhint: targets here: local"


@pytest.mark.parametrize("repeat", [0, -1])
def test_a_repeat_that_is_no_count(home: Home, load: Load, repeat: int) -> None:
    with pytest.raises(Refusal, match="--repeat: must be a whole positive number"):
        launch.start(launch.Session(home), load("command: train"), repeat=repeat)


def test_a_run_after_one_that_is_not_there(home: Home, load: Load) -> None:
    with pytest.raises(Refusal, match="there is no run 'none'"):
        launch.start(launch.Session(home), load("command: train"), after="none")
    assert list(home.all_ids()) == []


# secrets


def test_missing_secrets_are_refused_all_at_once(home: Home, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONE_KEY", raising=False)
    monkeypatch.delenv("TWO_KEY", raising=False)
    monkeypatch.setenv("USER_IS_SET", "hush")
    workload = load("command: train\nsecrets: [ONE_KEY, USER_IS_SET, TWO_KEY]")
    with pytest.raises(Refusal) as caught:
        launch.start(launch.Session(home), workload)
    assert str(caught.value) == (
        f"{workload.path}:3:10: secrets: ONE_KEY is not set here\n"
        f"{workload.path}:3:10: secrets: TWO_KEY is not set here\n\n"
        "hint: export it in the shell that starts the run; it is never written down"
    )
    assert list(home.runs.iterdir()) == list(home.code.iterdir()) == []


@pytest.mark.parametrize("on", ["local", "local-frames"])
def test_a_secret_is_in_no_file_after_a_run_that_prints_it(
    home: Home, load: Load, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    script = 'env; echo "{\\"podwright\\": {\\"$WANDB_API_KEY\\": 1}}"; printf "half a line $WANDB_API_KEY" >&2; exit 3'
    workload = load(f"command: [sh, -c, '{script}']\nsecrets: [WANDB_API_KEY]\nranks_per_node: 2\ncode: code")
    run = launch.start(launch.Session(home), workload, on=on)
    record = run.wait(60)
    assert (record.state, record.exit_code) == ("failed", 3)
    texts = files_in(home.path)
    assert any(b"WANDB_API_KEY=***" in data for data in texts.values()), "the ranks did see it"
    assert [name for name, data in texts.items() if SECRET.encode() in data] == []


# code


def test_the_same_code_is_stored_once(
    home: Home, load: Load, unstarted: Unstarted, session: launch.Session, tmp_path: Path
) -> None:
    workload = load("command: train\ncode: code\nmatrix: {lr: [1, 2]}")
    (tmp_path / "work" / "code" / "a.py").write_text("print(1)\n")
    first = launch.start(session, workload)
    second = launch.start(session, workload)
    (stored,) = home.code.glob("*.tar")
    assert stored.name == f"{first.folder.asked.code['sha256']}.tar"  # type: ignore[index]
    assert (second.folder.path / "job" / "code.tar").read_bytes() == stored.read_bytes()
    point = second.points()[1].folder.path
    code = Order(**json.loads((point / "job" / "order.json").read_text())).code
    assert code is not None
    assert (point / "job" / code["file"]).samefile(second.folder.path / "job" / "code.tar"), "it is the parent's"
    (tmp_path / "work" / "code" / "a.py").write_text("print(2)\n")
    launch.start(session, workload)
    assert len(list(home.code.glob("*.tar"))) == 2


def test_data_is_named_as_the_ranks_find_it(home: Home, load: Load, tmp_path: Path) -> None:
    (tmp_path / "work" / "code" / "frames").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    lines = "command: train {data.a} {data.b} {data.c} {data.d}\ncode: code\n"
    data = f"data: {{a: code/frames, b: ../outside, c: {tmp_path}/outside, d: 's3://a2d2/small'}}"
    prepared = start_module.prepare(
        launch.Session(home), start_module.Submission(load(lines + data), "local", "toy-2222")
    )
    outside = str(tmp_path / "outside")
    assert prepared.job.parts[0].order.command == ["train", "frames", outside, outside, "s3://a2d2/small"]


def test_data_inside_the_code_travels_although_git_ignores_it(home: Home, load: Load, tmp_path: Path) -> None:
    code = tmp_path / "work" / "code"
    (code / "frames").mkdir(parents=True)
    (code / "frames" / "1.png").write_text("x")
    (code / ".gitignore").write_text("frames\n")
    subprocess.run(["git", "init", "-q", str(code)], check=True)
    workload = load("command: cat {data.a}/1.png\ncode: code\ndata: {a: code/frames}")
    run = launch.start(launch.Session(home), workload)
    assert run.wait(60).state == "succeeded"
    assert [line.text for line in run.logs()] == ["x"]


# a client that dies


def test_a_run_whose_client_died_before_it_submitted_is_submitted_by_the_next(
    home: Home, load: Load, unstarted: Unstarted, session: launch.Session
) -> None:
    unstarted.dies = True
    with pytest.raises(KeyboardInterrupt):
        launch.start(session, load("command: echo hello"))
    run = launch.find(launch.Session(Home.open(home.path)), "last")
    assert run.wait(60).state == "succeeded"
    assert [line.text for line in run.logs()] == ["hello"]


class Damaging(LocalEngine):
    """The local engine on a disk that loses what was written."""

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        pilot = folders[0].path / "job" / "pilot.pyz"
        pilot.unlink()
        pilot.write_bytes(b"not a zip")
        return super().submit(run_id, folders, again)


def test_a_run_that_cannot_be_started_is_said(home: Home, load: Load) -> None:
    with pytest.raises(Refusal) as caught:
        launch.start(launch.Session(home, engines={"local": Damaging}), load("command: 'true'"))
    assert caught.value.exit_code == 3
    words = caught.value.problems[0].message
    assert words.startswith("the run could not be started: ")
    for _ in range(2):
        (record,) = launch.recent(launch.Session(home))
        assert (record.state, record.reason) == ("lost", words)
    (notes,) = (path.read_text() for path in home.runs.glob("*/client.jsonl"))
    assert notes.count('"lost"') == 1, "it is not tried again and again"


class Chatty(Unstarted):
    """Refuses a run, and repeats what it was given in its words."""

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        encoded = base64.b64encode(SECRET.encode()).decode()
        raise refuse(f"export: {SECRET}: bad variable name ({encoded})", exit_code=3)


def test_an_error_text_that_repeats_a_secret_is_masked_in_record_and_words(
    home: Home, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", SECRET)
    session = launch.Session(home, engines={"local": Chatty})
    with pytest.raises(Refusal) as refused:
        launch.start(session, load("command: 'true'\nsecrets: [KEY]"))
    assert str(refused.value) == "export: ***: bad variable name (***)"
    assert refused.value.exit_code == 3
    [run_id] = home.all_ids()
    assert home.read(run_id).reason == "export: ***: bad variable name (***)"
    noted = (home.folder(run_id).path / "client.jsonl").read_text()
    assert "bad variable name" in noted
    assert SECRET not in noted


# checkpoints


def test_a_checkpoint_folder_that_cannot_be_made_fails_the_run_at_once(home: Home, load: Load, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "checkpoints"
    run = launch.start(launch.Session(home), load(f"command: 'true'\ncheckpoint: {folder}\nretries: 3"))
    record = run.wait(60)
    assert (record.state, record.attempts) == ("failed", 1)
    assert record.reason.endswith(f"the checkpoint folder {folder} cannot be made: not a directory")
    assert (run.folder.path / "pilot.log").read_text() == ""


# memory


def test_a_run_that_takes_more_memory_than_it_asked_for_is_ended_with_words(home: Home, load: Load) -> None:
    """By the kernel where a control group can be made here, else by the pilot."""
    command = ["python3", "-c", "import time; kept = bytearray(b'x') * (300 << 20); time.sleep(600)"]
    workload = load(f"command: {json.dumps(command)}\nresources: {{memory: 200MiB}}")
    run = launch.start(launch.Session(home), workload)
    record = run.wait(120)
    assert (record.state, record.exit_code) == ("failed", 137)
    assert record.reason.endswith(" used more memory than the 200 MiB it had asked for")


def test_a_run_within_its_memory_is_left_alone(home: Home, load: Load) -> None:
    command = ["python3", "-c", "import time; kept = bytearray(b'x') * (50 << 20); time.sleep(2)"]
    workload = load(f"command: {json.dumps(command)}\nresources: {{memory: 1GiB}}")
    assert launch.start(launch.Session(home), workload).wait(120).state == "succeeded"
