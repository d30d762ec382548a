"""Functions as runs on a real Slurm: values of all ranks, an array, an error, and a client that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.launch import Run, calls
from podwright.launch.call_values import CallFailed
from podwright.spec.problems import Refusal
from tests.contract.sites import SlurmSite, until

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

CLIENT = """
import sys, podwright
def slow(path):
    import pathlib, time
    while not pathlib.Path(path).exists():
        time.sleep(0.05)
    return "late"
podwright.call(slow, sys.argv[1], on=sys.argv[2], python=sys.executable)
"""


def where(text: str) -> tuple[str, str, str, str]:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    return (text, *(os.environ[name] for name in names))  # type: ignore[return-value]


def square(number: int) -> int:
    return number * number


def fail(text: str) -> None:
    raise KeyError(text)


def start(site: SlurmSite, function: Any, *args: Any, **fields: Any) -> Run:
    """What `podwright.call` and `podwright.map` start, in the home of the site."""
    items = fields.pop("items", None)
    given = {"python": sys.executable, **fields}
    run = calls.start_call(site.session, function, args, site.target, given, items)
    return site.adopt(run.id)


def test_every_rank_of_two_nodes_calls_and_all_values_come_back(slurm: SlurmSite) -> None:
    run = start(slurm, where, "a", nodes=2, ranks_per_node=2)
    assert calls.values_of(run) == [("a", str(rank), str(rank % 2), "4") for rank in range(4)]


def test_a_map_is_one_array_and_its_values_come_as_its_points_end(slurm: SlurmSite) -> None:
    run = start(slurm, square, items=range(12), cpus=1)
    values = dict(calls.values_as_they_come(slurm.session, run))
    assert values == {number: number * number for number in range(12)}
    assert len({str(point.folder.handle).partition("_")[0] for point in run.points()}) == 1


def test_an_error_comes_back_with_its_traceback_there(slurm: SlurmSite) -> None:
    run = start(slurm, fail, "gone", nodes=2)
    with pytest.raises(CallFailed) as failed:
        run.value()
    assert failed.value.remote.endswith("KeyError: 'gone'\n")
    assert failed.value.__cause__ is None, "an error is not unpickled without trust"
    with pytest.raises(CallFailed) as failed:
        run.value(trust=True)
    assert isinstance(failed.value.__cause__, KeyError)


def some_path() -> Path:
    return Path("/there")


def test_a_value_that_may_run_code_is_refused_by_its_type_until_it_is_trusted(slurm: SlurmSite) -> None:
    run = start(slurm, some_path)
    with pytest.raises(Refusal, match=r"left a value that is not read without trust: it holds pathlib\.PosixPath"):
        run.value()
    assert run.value(trust=True) == Path("/there")


def test_a_value_outlives_a_client_that_was_killed(slurm: SlurmSite, tmp_path: Path) -> None:
    go = slurm.lab.shared / "go"
    go.unlink(missing_ok=True)
    env = {**os.environ, "PODWRIGHT_HOME": str(slurm.home.path)}
    words = [sys.executable, "-c", CLIENT, str(go), slurm.target]
    with subprocess.Popen(words, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL) as client:

        def submitted() -> list[str]:
            assert client.poll() is None, "the client ended by itself"
            return [path.parent.name for path in slurm.home.runs.glob("slow-*/client.jsonl") if _is_submitted(path)]

        (run_id,) = until(submitted, "the run is submitted")
        client.kill()
    go.touch()
    assert slurm.adopt(run_id).value() == "late"


def _is_submitted(path: Path) -> bool:
    return '"submitted"' in path.read_text()
