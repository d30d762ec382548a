"""The scripts of a container, run by real shells with a pilot that does what a test tells it."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.clients.kubernetes.names import JOB_FOLDER, SSH, WORK
from podwright.engines.kubernetes.scripts import MAX_MISSED, SCRIPTS

SHELLS = ["dash", "bash"]
Container = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(params=SHELLS)
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Container:
    """Gives `container(script, pilot, **environ)`: paths of a container lie in the test's own folder."""
    job, work = tmp_path / "job", tmp_path / "work"
    job.mkdir()
    work.mkdir()
    (work / "began").write_text("1794850308\n")

    def start(script: str, pilot: str, **environ: str) -> subprocess.Popen[str]:
        text = SCRIPTS[script].replace(JOB_FOLDER, str(job)).replace(WORK, str(work)).replace(SSH, str(tmp_path))
        (job / script).write_text(text.replace("/dev/termination-log", str(work / "message")))
        (job / "pilot.sh").write_text(pilot)
        own = {"HOME": str(work / "home"), "PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": "1"}
        command = [request.param, str(job / script)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=own | environ, text=True, cwd=tmp_path, **pipes)  # type: ignore[call-overload]

    return start


ENDS = [
    (0, 0, None),
    (77, 0, "failed"),
    (64, 0, "has an order that its pilot cannot read"),
    (69, 0, "the image has no Python 3.8 or newer"),
    (76, 76, None),
    (143, 143, None),
    (1, 1, None),
    (137, 137, None),
]


@pytest.mark.parametrize(("code", "exits", "message"), ENDS)
def test_only_what_may_be_started_anew_fails(
    container: Container, tmp_path: Path, code: int, exits: int, message: str | None
) -> None:
    process = container("enter.sh", f"exit {code}", PODWRIGHT_RESTART="0")
    process.communicate(timeout=300)
    assert process.returncode == exits
    told = tmp_path / "work" / "message"
    assert (told.read_text().strip() if told.exists() else None) == message


def test_a_claim_counts_the_copies_of_a_node(container: Container, tmp_path: Path) -> None:
    claim = tmp_path / "claim"
    seen = []
    for _ in range(3):
        process = container("enter.sh", 'echo "$PODWRIGHT_RESTART"', PODWRIGHT_CLAIM=str(claim))
        seen.append(process.communicate(timeout=300)[0].strip())
    assert seen == ["0", "1", "2"]


def test_a_claim_tells_lost_copies_from_those_that_left(container: Container, tmp_path: Path) -> None:
    naps = tmp_path / "bin" / "sleep"
    naps.parent.mkdir()
    naps.symlink_to("/bin/true")  # nobody waits here for its turn
    environ = {"PODWRIGHT_CLAIM": str(tmp_path / "claim"), "PATH": f"{naps.parent}:{os.environ['PATH']}"}
    seen = []
    for code in (75, 137, 143, 1, 0):
        process = container("enter.sh", f'echo "$PODWRIGHT_LOST"; exit {code}', **environ)
        seen.append(process.communicate(timeout=300)[0].strip())
    assert seen == ["0", "0", "1", "1", "2"]


@pytest.mark.parametrize(("failures", "told"), [("0", "1794850308"), ("4", "41794850308"), ("", "1794850308")])
def test_without_a_claim_failures_count_and_then_the_time(container: Container, failures: str, told: str) -> None:
    """Both containers of a node must mean the same copy; an MPIJob counts nothing."""
    process = container("enter.sh", 'echo "$PODWRIGHT_RESTART"', PODWRIGHT_RESTART=failures)
    assert process.communicate(timeout=300)[0].strip() == told
    process = container("ship.sh", 'echo "$PODWRIGHT_RESTART"', PODWRIGHT_RESTART=failures)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == told
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)


PATIENCE = [("0", "0"), ("", "0"), ("1", "40"), ("2", "80"), ("5", "640"), ("99", "640")]


@pytest.mark.parametrize(("failures", "seconds"), PATIENCE)
def test_a_node_that_came_back_waits_longer_than_the_pause_before(
    container: Container, failures: str, seconds: str
) -> None:
    process = container("enter.sh", 'echo "$PODWRIGHT_JOIN_S"', PODWRIGHT_RESTART=failures)
    assert process.communicate(timeout=300)[0].strip() == seconds


def test_a_pilot_waits_for_the_side_container(container: Container, tmp_path: Path) -> None:
    (tmp_path / "work" / "began").unlink()
    process = container("enter.sh", 'echo "$PODWRIGHT_RESTART"', PODWRIGHT_RESTART="0")
    side = container("ship.sh", 'echo "$PODWRIGHT_RESTART"', PODWRIGHT_RESTART="0")
    told = process.communicate(timeout=300)[0].strip()
    assert told == (tmp_path / "work" / "began").read_text().strip() != ""
    side.send_signal(signal.SIGTERM)
    side.communicate(timeout=300)


@pytest.mark.parametrize(("state", "runs"), [("succeeded", False), ("failed", False), ("terminated", True)])
def test_a_run_that_is_over_is_not_begun_again(container: Container, tmp_path: Path, state: str, runs: bool) -> None:
    record = tmp_path / "claim" / "record" / "n0.r0"
    record.mkdir(parents=True)
    (record / "events.jsonl").write_text(f'{{"t":1,"e":[0,0],"n":0,"q":9,"k":"end","state":"{state}"}}\n')
    process = container("enter.sh", "echo began", PODWRIGHT_CLAIM=str(tmp_path / "claim"))
    assert (process.communicate(timeout=300)[0].strip() == "began") is runs
    assert process.returncode == 0


def test_the_code_is_put_together(container: Container, tmp_path: Path) -> None:
    packed = gzip.compress(b"the code")
    for index, piece in enumerate((packed[:5], packed[5:12], packed[12:])):
        (tmp_path / "job" / f"code.{index}").write_bytes(piece)
    container("enter.sh", "exit 0", PODWRIGHT_RESTART="0").communicate(timeout=300)
    assert (tmp_path / "work" / "code.tar").read_bytes() == b"the code"


WAITING = "trap 'echo asked to stop; exit 143' TERM\necho up\nwhile :; do sleep 0.05; done\n"


def test_a_request_to_stop_reaches_the_pilot(container: Container) -> None:
    process = container("enter.sh", WAITING, PODWRIGHT_RESTART="0")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=300)[0] == "asked to stop\n"
    assert process.returncode == 143


def test_a_request_that_comes_before_the_script_knows_its_pilot_reaches_it(container: Container) -> None:
    at_once = WAITING.replace("echo up\n", 'kill -TERM "$PPID"\n')
    process = container("enter.sh", at_once, PODWRIGHT_RESTART="0")
    assert process.communicate(timeout=120)[0] == "asked to stop\n"
    assert process.returncode == 143


SLOW = 'echo up\nuntil [ -e "{work}/closed" ]; do sleep 0.05; done\necho shipped\n'


def test_a_record_is_sent_after_the_request_to_stop(container: Container, tmp_path: Path) -> None:
    """A side container is asked to stop as soon as the pilot has ended, which may be before it has read anything."""
    process = container("ship.sh", SLOW.format(work=tmp_path / "work"))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    (tmp_path / "work" / "closed").touch()
    assert process.communicate(timeout=300)[0] == "shipped\n"
    assert process.returncode == 0


def test_one_that_is_done_waits_to_be_asked(container: Container) -> None:
    process = container("ship.sh", "echo shipped")
    assert process.stdout is not None
    assert process.stdout.readline() == "shipped\n"
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0
    process.communicate()


def launcher(container: Container, folder: Path, node_0: str, **environ: str) -> subprocess.Popen[str]:
    """A launcher whose ssh is a program that plays node 0."""
    (folder / "id_rsa").write_text("key")
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(f"#!/bin/sh\n{node_0}\n")
    (folder / "bin" / "ssh").chmod(0o700)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return container("launch.sh", "", PATH=path, PODWRIGHT_RUN="toy-2222", PODWRIGHT_TICK_S="0.02", **environ)


@pytest.mark.parametrize("code", [0, 77, 64, 69])
def test_a_launcher_ends_well_whatever_node_0_told(container: Container, tmp_path: Path, code: int) -> None:
    process = launcher(container, tmp_path, f"echo here; echo {code}")
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (0, f"podwright: the run ended with {code}\n")


def test_without_a_claim_a_launcher_does_not_look_for_node_0_for_ever(container: Container, tmp_path: Path) -> None:
    process = launcher(container, tmp_path, f"echo x >>{tmp_path}/asked; exit 255")
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "podwright: node 0 of the run cannot be reached any more\n")
    assert len((tmp_path / "asked").read_text().split()) == MAX_MISSED


def test_with_a_claim_a_launcher_reads_the_end_although_node_0_is_gone(container: Container, tmp_path: Path) -> None:
    """It comes when node 0 was looked for more often than without a claim."""
    claim = tmp_path / "claim"
    (claim / "lease").mkdir(parents=True)
    asked = tmp_path / "asked"
    node_0 = f"""echo x >>{asked}
if [ "$(wc -l <{asked})" -gt {MAX_MISSED} ]; then echo '{{"state": "failed"}}' >{claim}/lease/ended; exec sleep 600; fi
exit 255"""
    process = launcher(container, tmp_path, node_0, PODWRIGHT_CLAIM=str(claim))
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "podwright: the run is over\n")


def test_a_copy_of_a_node_that_comes_after_the_end_starts_nothing(container: Container, tmp_path: Path) -> None:
    (tmp_path / "claim" / "lease").mkdir(parents=True)
    (tmp_path / "claim" / "lease" / "ended").write_text('{"state": "succeeded"}')
    process = container("enter.sh", f"touch {tmp_path}/started", PODWRIGHT_CLAIM=str(tmp_path / "claim"))
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert not (tmp_path / "started").exists()
