"""A run ends once: the claim of its end, and what a pilot finds that is started after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.payload import pilot_zip
from podwright.pilot.life.ended import final_state, ranks_ended_well, read_ended, write_ended
from podwright.pilot.protocol import json_line
from tests.unit.pilot.made import ORDER


def wrote(folder: Path, restart: int, *rows: dict[str, Any]) -> None:
    path = folder / "record" / f"n0.r{restart}" / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def state_of(folder: Path) -> str | None:
    return final_state(str(folder / "lease"), str(folder / "record"), [str(folder / "cancelled")])


def test_the_first_claim_counts(tmp_path: Path) -> None:
    lease = str(tmp_path / "lease")
    assert read_ended(lease) is None
    assert write_ended(lease, "failed") == "failed"
    assert write_ended(lease, "succeeded") == "failed"
    assert (read_ended(lease), (tmp_path / "lease" / "ended").read_text()) == ("failed", '{"state": "failed"}\n')


@pytest.mark.parametrize("text", ["", "{", '{"state": "bogus"}', "[]"])
def test_a_claim_that_was_cut_off_claims_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "ended").write_text(text)
    assert read_ended(str(tmp_path)) is None
    assert write_ended(str(tmp_path), "succeeded") == "succeeded"


def test_an_end_that_cannot_be_written_is_an_end_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert write_ended(str(tmp_path / "file" / "lease"), "succeeded") == "succeeded"


@pytest.mark.parametrize(
    ("last", "is_marked", "expected"),
    [
        ({"k": "end", "state": "succeeded"}, False, "succeeded"),
        ({"k": "end", "state": "failed"}, False, "failed"),
        ({"k": "end", "state": "terminated"}, True, "terminated"),
        ({"k": "end", "state": "terminated"}, False, None),
        ({"k": "given_back", "why": "its slice of time is over"}, False, None),
        ({"k": "retry", "why": "node 1 is gone"}, True, None),
    ],
)
def test_a_record_of_the_version_before_is_read_by_its_events(
    tmp_path: Path, last: dict[str, Any], is_marked: bool, expected: str | None
) -> None:
    wrote(tmp_path, 0, {"k": "go", "attempt": 1}, last)
    if is_marked:
        (tmp_path / "cancelled").touch()
    assert state_of(tmp_path) == expected


def test_the_last_start_of_a_run_tells_how_it_ended(tmp_path: Path) -> None:
    wrote(tmp_path, 0, {"k": "end", "state": "terminated"})
    wrote(tmp_path, 1, {"k": "end", "state": "succeeded"})
    assert state_of(tmp_path) == "succeeded"


@pytest.mark.parametrize("node", ["0", "1"])
@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 77), ("terminated", 143)])
def test_a_pilot_of_a_run_that_has_ended_starts_nothing_and_ends_as_it_did(
    tmp_path: Path, state: str, code: int, node: str
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (tmp_path / "token").write_text("token\n")
    (tmp_path / "cancelled").touch()
    (job / "order.json").write_text(ORDER._replace(command=["touch", str(tmp_path / "ran")]).text())
    (job / "pilot.pyz").write_bytes(pilot_zip())
    write_ended(str(tmp_path / "lease"), state)
    command = [sys.executable, "-I", "-S", str(job / "pilot.pyz"), "node", str(job / "order.json")]
    environ = {"PATH": os.environ["PATH"], "PODWRIGHT_NODE": node, "PODWRIGHT_RESTART": "0"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"podwright: toy-2222 has ended ({state}), nothing is started\n"
    assert not (tmp_path / "record").exists()
    assert not (tmp_path / "ran").exists()


def test_what_a_silent_node_wrote_of_its_ranks_counts(tmp_path: Path) -> None:
    events = tmp_path / "n1.r2" / "events.jsonl"
    events.parent.mkdir()

    def ended(*codes: int, epoch: tuple[int, int] = (3, 1)) -> bool:
        rows = [{"k": "rank_end", "e": list(epoch), "rank": rank, "code": code} for rank, code in enumerate(codes)]
        events.write_bytes(b"".join(json_line(row) for row in ({"k": "go", "e": [3, 1]}, *rows)) + b'{"torn')
        return ranks_ended_well(str(tmp_path), 1, 2, (3, 1), 2)

    assert ended(0, 0)
    assert not ended(0, 1)
    assert not ended(0)
    assert not ended(0, 0, epoch=(3, 0)), "that was another attempt"
    assert not ranks_ended_well(str(tmp_path), 1, 3, (3, 1), 2), "no shared folder has its record"
    events.write_bytes(b"x" * (2 << 20) + b"\n" + events.read_bytes())
    assert ended(0, 0)
