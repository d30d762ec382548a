"""Runs as Python programs hold them: awaited, as they end, with options, their report, and as data frames."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import podwright

TOLD = 'for n in range(3): print(\'{"podwright": {"step": %d, "steps": 3, "loss": %f}}\' % (n, 1 / (n + 1)))'
TOY = {"name": "toy", "command": ["python3", "-c", TOLD]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    for run in podwright.list_runs():
        run.cancel()
        assert run.wait(300).is_final


def test_a_run_is_awaited_reported_and_becomes_tables() -> None:
    async def both() -> list[str]:
        first, second = podwright.run(TOY, tags=["paper"], note="the first"), podwright.run(TOY, sets=["name=other"])
        records = await asyncio.gather(_ended(first), _ended(second))
        return [record.state for record in records]

    assert asyncio.run(both()) == ["succeeded", "succeeded"]
    runs = podwright.list_runs(name="toy")
    (run,) = runs
    assert run.state == "succeeded"
    assert "toy" in run.report().read_text()
    frame = runs.to_pandas()
    assert list(frame["id"]) == [run.id]
    assert list(frame["results.loss"]) == [pytest.approx(1 / 3, abs=1e-6)]
    assert (frame["tags"][0], frame["note"][0]) == (("paper",), "the first")
    assert str(frame["created_at"].dtype).endswith("UTC]")
    told = run.series().to_pandas()
    assert list(told["name"]) == ["loss"] * 3
    assert list(told["step"]) == [0.0, 1.0, 2.0]
    assert set(told["attempt"]) == {1}
    assert str(told["time"].dtype).endswith("UTC]")
    again = podwright.run(like=run, note="again")
    assert again.wait(300).state == "succeeded"
    assert again.last_known().note == "again"


async def _ended(run: podwright.Run) -> podwright.Record:
    return await run


def test_runs_come_as_they_end(tmp_path: Path) -> None:
    held = podwright.run({"name": "held", "command": ["sh", "-c", f"until test -e {tmp_path}/go; do sleep 0.05; done"]})
    quick = podwright.run({"name": "quick", "command": "true"})
    order = []
    for run in podwright.as_completed([held, quick], 300):
        order.append(run.id)
        (tmp_path / "go").touch()
    assert order == [quick.id, held.id]


def test_too_little_time_is_an_error_and_runs_go_on(tmp_path: Path) -> None:
    held = podwright.run({"name": "held", "command": ["sh", "-c", f"until test -e {tmp_path}/go; do sleep 0.05; done"]})
    with pytest.raises(TimeoutError, match="1 of 1 runs are not over"):
        list(podwright.as_completed([held], 0.01))
    (tmp_path / "go").touch()
    assert held.wait(300).state == "succeeded"


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(podwright.Refusal, match="goes without on"):
        podwright.run(like="last", on="elsewhere")
    with pytest.raises(podwright.Refusal, match="goes without a workload"):
        podwright.run(TOY, podwright.RunOptions(resume="last"))
    with pytest.raises(podwright.Refusal, match="there is no workload"):
        podwright.run()
    with pytest.raises(podwright.Refusal, match='"a b" is no tag'):
        podwright.run(TOY, tags=["a b"])
    with pytest.raises(TypeError, match="tagz"):
        podwright.run(TOY, tagz=["x"])
    assert podwright.list_runs() == []


def test_no_method_of_a_run_is_for_podwright_itself() -> None:
    public = {name for name in dir(podwright.Run) if not name.startswith("_")}
    assert not public & {"cancel_anyway", "is_held", "records_anyway", "remove_elsewhere", "value_here"}
