"""Full disks, read-only homes and clocks that step back: right words, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from podwright import launch
from podwright.runs import Home
from podwright.spec import Refusal
from tests.contract.sites import END_S, LocalSite, until
from tests.rows import event_rows

PODWRIGHT = Path(sys.executable).parent / "podwright"
STEPCLOCK = Path(__file__).parent.parent / "fakes" / "stepclock.c"


@pytest.fixture
def site_on() -> Iterator[Callable[[Path], LocalSite]]:
    """Sites on folders of a test's own; whatever they started ends with the test."""
    sites: list[LocalSite] = []

    def make(folder: Path) -> LocalSite:
        sites.append(LocalSite("local", folder))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


SiteOn = Callable[[Path], LocalSite]


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB of its own; needs root, like the namespaces."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "podwright-test", str(disk))
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    return filler


@pytest.mark.netns
def test_a_full_disk_refuses_a_run_in_words(small_disk: Path, site_on: SiteOn) -> None:
    site = site_on(small_disk)
    workload = site.workload("--steps 2")
    filler = fill(small_disk)
    with pytest.raises(Refusal, match="cannot be written: no space left on device") as refusal:
        launch.start(site.session, workload)
    assert "set PODWRIGHT_HOME to a folder on another disk" in str(refusal.value)
    assert list(site.home.all_ids()) == [], "nothing half made"
    filler.unlink()
    run = site.start("--steps 2")
    assert run.wait(END_S).state == "succeeded"


@pytest.mark.netns
def test_a_disk_that_fills_during_a_run_loses_no_event(small_disk: Path, site_on: SiteOn, tmp_path: Path) -> None:
    site = site_on(small_disk)
    run = site.start("--steps 40 --pause 0.1", checkpoint=tmp_path / "elsewhere")
    site.wait_step(run, 3)
    filler = fill(small_disk)
    before = len(site.events(run, "result"))
    until(lambda: not site.processes(run) or _ranks_ended(site, run), "time passes on the full disk")
    assert len(site.events(run, "result")) - before < 30, "the disk was full"
    filler.unlink()
    assert run.wait(END_S).state == "succeeded"
    told = site.events(run, "result")
    assert told[-1]["values"]["step"] == 40
    assert sum(event.get("of", 1) for event in told) == 40, "no event was lost"


def _ranks_ended(site: LocalSite, run: launch.Run) -> bool:
    pid = site.rank(run, 0)
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.netns
def test_a_read_only_home_is_still_read(small_disk: Path, site_on: SiteOn) -> None:
    site = site_on(small_disk)
    run = site.start("--steps 2")
    assert run.wait(END_S).state == "succeeded"
    until(lambda: not site.processes(run), "nobody writes there any more")
    site.home.index.close()
    mount("-o", "remount,ro", str(small_disk))
    home = Home.open(site.home.path)
    assert [record.state for record in launch.recent(launch.Session(home))] == ["succeeded"]
    assert next(launch.find(launch.Session(home), run.id).logs()).text.startswith("rank 0 of 1 starts")
    environ = {**os.environ, "PODWRIGHT_HOME": str(home.path)}
    listed = subprocess.run([PODWRIGHT, "ps", "--json"], env=environ, capture_output=True, text=True, check=False)
    assert [row["id"] for row in json.loads(listed.stdout)] == [run.id], listed.stderr
    refused = subprocess.run(
        [PODWRIGHT, "run", str(site.folder / "workload.yaml")], env=environ, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "cannot be written: read-only file system" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_home_from_a_newer_version_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "version").write_text("99\n")
    environ = {**os.environ, "PODWRIGHT_HOME": str(home)}
    done = subprocess.run([PODWRIGHT, "ps"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"{home} was written by a newer Podwright (layout 99, this one knows 1)\n\n"
        "hint: update Podwright, or set PODWRIGHT_HOME to another folder\n"
    )
    assert [path.name for path in home.iterdir()] == ["version"], "nothing was changed"


def test_a_clock_that_steps_back_disorders_nothing(
    site_on: SiteOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pilots and keeper see a wall clock that jumps an hour back in the middle of the run."""
    offset, library = tmp_path / "offset", tmp_path / "stepclock.so"
    offset.write_text("0")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, STEPCLOCK], check=True)
    site = site_on(tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("STEP_CLOCK", str(offset))
    run = site.start("--steps 30", retries=1, nodes=2)
    monkeypatch.delenv("LD_PRELOAD")
    site.wait_step(run, 5)
    offset.write_text("-3600")
    site.wait_step(run, 15)
    record = run.wait(END_S)
    assert record.state == "succeeded"
    assert record.duration_s is not None
    assert 0 < record.duration_s < 600
    events = [row for row in event_rows(run.folder.path) if "q" in row]
    for node in (0, 1):
        times = [event["t"] for event in sorted(events, key=lambda e: e["q"]) if event["n"] == node]
        # A value carries the time of its line, which may have waited some milliseconds for its turn.
        assert all(later > earlier - 1.0 for earlier, later in pairwise(times))
