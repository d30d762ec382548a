"""Programs that know nothing of us: what they take as a sign of others, what they read, and what they leave."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.launch.submission import Submission, prepare
from podwright.runs.copies import LeftOut
from tests.contract.sites import END_S, PROGRAMS, LocalSite, Site
from tests.real.labs import ON_KUBERNETES


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Its code as people clone it: what it learns from is ignored by git."""
    folder = tmp_path / "babble"
    (folder / "data" / "babble").mkdir(parents=True)
    shutil.copy(PROGRAMS / "babble.py", folder)
    (folder / "README").write_text("babbles\n")
    (folder / ".gitignore").write_text("*.bin\nout-*/\n")
    (folder / "data" / "babble" / "train.bin").write_bytes(b"abracadabra")
    for words in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def start(site: Site, repository: Path, **fields: Any) -> Any:
    command = f"{sys.executable} babble.py"
    return site.start(name="babble", code=str(repository), command=command, launcher=None, **fields)


def test_a_program_that_knows_nothing_of_us_runs_and_what_it_leaves_is_pulled(
    shared: Site, repository: Path, tmp_path: Path
) -> None:
    run = start(shared, repository, data="{letters: babble/data}")
    assert run.wait(END_S).state == "succeeded", run.explain()
    (event,) = shared.events(run, "workdir")
    assert (event["files"], event["left"]) == (3, [])
    if shared.target != "local":
        assert not (run.folder.path / "results" / "workdir").exists(), "it comes when it is asked for"
    left_out: list[LeftOut] = []
    run.pull([], tmp_path / "here", left_out.append)
    kept = tmp_path / "here" / run.id / "results" / "workdir"
    assert json.loads((kept / "out-babble" / "ckpt.json").read_text())["r"] == "a"
    assert (kept / "README").read_text() == "babbles\ntrained\n"
    assert {path.name for path in kept.iterdir()} == {"out-babble", "README"}


@pytest.mark.parametrize("site", [pytest.param("kubernetes-frames", marks=ON_KUBERNETES)], indirect=True)
def test_without_a_claim_a_run_is_told_at_its_start_that_nothing_is_kept(site: Site) -> None:
    job = prepare(site.session, Submission(site.workload(), site.target, "count-aaaa")).job
    assert [sentence for sentence in job.gaps if "nothing is kept" in sentence]
    assert job.parts[0].order.keep is None


def test_a_failed_run_keeps_what_it_left(local: LocalSite, repository: Path) -> None:
    run = local.start(name="babble", code=str(repository), command="sh -c 'echo lost > notes; exit 3'", keep="['n*']")
    assert (run.wait(END_S).state, run.record().exit_code) == ("failed", 3)
    assert [path.name for path in (run.folder.path / "results" / "workdir").iterdir()] == ["notes"]


def test_a_launcher_that_is_named_is_kept_to(local: LocalSite, repository: Path) -> None:
    run = local.start(code=str(repository), command=f"{sys.executable} babble.py", launcher="ranks")
    assert run.wait(END_S).state == "failed"
    assert "no process group" in run.explain()[1]


@pytest.mark.parametrize(("launcher", "readers"), [("ranks", {0, 1, 2, 3}), ("mpi", {0})])
def test_ranks_read_their_input_from_a_file_of_the_code(
    local: LocalSite, tmp_path: Path, launcher: str, readers: set[int]
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "answers.txt").write_text("yes\n")
    run = local.start(
        code=str(code),
        command=json.dumps([sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"]),
        stdin="code/answers.txt",
        nodes=2,
        ranks_per_node=2,
        launcher=launcher,
    )
    assert run.wait(END_S).state == "succeeded", run.explain()
    texts = {line.rank: line.text for line in run.logs()}
    assert texts == {rank: repr("yes\n" if rank in readers else "") for rank in range(4)}
