"""What runs share, and what the keeper runs: a rank that rewrites it changes no other run, nor what is started next."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from podwright import launch
from podwright.runs import Home
from podwright.runs.shared_files import COPY_BYTES
from podwright.spec.problems import Refusal
from tests.fixtures.launching import Load
from tests.unit.runs.made import asked

WAIT_S = 120
POISON = """\
import os, pathlib
folder = pathlib.Path(os.environ["PODWRIGHT_FOLDER"])
for path in [*(folder / "job").iterdir(), *(folder / "spec").iterdir()]:
    path.chmod(0o700)
    with path.open("r+b") as file:
        file.write(b"print('poisoned')\\n")
        file.truncate()
for path in (folder.parent.parent / "code").iterdir():
    path.unlink()
    path.write_bytes(b"print('poisoned')\\n")
"""
REWRITE = """\
job=$PODWRIGHT_FOLDER/job mark=$PODWRIGHT_FOLDER/results
if mkdir "$mark"; then
    for name in node.sh start.sh inside.sh pilot.pyz order.json; do
        rm -f "$job/$name"
        printf 'touch %s/escaped\\nexit 77\\n' "$mark" >"$job/$name"
        chmod 700 "$job/$name"
    done
    read -r _ _ _ pilot _ </proc/$PPID/stat
    kill -9 "$pilot"
    sleep 600
fi
echo went on
"""


def command(*argv: str) -> str:
    return f"command: {json.dumps(argv)}"


def test_a_rank_that_rewrites_all_it_can_reach_changes_no_later_run(home: Home, load: Load, tmp_path: Path) -> None:
    code = tmp_path / "work" / "code"
    code.mkdir(parents=True)
    (code / "train.py").write_text("print('trained')\n")
    (code / "poison.py").write_text(POISON)
    session = launch.Session(home)
    poisoner = launch.start(session, load(command("python3", "poison.py") + "\ncode: code"))
    assert poisoner.wait(WAIT_S).state == "succeeded", poisoner.explain()
    run = launch.start(session, load(command("python3", "train.py") + "\ncode: code"))
    assert run.wait(WAIT_S).state == "succeeded", run.explain()
    assert [line.text for line in run.logs()] == ["trained"]


def test_a_living_run_keeps_its_files_when_another_is_rewritten(home: Home) -> None:
    stored = home.store(b"good", "pilot.pyz")
    first, second = (home.create(asked(f"toy-{i}222"), {}, {"job/pilot.pyz": stored}) for i in (2, 3))
    path = first.path / "job" / "pilot.pyz"
    path.chmod(0o600)
    path.write_bytes(b"evil")
    assert (second.path / "job" / "pilot.pyz").read_bytes() == stored.read_bytes() == b"good"


def test_the_keeper_runs_what_it_read_before_any_rank_ran(home: Home, load: Load) -> None:
    """A rank rewrites the stub, the pilot and the order, and kills its pilot: what comes after it is the same again."""
    run = launch.start(launch.Session(home), load(command("sh", "-c", REWRITE)))
    record = run.wait(WAIT_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    assert [line.text for line in run.logs()][-1] == "went on"
    assert not (run.folder.path / "results" / "escaped").exists()


def test_shims_do_not_run_a_rewritten_pilot_either(home: Home, load: Load) -> None:
    script = 'rm -f "$PODWRIGHT_FOLDER/job/pilot.pyz"; [ "$PODWRIGHT_ATTEMPT" = 2 ]'
    run = launch.start(launch.Session(home), load(command("sh", "-c", script) + "\nretries: 1"))
    record = run.wait(WAIT_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()


# the store


def test_stored_files_can_only_be_read(home: Home) -> None:
    assert stat.S_IMODE(home.store(b"data", "tar").stat().st_mode) == 0o400


@pytest.mark.parametrize("kind", ["bytes", "link", "folder", "pipe"])
def test_a_stored_file_that_is_not_what_its_name_says_is_written_anew(home: Home, kind: str, tmp_path: Path) -> None:
    stored = home.store(b"data", "tar")
    stored.unlink()
    other = tmp_path / "other"
    other.write_bytes(b"data")
    makers = {
        "bytes": lambda: stored.write_bytes(b"evil"),
        "link": lambda: stored.symlink_to(other),
        "folder": lambda: (stored / "inner").mkdir(parents=True),
        "pipe": lambda: os.mkfifo(stored),
    }
    makers[kind]()
    assert home.store(b"data", "tar").read_bytes() == b"data"
    assert stored.is_file()
    assert not stored.is_symlink()
    assert other.read_bytes() == b"data"


def test_a_stored_file_that_changes_in_use_is_refused(home: Home) -> None:
    stored = home.store(b"data", "pilot.pyz")
    stored.chmod(0o600)
    stored.write_bytes(b"evil")
    with pytest.raises(Refusal, match="was changed while it was used"):
        home.create(asked("toy-2222"), {}, {"job/pilot.pyz": stored})
    assert not home.is_there("toy-2222")


def test_large_code_is_on_disk_once(home: Home) -> None:
    stored = home.store(b"x" * (COPY_BYTES + 1), "tar")
    folder = home.create(asked("toy-2222"), {}, {"job/code.tar": stored})
    assert (folder.path / "job" / "code.tar").read_bytes() == stored.read_bytes()
    assert stat.S_IMODE((folder.path / "job" / "code.tar").stat().st_mode) == 0o400
