"""An entry among the runs that is a link to something else: nothing is read, written or removed where it leads."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.files.sizes import bytes_below
from podwright.files.whole import write_whole
from podwright.runs import Home
from tests.fixtures.bad_runs import add_run, bad_home, call

__all__ = ["bad_home"]

STRAY = "stray-2222"
Decoy = Callable[[Path], Path]


def plain(folder: Path) -> Path:
    return folder / "precious"


def of_the_same_name(folder: Path) -> Path:
    return folder / STRAY


def with_an_empty_record(folder: Path) -> Path:
    (folder / "decoy").mkdir()
    (folder / "decoy" / "run.json").write_text("{}")
    return folder / "decoy"


def of_the_same_name_with_an_empty_record(folder: Path) -> Path:
    (folder / STRAY).mkdir()
    (folder / STRAY / "run.json").write_text("{}")
    return folder / STRAY


def another_run(folder: Path) -> Path:
    home = Home(folder / "another home")
    real = add_run(home, "other-2222")
    home.index.close()
    return real


DECOYS: list[Decoy] = [
    plain,
    of_the_same_name,
    with_an_empty_record,
    of_the_same_name_with_an_empty_record,
    another_run,
]


def seen(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("decoy", DECOYS)
@pytest.mark.parametrize("command", [("rm", "--yes", STRAY), ("prune", "--yes", "--older", "0s")])
def test_only_the_link_goes_and_that_is_said(
    bad_home: Home, tmp_path: Path, decoy: Decoy, command: tuple[str, ...]
) -> None:
    target = decoy(tmp_path)
    target.mkdir(exist_ok=True)
    (target / "thesis.txt").write_text("years of work")
    (bad_home.runs / STRAY).symlink_to(target)
    os.utime(bad_home.runs / STRAY, (0, 0), follow_symlinks=False)
    before = seen(target)
    assert call("show", STRAY)[0] == 0
    code, _, err = call(*command)
    may_be_far = command[0] == "prune" and target.name == STRAY
    assert (code, (bad_home.runs / STRAY).is_symlink()) == (3 * may_be_far, False), err
    assert f"{target} is left as it is" in err.replace("\n          ", " ")
    assert seen(target) == before


@pytest.mark.parametrize("command", [("report", STRAY), ("report", "good-2222", STRAY), ("logs", STRAY)])
def test_nothing_is_written_or_read_there(bad_home: Home, tmp_path: Path, command: tuple[str, ...]) -> None:
    target = another_run(tmp_path)
    before = seen(target)
    (bad_home.runs / STRAY).symlink_to(target)
    code, out, err = call(*command)
    assert (code, out) == (2, "")
    assert f"{bad_home.runs / STRAY} is a link to {target}, which is no run of this name" in err
    assert seen(target) == before


def test_a_link_to_the_whole_machine_is_shown_without_a_walk(bad_home: Home) -> None:
    (bad_home.runs / STRAY).symlink_to("/")
    code, out, err = call("show", STRAY, "--json")
    document = json.loads(out)
    assert (code, document["bytes"]) == (0, 0), err
    assert (document["state"], document["reason"]) == ("lost", "its folder is a link to /, and no run")


def test_a_run_that_lies_on_a_cluster_goes_with_its_link(bad_home: Home, tmp_path: Path) -> None:
    folder = add_run(bad_home, STRAY)
    real = folder.rename(tmp_path / STRAY)
    folder.symlink_to(real)
    assert json.loads(call("show", STRAY, "--json")[1])["bytes"] > 0
    assert call("rm", "--yes", STRAY)[0] == 0
    assert (real.exists(), folder.is_symlink()) == (False, False)


def test_a_size_stays_inside_on_one_device_and_bounded(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "five").write_bytes(b"12345")
    (inside / "shared").write_bytes(b"12345678")
    (tmp_path / "other name").hardlink_to(inside / "shared")
    (inside / "out").symlink_to("/usr")
    (inside / "proc").symlink_to("/proc/self")
    assert bytes_below(inside) == 5
    assert bytes_below(inside, shared_too=True) == 13
    assert bytes_below(inside / "out") == 0
    assert bytes_below(inside, most=0) == 0
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as elsewhere:
        elsewhere.truncate(1 << 40)
        assert Path("/dev/shm").is_mount()
        assert bytes_below(Path("/dev")) < 1 << 40, "what is mounted below counts for nothing"


def test_a_part_that_somebody_made_a_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.get_native_id", lambda: 7)
    (tmp_path / "precious").write_text("mine")
    (tmp_path / f".report.html.{os.getpid()}.7.part").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"):
        write_whole(tmp_path / "report.html", b"page")
    assert (tmp_path / "precious").read_text() == "mine"
